"""What is kept of an operator's output, what its end says, which commands are refused and when it works: without a process."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mockube.failure import UsageError
from mockube.launch import IN_CLUSTER_VARIABLES, KUBECONFIG_VARIABLES
from mockube.operators import process
from mockube.operators.process import (
    OperatorLog,
    check_command,
    command_in_namespaces,
    end_message,
    operator_environment,
)


@pytest.mark.parametrize(
    ("writes", "text"),
    [
        ([], ""),
        ([b"ab"], "ab"),
        ([b"abcdef"], "abcdef"),
        ([b"abc", b"def"], "abcdef"),
        ([b"abcdefg"], "abc\n... 1 bytes are left out ...\nefg"),
        ([b"abc", b"de", b"fg", b"hi"], "abc\n... 3 bytes are left out ...\nghi"),
        ([b"abc", *[b"x"] * 9, b"y"], "abc\n... 7 bytes are left out ...\nxxy"),
    ],
)
def test_log_has_its_first_and_its_last_bytes(writes, text):
    log = OperatorLog(head_bytes=3, tail_bytes=3)
    for data in writes:
        log.write(data)
    assert (log.text(), log.size) == (text, sum(map(len, writes)))
    assert sum(map(len, log._tail)) < 9  # what is left out is not kept


STACK = "panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:12\nexit status 2\n"
USAGE = "bad flag\nUsage of operator:\n  -x string\n    \tname\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("a\n b \n\n", "b"),
        (STACK, "panic: no"),
        (USAGE, "bad flag"),
        ("no\ncreated by main.start in goroutine 7\n\t/src/a.go:1\n", "no"),
        ("\tx\n  y\n", "y"),
        ("Usage of no flags\n", "Usage of no flags"),
    ],
)
def test_last_line_that_says_something(text, line):
    log = OperatorLog()
    log.write(text.encode())
    assert log.last_line() == line


@pytest.mark.parametrize(
    ("text", "command", "message"),
    [
        ("", (), "the operator exited with code 3, and printed nothing"),
        ("no\n", ("a", "b c"), "a 'b c' exited with code 3: no"),
    ],
)
def test_end_of_an_operator_says_its_code_and_its_last_line(text, command, message):
    log = OperatorLog()
    log.write(text.encode())
    assert end_message(SimpleNamespace(code=3, log=log), command) == message


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ([], "no command for the operator"),
        ([""], "no command for the operator"),
        (["no-such-program"], "no-such-program: command not found"),
        (["./absent"], "./absent: command not found"),
        (["./file"], "./file: not an executable file"),
        (["./folder"], "./folder: not an executable file"),
        (["./program"], ""),
        (["sh", "-c", "x"], ""),
    ],
)
def test_command_that_cannot_be_started_is_refused(tmp_path, command, problem):
    (tmp_path / "file").touch(0o644)
    (tmp_path / "program").touch(0o755)
    (tmp_path / "folder").mkdir()
    if problem:
        with pytest.raises(UsageError) as refused:
            check_command(command, tmp_path)
        assert str(refused.value) == problem
    else:
        check_command(command, tmp_path)


def test_environment_of_an_operator_hides_the_cluster_around_it(monkeypatch):
    for name in IN_CLUSTER_VARIABLES:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("COLOR", "blue")
    environment = operator_environment(Path("/k"), {"SIZE": "1"})
    assert not {*IN_CLUSTER_VARIABLES} & environment.keys()
    assert {environment[name] for name in KUBECONFIG_VARIABLES} == {"/k"}
    assert (environment["COLOR"], environment["SIZE"]) == ("blue", "1")


def test_command_without_mounts_and_network_is_started_as_it_is():
    assert command_in_namespaces(("a", "b")) == ["a", "b"]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({1: "S"}, False),
        ({1: "R"}, True),
        ({1: "D"}, True),
        ({1: "T"}, False),
        ({1: "S", 2: "R"}, True),
        ({1: "S", 2: None}, False),
    ],
    ids=["sleeps", "runs", "waits for a disk", "stopped", "child runs", "child has ended"],
)
def test_operator_works_while_a_thread_of_it_runs(monkeypatch, states, expected):
    """The second process is a child of the first one."""

    def read(pid, name):
        if states.get(pid) is None:
            raise FileNotFoundError
        if name.endswith("children"):
            return b"2 " if pid == 1 and 2 in states else b""
        return f"{pid} (a) b) {states[pid]} 1".encode()

    monkeypatch.setattr(process, "read_process_file", read)
    monkeypatch.setattr(process, "_threads", lambda pid: [str(pid)])
    assert process.is_working(1) is expected


def test_processes_of_an_operator_are_found_by_their_environment(monkeypatch):
    environments = {1: b"A=b\0MOCKUBE_OPERATOR=7-1\0", 2: b"MOCKUBE_OPERATOR=7-11\0", 3: b""}

    def read(pid, _):
        if pid not in environments:
            raise PermissionError
        return environments[pid]

    monkeypatch.setattr(process, "read_process_file", read)
    monkeypatch.setattr(process, "_all_pids", lambda: [1, 2, 3, 4])
    assert [*process.marked_processes("7-1")] == [1]
    assert [*process.marked_processes("7-1", [2, 3])] == []


def test_process_that_has_another_start_is_not_killed(monkeypatch):
    killed = []
    monkeypatch.setattr(process, "read_process_stat", lambda pid: SimpleNamespace(started=str(pid)))
    monkeypatch.setattr(process.os, "kill", lambda pid, number: killed.append((pid, number.name)))
    process.kill_processes({1: "1", 2: "9"})
    assert killed == [(1, "SIGKILL")]
