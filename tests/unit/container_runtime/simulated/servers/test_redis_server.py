"""A server of Redis replies as Redis does to the commands that it knows, and keeps its keys within bounds."""

import pytest

from mockube.container_runtime.simulated.servers.redis_parameters import (
    parameters_of_file,
    parameters_of_options,
)
from mockube.container_runtime.simulated.servers.redis_server import MAX_BYTES, RedisServer


def replies(*commands, server=None, password="", now=0.0):
    data = "".join(f"{command}\r\n" for command in commands).encode()
    return (server or RedisServer()).reply(data, password, now).decode()


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (["PING"], "+PONG\r\n"),
        (["set a 1", "GET a", "get b"], "+OK\r\n$1\r\n1\r\n$-1\r\n"),
        (["SET a 1 NX", "SET a 2 NX", "GET a"], "+OK\r\n$-1\r\n$1\r\n1\r\n"),
        (["INCR n", "INCRBY n 4", "DECR n"], ":1\r\n:5\r\n:4\r\n"),
        (["SET a x", "INCR a"], "+OK\r\n-ERR value is not an integer or out of range\r\n"),
        (["RPUSH l a b", "LPUSH l c", "LRANGE l 0 -1"], ":2\r\n:3\r\n*3\r\n$1\r\nc\r\n$1\r\na\r\n$1\r\nb\r\n"),
        (["RPUSH l a", "GET l", "TYPE l"], ":1\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n+list\r\n"),
        (["HSET h f 1", "HGETALL h"], ":1\r\n*2\r\n$1\r\nf\r\n$1\r\n1\r\n"),
        (["SET a 1", "EXISTS a b", "DEL a", "DBSIZE"], "+OK\r\n:1\r\n:1\r\n:0\r\n"),
        (["GET"], "-ERR wrong number of arguments for 'get' command\r\n"),
        (["GEOADD x"], "-ERR mockube: the command GEOADD of Redis is not simulated\r\n"),
        (["QUIT", "PING"], "+OK\r\n"),
        (["CONFIG GET maxmemory"], "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n"),
        (["CONFIG SET maxmemory 2mb", "CONFIG GET maxmemor?"], "+OK\r\n*2\r\n$9\r\nmaxmemory\r\n$7\r\n2097152\r\n"),
        (["CONFIG GET nope"], "-ERR mockube: the parameter nope of Redis is not simulated\r\n"),
        (["CONFIG REWRITE x"], "-ERR mockube: CONFIG REWRITE x of Redis is not simulated\r\n"),
        (["*2\r\n$3\r\nGET\r\n$1\r\na"], "$-1\r\n"),
    ],
)  # fmt: skip
def test_commands(commands, expected):
    assert replies(*commands) == expected


def test_password_is_needed():
    assert replies("GET a", password="p") == "-NOAUTH Authentication required.\r\n"
    assert replies("AUTH x", "PING", password="p").startswith("-WRONGPASS ")
    assert replies("AUTH p", "PING", password="p") == "+OK\r\n+PONG\r\n"


def test_key_expires():
    server = RedisServer()
    assert replies("SET a 1 EX 10", "TTL a", server=server) == "+OK\r\n:10\r\n"
    assert replies("GET a", server=server, now=9.0) == "$1\r\n1\r\n"
    assert replies("GET a", server=server, now=10.0) == "$-1\r\n"


def test_keys_are_bounded():
    server = RedisServer()
    assert replies(f"SET a {'x' * (MAX_BYTES // 2)}", server=server) == "+OK\r\n"
    assert replies(f"SET b {'x' * MAX_BYTES}", server=server).startswith("-OOM ")
    assert replies("EXISTS a b", server=server) == ":1\r\n"


def test_parameters_are_those_of_the_file_and_of_the_options():
    found = parameters_of_file("# a\nmaxmemory 2mb\nmaxmemory-policy allkeys-lru\nunknown x\n")
    assert found == {"maxmemory": "2097152", "maxmemory-policy": "allkeys-lru"}
    words = ["redis-server", "/a.conf", "--maxmemory", "100k", "--save", "60", "1", "--unknown", "x"]
    assert parameters_of_options(words) == {"maxmemory": "100000", "save": "60 1"}
