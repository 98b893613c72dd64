import signal
import sys
from pathlib import Path

import pytest

from mockube.failure import Failure
from mockube.operators import process
from mockube.operators.process import (
    OperatorLog,
    OperatorProcess,
    check_command,
    end_message,
    marked_processes,
)

KUBECONFIG = Path("/nonexistent/kubeconfig")
SECONDS = 60.0


def python(*lines, folder=None, **variables):
    command = [sys.executable, "-S", "-u", "-c", "\n".join(lines)]
    return OperatorProcess(command, kubeconfig=KUBECONFIG, folder=folder, environment=variables)


def wait_for_line(operator, text):
    reader = operator._reader
    while text not in operator.log.text():
        reader.join(0.01)
        assert reader.is_alive() or text in operator.log.text(), operator.log.text()


def test_operator_has_kubeconfig_and_variables(tmp_path):
    lines = ("import os", "print(os.environ['KUBECONFIG'], os.environ['COLOR'], os.getcwd())")
    with python(*lines, folder=tmp_path, COLOR="red") as operator:
        assert operator.wait(SECONDS) == 0
    assert operator.log.text() == f"{KUBECONFIG} red {tmp_path}\n"


def test_cluster_of_this_process_is_hidden(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with python("import os", "print(os.environ.get('KUBERNETES_SERVICE_HOST'))") as operator:
        operator.wait(SECONDS)
    assert operator.log.text() == "None\n"


def test_stop_sends_term_to_an_operator_that_ends():
    with python(
        "import signal, sys", "signal.signal(15, lambda *_: sys.exit(7))", "print('up')", "signal.pause()"
    ) as operator:
        wait_for_line(operator, "up")
        end = operator.stop(SECONDS)
    assert (end.code, end.ignored_term) == (7, False)
    assert operator.stop() is end


def test_operator_that_ignores_term_is_killed():
    with python(
        "import signal", "signal.signal(15, signal.SIG_IGN)", "print('up')", "signal.pause()"
    ) as operator:
        wait_for_line(operator, "up")
        end = operator.stop(0.01)
    assert (end.code, end.ignored_term) == (128 + signal.SIGKILL, True)


@pytest.mark.parametrize(
    "session", [pytest.param("", id="in its group"), pytest.param("os.setsid()", id="in its own session")]
)
def test_children_do_not_outlive_the_operator(session):
    with python(
        "import os, signal",
        "signal.signal(15, signal.SIG_DFL)",
        "child = os.fork()",
        "if not child:",
        f"    {session or 'pass'}",
        "    signal.signal(15, signal.SIG_IGN)",
        "    print('child')",
        "    signal.pause()",
        "signal.pause()",
    ) as operator:
        wait_for_line(operator, "child")
        operator.stop(SECONDS)
    assert not [*marked_processes(operator._marker)]


def test_crash_kills_at_once():
    with python("import signal", "print('up')", "signal.pause()") as operator:
        wait_for_line(operator, "up")
        end = operator.kill()
    assert (end.code, end.ignored_term) == (128 + signal.SIGKILL, False)


def test_operator_that_exits_at_once_is_explained():
    with python("import sys", "print('starting')", "sys.exit('no such flag: --wrong')") as operator:
        assert operator.wait(SECONDS) == 1
    assert end_message(operator, ["./manager"]) == "./manager exited with code 1: no such flag: --wrong"


def test_megabytes_of_log_are_bounded():
    with python("for number in range(100_000): print(f'{number:060}')") as operator:
        assert operator.wait(SECONDS) == 0
    text = operator.log.text()
    assert operator.log.size == 6_100_000
    assert len(text) < 100_000
    assert text.startswith("0" * 60 + "\n")
    assert text.endswith("99999\n")


@pytest.mark.parametrize(
    ("writes", "text"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param(["ab", "c"], "abc", id="within the head"),
        pytest.param(["abcdef"], "abcdef", id="head and tail"),
        pytest.param(
            ["abcdefghij"], "abc\n... 4 bytes are left out ...\nhij", id="one write that is too long"
        ),
        pytest.param(
            [*"abcdefghij"], "abc\n... 4 bytes are left out ...\nhij", id="many writes that are too long"
        ),
    ],
)
def test_log_has_head_and_tail(writes, text):
    log = OperatorLog(head_bytes=3, tail_bytes=3)
    for each in writes:
        log.write(each.encode())
    assert log.text() == text
    assert log.size == sum(map(len, writes))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param([], "no command for the operator", id="none"),
        pytest.param(["no-such-command"], "no-such-command: command not found", id="not on the path"),
        pytest.param(["./manager"], "./manager: command not found", id="no file"),
        pytest.param(["./notes.txt"], "./notes.txt: not an executable file", id="not executable"),
    ],
)
def test_command_that_cannot_be_started_is_refused(command, message, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(Failure, match=f"^{message}$"):
        check_command(command, tmp_path)


def test_operator_that_cannot_be_killed_is_a_failure(monkeypatch):
    monkeypatch.setattr(process, "KILL_SECONDS", 0.01)
    operator = python("import signal", "print('up')", "signal.pause()")
    with monkeypatch.context() as patch:
        patch.setattr(OperatorProcess, "_send", lambda *_: None)
        with pytest.raises(Failure, match="cannot be killed: does it run as another user"):
            operator.kill()
    monkeypatch.setattr(process, "KILL_SECONDS", SECONDS)
    operator.kill()
