import signal
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from mockube.failure import Failure
from mockube.operators import process
from mockube.operators.operator_pod import can_have_mounts
from mockube.operators.process import (
    OperatorLog,
    OperatorProcess,
    check_command,
    end_message,
    is_working,
    marked_processes,
)

KUBECONFIG = Path("/nonexistent/kubeconfig")
SECONDS = 60.0
FIXED_PORT = 8080


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


STACK = """
main.main
\t/src/main.go:12
created by sigs.k8s.io/controller-runtime/pkg/manager.(*runnableGroup).reconcile in goroutine 7
\t/src/manager.go:290 +0x1d
runtime.main
\t/usr/local/go/src/runtime/proc.go:290
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("starting\nno flag was given\n\n", "no flag was given"),
        (f"starting\nERROR\tproblem running manager\t{{}}{STACK}", "ERROR\tproblem running manager\t{}"),
        (f"panic: no port\n\ngoroutine 1 [running]:{STACK}exit status 2\n", "panic: no port"),
        ("flag provided but not defined: -nope\nUsage of ./manager:\n  -port string\n    \tthe port\n", "flag provided but not defined: -nope"),
        ("Error: no cluster\n  cause: EOF\n", "Error: no cluster"),
        ("Traceback:\n  File x\nValueError: y\n", "ValueError: y"),
        ("  indented\n", "indented"),
    ],
)  # fmt: skip
def test_last_line_is_no_stack_and_no_usage(text, line):
    log = OperatorLog()
    log.write(text.encode())
    assert log.last_line() == line


LISTENING = (
    "import socket, sys",
    f"socket.create_server(('127.0.0.1', {FIXED_PORT}))",
    "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as server:",
    "    server.sendall(b'hello')",
    "    print(server.recv(9).decode())",
    "print(len(socket.if_nameindex()), 'interface')",
    "import signal; signal.pause()",
)


def answer(listening, count):
    """Answer so many connections with what they have sent."""
    for _ in range(count):
        connection, _ = listening.accept()
        with connection:
            connection.sendall(connection.recv(9))


@pytest.mark.skipif(not can_have_mounts(), reason="this machine allows no namespaces")
def test_operators_in_networks_of_their_own_listen_on_the_same_port():
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as operators:
        threading.Thread(target=answer, args=(listening, 2), daemon=True).start()
        host, port = listening.getsockname()
        command = [sys.executable, "-S", "-u", "-c", "\n".join(LISTENING), host, str(port)]
        for _ in range(2):
            operator = OperatorProcess(command, kubeconfig=KUBECONFIG, server=f"https://{host}:{port}")
            operators.enter_context(operator)
            wait_for_line(operator, "interface")
            assert operator.log.text() == "hello\n1 interface\n"
            assert operator.code is None


def test_stop_sends_term_to_an_operator_that_ends():
    with python(
        "import signal, sys", "signal.signal(15, lambda *_: sys.exit(7))", "print('up')", "signal.pause()"
    ) as operator:
        wait_for_line(operator, "up")
        end = operator.stop(SECONDS)
    assert (end.code, end.ignored_term) == (7, False)
    assert operator.stop() is end


@pytest.mark.parametrize(
    ("last_line", "expected"),
    [
        pytest.param("signal.pause()", False, id="waits"),
        pytest.param("while True: pass", True, id="works"),
        pytest.param("os.fork() or exec('while True: pass'); signal.pause()", True, id="child works"),
    ],
)
def test_operator_works_unless_all_of_its_threads_wait(last_line, expected):
    with python("import os, signal", "print('up')", last_line) as operator:
        wait_for_line(operator, "up")
        while is_working(operator.pid) is not expected:
            operator._reader.join(0.01)
    assert not is_working(operator.pid)


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


LEAVE_CHILD = (
    "import os, signal, subprocess",
    "command = 'exec env -i setsid sh -c \"echo child; exec sleep 3600\"'",
    "subprocess.Popen(['sh', '-c', command + {suffix!r}])",
    "signal.pause()",
)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
@pytest.mark.parametrize("suffix", [pytest.param("", id="child"), pytest.param(" &", id="orphan")])
@pytest.mark.parametrize("grace", [pytest.param(0, id="crash"), pytest.param(SECONDS, id="stop")])
def test_process_without_the_environment_in_a_session_of_its_own_is_killed(suffix, grace):
    with python(*(line.format(suffix=suffix) for line in LEAVE_CHILD)) as operator:
        wait_for_line(operator, "child")
        operator.stop(grace)
        operator._reader.join(SECONDS)  # the child has the pipe
        assert not operator._reader.is_alive()


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
        pytest.param(["notes.txt"], "notes.txt: command not found", id="a file that is not on the path"),
        pytest.param(["./manager"], "./manager: command not found", id="no file"),
        pytest.param(["./notes.txt"], "./notes.txt: not an executable file", id="not executable"),
    ],
)
def test_command_that_cannot_be_started_is_refused(command, message, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(Failure, match=f"^{message}$"):
        check_command(command, tmp_path)


def test_network_of_an_operator_that_does_not_start_ends(tmp_path):
    with pytest.raises(FileNotFoundError):
        OperatorProcess(
            [sys.executable], kubeconfig=KUBECONFIG, folder=tmp_path / "none", server="https://server.example"
        )
    assert "network of an operator" not in [thread.name for thread in threading.enumerate()]


def test_operator_that_cannot_be_killed_is_a_failure(monkeypatch):
    monkeypatch.setattr(process, "KILL_SECONDS", 0.01)
    operator = python("import signal", "print('up')", "signal.pause()")
    with monkeypatch.context() as patch:
        patch.setattr(OperatorProcess, "_send", lambda *_: None)
        with pytest.raises(Failure, match="cannot be killed: does it run as another user"):
            operator.kill()
    monkeypatch.setattr(process, "KILL_SECONDS", SECONDS)
    operator.kill()
