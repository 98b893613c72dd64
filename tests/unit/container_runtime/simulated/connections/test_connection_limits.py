"""Databases refuse connections beyond their maximum, as long as others stay open."""

from functools import partial

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.connections.connection_limits import (
    OpenConnections,
    limit_of_connections,
)
from mockube.container_runtime.simulated.connections.port_answers import OpenPort, open_port
from mockube.container_runtime.simulated.connections.ports import serve_port
from mockube.container_runtime.simulated.network.calls import Reply
from tests.support.images import IMAGES
from tests.support.shell_network import ShellNetwork, run_script

RUNNING = {
    "phase": "Running",
    "containerStatuses": [{"name": "c", "restartCount": 0, "state": {"running": {}}}],
}


def database(image, *arguments, **fields):
    described = {"name": "c", "image": image, **({"args": [*arguments]} if arguments else {}), **fields}
    return {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [described]}, "status": RUNNING}


@pytest.mark.parametrize(
    ("speaks", "fields", "limit"),
    [
        ("mysql", {}, 151),
        ("mysql", {"args": ["--max-connections=2"]}, 2),
        ("mysql", {"args": ["--max_connections", "7"]}, 7),
        ("postgres", {}, 100),
        ("postgres", {"args": ["-c", "max_connections=5"]}, 5),
        ("postgres", {"args": ["postgres", "-N", "6"]}, 6),
        ("postgres", {"env": [{"name": "POSTGRESQL_MAX_CONNECTIONS", "value": "20"}]}, 20),
        ("redis", {"args": ["--maxclients", "3"]}, 3),
    ],
)
def test_maximum_is_that_of_the_command_or_of_the_server(speaks, fields, limit):
    opened = OpenPort(
        speaks=speaks, container={"name": "c", **fields}, argv=("server", *fields.get("args", ()))
    )
    assert limit_of_connections(opened) == limit


class Client:
    def __init__(self, *pieces):
        self.pieces, self.received = [*pieces], b""

    async def read(self, _):
        return self.pieces.pop(0) if self.pieces else b""

    async def write(self, data):
        self.received += data


class Responses:
    def __init__(self):
        self.connections = OpenConnections(Records(), SteppedClock())

    open_port = staticmethod(partial(open_port, IMAGES))

    async def reply_to(self, *_):
        return b""


@pytest.mark.parametrize(
    ("pod", "port", "sent", "received"),
    [
        (database("mysql:8", "--max-connections=1"), 3306, [], b"\x17\0\0\0\xff\x10\x04Too many connections"),
        (database("redis", "--maxclients", "1"), 6379, [], b"-ERR max number of clients reached\r\n"),
        (
            database("postgres", "-c", "max_connections=1"),
            5432,
            [b"\0\0\0\x08\x04\xd2\x16\x2f", b"\0\0\0\x09\0\3\0\0\0"],
            b"NE\0\0\0",
        ),
    ],
)
async def test_client_is_refused_while_others_are_connected(pod, port, sent, received):
    responses, client = Responses(), Client(*sent)
    opened = open_port(IMAGES, pod, port)
    with responses.connections.hold(pod, opened) as refusal:
        assert not refusal
        await serve_port(pod, port, responses, client)
    assert client.received.startswith(received)
    assert not responses.connections.refusal(pod, opened)


def test_connection_counts_as_long_as_its_query_takes():
    clock, records, pod = SteppedClock(), Records(), database("mysql:8", "--max-connections=1")
    connections, opened = OpenConnections(records, clock), open_port(IMAGES, pod, 3306)
    connections.hold_for(pod, opened, 5.0)
    clock.advance(4)
    assert connections.refusal(pod, opened)
    clock.advance(1)
    assert not connections.refusal(pod, opened)
    connections.hold_for(pod, opened, 5.0)
    records.remove("u")
    assert not connections.refusal(pod, opened)


class FullNetwork(ShellNetwork):
    def answer(self, call):
        reply = super().answer(call)
        return (
            Reply(outcome="open", speaks="", is_full=True) if reply.is_open and not reply.records else reply
        )


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("mysql -h web -P 80 -e 'select 1'", 1, "ERROR 1040 (HY000): Too many connections\n"),
        ("psql -h web -p 80 -c 'select 1'", 2, 'psql: error: connection to server at "web" (10.0.0.7), port 80 failed: FATAL:  sorry, too many clients already\n'),
        ("mysqladmin -h web -P 80 ping", 1, "mysqladmin: connect to server at 'web' failed\nerror: 'Too many connections'\n"),
    ],
)  # fmt: skip
def test_clients_say_that_there_are_too_many_connections(command, code, text):
    result = run_script(command, network=FullNetwork())
    assert (result.code, result.err) == (code, text)


def test_query_that_waits_takes_its_time():
    result = run_script("mysql -h web -P 80 -e 'SELECT SLEEP(5)'; psql -h web -p 80 -tc 'select pg_sleep(2)'")
    assert (result.code, result.out) == (0, "SLEEP(5)\n0\n\n")
