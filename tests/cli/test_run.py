"""`mockube run -- CMD`: the environment of the command, its exit code, and cleanup."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.packages import ROOT

SHOWS = "import os; print(os.environ['KUBECONFIG'], flush=True)"
WAITS = f"{SHOWS}; import signal; signal.pause()"


STUBBORN = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("begun", flush=True)
for times in 1, 2:
    signal.sigwait([signal.SIGINT])
    print("interrupted", times, flush=True)
sys.exit(5)
"""

AT_A_TERMINAL = """
import os, pty, sys
process, terminal = pty.fork()
if not process:
    os.execv(sys.executable, [sys.executable, "-m", "mockube", "run", "--", sys.executable, "-c", sys.argv[1]])
shown = b""
for awaited in b"begun", b"interrupted 1":
    while awaited not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\\x03")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""
"""Sends Ctrl+C after each awaited output of the command."""


@pytest.fixture
def run(tmp_path):
    """Start `mockube run` with arguments; its temporary folders are in the test's folder."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "mockube", "run", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def python(code):
    return ["--", sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        pytest.param("sys.exit(0)", 0, id="success"),
        pytest.param("sys.exit(7)", 7, id="failure"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", 137, id="signal"),
    ],
)
def test_run_returns_exit_code_of_command_and_cleans_up(run, tmp_path, ending, code):
    process = run("-v", *python(f"{SHOWS}; import signal, sys; {ending}"))
    shown, errors = process.communicate()
    assert process.returncode == code
    assert Path(shown.strip()).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert re.search(r"API server ready after \d+\.\d\d s\n.*3 nodes ready after \d+\.\d\d s", errors)


def test_command_does_not_use_cluster_of_its_pod(run, monkeypatch):
    """A CI job in a pod has these variables, which some clients prefer to the kubeconfig."""
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.setenv(name, "443")
    process = run(*python("import os; print([name for name in os.environ if 'KUBERNETES_SERVICE' in name])"))
    assert process.communicate() == ("[]\n", "")


def test_run_passes_arguments_after_dashes_to_command(run):
    process = run("--", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--", "-v", "--help")
    assert process.communicate() == ("['--', '-v', '--help']\n", "")


def test_mockube_commands_inside_run_use_its_cluster(run):
    process = run("--simulate-nodes=2", "--", sys.executable, "-m", "mockube", "nodes")
    assert process.communicate() == ("2\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="clusters can be forked on Linux only")
def test_cluster_of_run_can_be_forked(run, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    script = "mockube mark a && mockube fork other && mockube status --name=other && mockube list"
    process = run("--nodes=1", "--", "sh", "-c", script.replace("mockube", f"{sys.executable} -m mockube"))
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "1 of 1 ready" in output
    assert "fork of mockube run" in output
    assert not (tmp_path / "data/mockube/clusters/other/pki").exists(), "it ends with the command"


def test_run_names_command_that_does_not_exist(run):
    process = run("--", "no-such-command")
    assert process.communicate() == ("", "mockube: no-such-command: command not found\n")
    assert process.returncode == 127


def test_run_reports_why_server_cannot_start(run):
    process = run("--packs", "nothing-known", "--", "true")
    shown, errors = process.communicate()
    assert (process.returncode, shown) == (2, "")
    assert "nothing-known" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_run_ends_command_and_cluster(run, tmp_path, number):
    process = run(*python(WAITS))
    assert process.stdout.readline().startswith(str(tmp_path))
    process.send_signal(number)
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_at_terminal_is_handled_by_command():
    answer = subprocess.run(
        [sys.executable, "-c", AT_A_TERMINAL, STUBBORN],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (answer.returncode, answer.stderr) == (5, b"")


def test_killed_run_leaves_no_processes(run):
    """All processes of the command hold the pipe; it is at EOF after the last one has exited."""
    process = run(*python(WAITS))
    assert process.stdout.readline()
    process.kill()
    assert process.stdout.read() == ""
    assert process.wait() == -signal.SIGKILL


def test_report_is_written_when_the_command_has_ended_and_exit_code_stays(run, tmp_path):
    process = run("--report=reports/run.md", *python("raise SystemExit(3)"))
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 3, errors
    assert "the report of the cluster is reports/run.md" in errors
    text = (tmp_path / "reports/run.md").read_text()
    assert "\n**exit code 3**\n" in text
    assert "raise SystemExit(3)" in text.splitlines()[0]


def test_fault_that_the_command_leaves_is_in_the_report_and_does_not_prevent_it(run, tmp_path):
    add = [sys.executable, "-m", "mockube", "fault", "add", "outage", "--status=503"]
    process = run("--report=run.md", *python(f"import subprocess; subprocess.run({add!r}, check=True)"))
    _, errors = process.communicate(timeout=100)
    assert "the report of the cluster is run.md" in errors
    text = (tmp_path / "run.md").read_text()
    assert "Faults that are injected:\n\n- `outage`\n" in text
    assert "could not be listed" not in text


def test_report_of_an_unknown_format_is_refused_before_the_cluster_starts(run):
    process = run("--report=run.txt", *python(SHOWS))
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert output == ""
    assert "ends with .html, .md or .json" in errors


def test_report_that_cannot_be_written_leaves_the_exit_code(run, tmp_path):
    folder = str(tmp_path / "reports")
    Path(folder).mkdir()
    replaces = f"import os\nos.rmdir({folder!r})\nopen({folder!r}, 'x').close()\nraise SystemExit(3)"
    process = run("--report=reports/run.md", *python(replaces))
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 3
    assert "the report reports/run.md was not written" in errors
