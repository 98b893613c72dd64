"""The command `mockube` and the two processes, as a person at a terminal meets them."""

import os
import re
import signal
import subprocess
import sys

import pytest
import yaml

from mockube.cli.main import NODES, READY, main
from tests.architecture.source import ROOT, settings


def run(module, *arguments):
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_up_starts_a_cluster_that_its_kubeconfig_leads_to(tmp_path):
    """In a folder of its own, on a free port, until Ctrl+C; then the manager goes before the server."""
    with subprocess.Popen(
        [sys.executable, "-m", "mockube", "up", "--secure-port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        opening = process.stdout.readline()
        config = yaml.safe_load((tmp_path / ".mockube" / "kubeconfig").read_text())
        for line in process.stderr:
            if "Controllers:" in line:
                break
        process.send_signal(signal.SIGINT)
        rest, log = process.stdout.read(), process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert opening.startswith("mockube ")
    assert "is ready, with 3 simulated nodes" in opening
    assert re.findall(r"\w+\.py:\d+\] (Stopp\w+)", log) == ["Stopping", "Stopped"] * 2
    assert f"export KUBECONFIG={tmp_path / '.mockube' / 'kubeconfig'}" in rest
    assert config["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")


def test_demo_shows_the_store_at_work(capsys):
    assert main(["demo"]) == 0
    shown, complaints = capsys.readouterr()
    assert complaints == ""
    shown = " ".join(shown.split())
    for part in (
        "done, revision 5",
        "refused: it changed at revision 5",
        "watched: DELETE /registry/pods/default/web-1 revision 8",
        "refused, Compacted: revision 4 has been compacted: history begins at 8",
        "watched: DELETE /registry/events/default/web-0.started revision 10",
    ):
        assert part in shown


def test_the_readme_shows_what_is_printed(capsys):
    readme = (ROOT / "README.md").read_text()
    main(["demo"])
    assert capsys.readouterr().out in readme
    version = settings()["project"]["version"]
    ready = READY.format(version=version, kubeconfig="~/mockube/.mockube/kubeconfig", nodes=NODES)
    assert ready in readme


def test_a_flag_that_nobody_knows_is_refused():
    answer = run("mockube", "up", "--bogus")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "unrecognized arguments: --bogus" in answer.stderr


def test_version_is_that_of_the_project():
    answer = run("mockube", "version")
    assert (answer.returncode, answer.stdout, answer.stderr) == (
        0,
        f"{settings()['project']['version']}\n",
        "",
    )


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "up" in shown
    assert "version" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param([], "required: command", id="nothing"),
        pytest.param(["upp"], "upp", id="a slip of the finger"),
        pytest.param(["demo", "now"], "unrecognized arguments: now", id="too much"),
        pytest.param(["demo", "--data-dir", "x"], "--data-dir", id="what another command takes"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown, complaints = capsys.readouterr()
    assert ended.value.code == 2
    assert shown == ""
    assert says in complaints
    assert "usage: mockube" in complaints


def test_a_reader_that_goes_away_is_no_crash():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        answer = subprocess.run(
            [sys.executable, "-m", "mockube", "demo"],
            cwd=ROOT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert (answer.returncode, answer.stderr) == (141, b"")


def test_a_manager_that_is_not_told_where_the_server_is_says_so_and_fails():
    answer = run("controller_manager")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "where is the API server?" in answer.stderr


def test_help_of_up_tells_of_both_processes(capfd):
    assert main(["up", "--help"]) == 0
    shown = capfd.readouterr().out
    assert "--simulate-nodes" in shown
    assert "--secure-port" in shown
