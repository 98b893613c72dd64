"""Commands and replies of Redis are read as they were written, whatever characters they have."""

import pytest

from mockube.container_runtime.simulated.shell.network_programs.redis_protocol import (
    ErrorReply,
    array,
    commands_in,
    encode_command,
    nested,
    replies_in,
)


def test_command_is_read_as_it_was_written():
    words = ["SET", "a b", "x\r\n*1\r\n$4\r\nPING\r\nä\udcff", ""]
    data = encode_command(words) + b"get  a\r\n\r\n" + encode_command(["PING"])
    assert [*commands_in(data)] == [words, ["get", "a"], ["PING"]]


@pytest.mark.parametrize(
    "data", [b"*2\r\n$3\r\nGET\r\n", b"*1\r\n$9\r\nGET\r\n", b"*1\r\nGET\r\n", b"*99999999\r\n"]
)
def test_command_that_is_not_complete_is_left_out(data):
    assert [*commands_in(data)] == []


def test_replies_are_read_with_their_kinds():
    lists = nested([array(["a", "b\r\nc"]), ":1\r\n"])
    data = f"+OK\r\n-ERR no\r\n:-2\r\n$-1\r\n$0\r\n\r\n{lists}*0\r\n".encode()
    assert [*replies_in(data)] == ["OK", ErrorReply("ERR no"), -2, None, "", [["a", "b\r\nc"], 1], []]


def test_reply_that_is_not_complete_ends():
    assert [*replies_in(b"*3\r\n:1\r\n")] == [[1]]
