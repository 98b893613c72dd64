import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mockube.failure import Failure
from mockube.operators import function_process
from mockube.operators.function_process import FunctionServer
from mockube.operators.process import descendants, marked_processes

KUBECONFIG = Path("/nonexistent/kubeconfig")
SECONDS = 60.0


def run(main, **environment):
    """Run a function to its end; return its code and its output."""
    with closing(FunctionServer(main)) as server:
        operator = server.start(KUBECONFIG, environment)
        assert server.wait(operator.pid, SECONDS) is not None
        operator._reader.join(SECONDS)
        return operator.code, operator.log.text()


def print_environment(kubeconfig):
    print(kubeconfig, os.environ["KUBECONFIG"], os.environ["COLOR"], flush=True)  # noqa: T201 - it is the log of an operator


def wait_for_signal(_):
    print("up", flush=True)  # noqa: T201 - as above
    signal.pause()


def ignore_signal(_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait_for_signal(_)


def test_function_has_kubeconfig_and_variables():
    assert run(print_environment, COLOR="red") == (0, f"{KUBECONFIG} {KUBECONFIG} red\n")


def test_environment_may_be_larger_than_a_packet():
    assert run(print_environment, COLOR="red" * 100_000)[0] == 0


def fail(_):
    raise ValueError("wrong")


@pytest.mark.parametrize(
    ("main", "code"),
    [
        pytest.param(lambda _: sys.exit(3), 3, id="exit code"),
        pytest.param(lambda _: sys.exit("text"), 1, id="exit with a text"),
        pytest.param(fail, 1, id="error"),
    ],
)
def test_exit_codes(main, code):
    assert run(main)[0] == code


def test_error_is_in_the_log():
    assert "ValueError: wrong" in run(fail)[1]


@pytest.mark.parametrize(
    ("main", "grace", "code", "ignored"),
    [
        pytest.param(wait_for_signal, SECONDS, 128 + signal.SIGTERM, False, id="ends"),
        pytest.param(ignore_signal, 0.01, 128 + signal.SIGKILL, True, id="ignores it"),
        pytest.param(wait_for_signal, 0, 128 + signal.SIGKILL, False, id="crash"),
    ],
)
def test_stop(main, grace, code, ignored):
    with closing(FunctionServer(main)) as server:
        operator = server.start(KUBECONFIG, {})
        while "up" not in operator.log.text():
            operator._reader.join(0.01)
        end = operator.stop(grace)
        assert (end.code, end.ignored_term) == (code, ignored)
        assert operator.stop() is end
        assert not [*marked_processes(operator._marker)]


def test_process_that_starts_too_late_is_killed_and_not_taken_for_the_next_one(monkeypatch):
    with closing(FunctionServer(wait_for_signal)) as server:
        os.kill(server.pid, signal.SIGSTOP)
        with monkeypatch.context() as patch:
            patch.setattr(function_process, "_START_SECONDS", 0.01)
            with pytest.raises(Failure, match="does not answer"):
                server.start(KUBECONFIG, {})
        os.kill(server.pid, signal.SIGCONT)
        operator = server.start(KUBECONFIG, {"COLOR": "red"})
        while len(server._codes) < 1:  # the end of the first one
            operator._reader.join(0.01)
        assert operator.pid not in server._codes
        assert server._started == {}


def test_several_operators_run_at_a_time():
    with closing(FunctionServer(wait_for_signal)) as server:
        operators = [server.start(KUBECONFIG, {}) for _ in range(5)]
        assert len({operator.pid for operator in operators}) == 5
        operators[2].kill()
        assert [operator.code is None for operator in operators] == [True, True, False, True, True]


def test_operators_end_with_the_server():
    server = FunctionServer(wait_for_signal)
    operator = server.start(KUBECONFIG, {})
    server.close()
    operator._reader.join(SECONDS)  # the end of its pipe
    assert not [*marked_processes(operator._marker)]


def start_child_and_wait(_):
    if not os.fork():
        os.setsid()
        print(f"child {os.getpid()}", flush=True)  # noqa: T201 - as above
        signal.pause()
    signal.pause()


def leave_child(_):
    ours, theirs = os.pipe()
    if not os.fork():
        os.setsid()
        os.write(theirs, b"1")
        print(f"child {os.getpid()}", flush=True)  # noqa: T201 - as above
        signal.pause()
    os.read(ours, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
@pytest.mark.parametrize("grace", [pytest.param(0, id="crash"), pytest.param(SECONDS, id="stop")])
def test_forked_child_in_a_session_of_its_own_is_killed(grace):
    with closing(FunctionServer(start_child_and_wait)) as server:
        operator = server.start(KUBECONFIG, {})
        while "child" not in operator.log.text():
            operator._reader.join(0.01)
        (child,) = descendants(operator.pid)
        operator.stop(grace)
        operator._reader.join(SECONDS)  # the child had the pipe
        assert not operator._reader.is_alive()
        assert str(child) in operator.log.text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_child_that_an_operator_leaves_ends_with_the_server():
    server = FunctionServer(leave_child)
    operator = server.start(KUBECONFIG, {})
    assert server.wait(operator.pid, SECONDS) == 0
    operator.stop()
    assert operator._reader.is_alive()  # the child has the pipe
    server.close()
    operator._reader.join(SECONDS)
    assert not operator._reader.is_alive()


def test_operator_is_killed_before_it_has_a_group():
    with closing(FunctionServer(wait_for_signal)) as server:
        for _ in range(3):
            assert server.start(KUBECONFIG, {}).kill().code == 128 + signal.SIGKILL


def test_operator_that_cannot_be_killed_is_a_failure(monkeypatch):
    monkeypatch.setattr(function_process, "KILL_SECONDS", 0.01)
    with closing(FunctionServer(lambda _: signal.pause())) as server:
        operator = server.start(KUBECONFIG, {})
        with monkeypatch.context() as patch:
            patch.setattr(operator, "_send", lambda *_: None)
            patch.setattr(function_process, "kill_marked", lambda *_: None)
            with pytest.raises(Failure, match="cannot be killed: does it run as another user"):
                operator.kill()


def test_code_of_an_earlier_process_with_the_same_id_is_forgotten():
    with closing(FunctionServer(wait_for_signal)) as server:
        server._codes = dict.fromkeys(range(1, 1 << 17), 0)
        assert server.start(KUBECONFIG, {}).code is None
