"""The names of aiohttp that are not public: they are in one file, and mean what that file says.

`python -m tools.aiohttp_versions` runs these tests with each release of aiohttp that is allowed.
"""

import ast
import asyncio
import importlib
import inspect
import pkgutil
import re
import tomllib
from textwrap import dedent

import aiohttp
import pytest
from aiohttp import web

import mockube.apiserver.http
import mockube.kubelet.server
from mockube.component_base.aiohttp_protocol import (
    MalformedRequest,
    SerialProtocol,
    message_of,
)
from tests.support.event_loop import yield_to_loop
from tests.support.server.fake_transport import FakeTransport
from tools.aiohttp_versions import ALLOWED, is_allowed
from tools.packages import ROOT

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"


IDLE_SECONDS = 90.0
READ_BUFFER = 1 << 16


class Connection(SerialProtocol):
    async def serve_request(self, _message, _payload):
        return True


@pytest.fixture
async def connection():
    """A connection whose requests are parsed; they are served when the event loop runs."""
    server = web.Server(None)
    settings = {"read_bufsize": READ_BUFFER, "keepalive_timeout": IDLE_SECONDS}
    connection = Connection(server, loop=asyncio.get_running_loop(), **settings)
    FakeTransport(connection)
    yield connection
    await server.shutdown(0.01)


def test_installed_release_is_allowed():
    assert is_allowed(aiohttp.__version__), f"{aiohttp.__version__} is not in {ALLOWED}"
    assert ALLOWED in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.14.0", False),
        ("3.14.1", True),
        ("3.15.0rc1", True),
        ("3.15", True),
        ("3.16.0", False),
        ("4.0.0", False),
    ],
)
def test_release_is_allowed_as_in_pyproject(release, expected):
    assert is_allowed(release) == expected


async def test_parsed_requests_wait_in_queue(connection):
    connection.parse(GET * 3)
    assert [message_of(message).method for message, _ in connection.requests] == ["GET"] * 3


async def test_refused_request_waits_in_queue_with_its_error(connection):
    connection.parse(b"\0\r\n\r\n")
    [(message, _)] = connection.requests
    assert isinstance(message, MalformedRequest)
    assert isinstance(message.exc, Exception)
    assert message_of(message).should_close


async def test_data_behind_upgrade_are_parsed_when_it_is_declined(connection):
    connection.parse(UPGRADE + GET)
    assert connection.is_upgraded
    assert len(connection.requests) == 1
    connection.requests.clear()
    connection.decline_upgrade()
    assert not connection.is_upgraded
    assert len(connection.requests) == 1


async def test_data_behind_upgrade_are_taken_once(connection):
    connection.parse(UPGRADE + b"\x81\x00")
    connection.parse(b"\x81\x01")
    assert connection.take_upgrade_tail() == b"\x81\x00\x81\x01"
    assert connection.take_upgrade_tail() == b""


async def test_unread_body_pauses_reading(connection):
    connection.parse(BODY)
    assert not connection.is_reading_paused
    connection.parse(b"a" * (3 * READ_BUFFER))
    assert connection.is_reading_paused


async def test_closed_connection_ignores_data(connection):
    assert not connection.is_closed
    connection.force_close()
    assert connection.is_closed
    connection.parse(GET)
    assert not connection.requests


async def test_full_queue_lets_parser_wait_until_there_is_room(connection):
    connection.parse(GET * 100)
    assert connection.waits_for_room
    count = len(connection.requests)
    assert count < 100
    while connection.requests:
        connection.requests.popleft()
        connection.note_taken_request()
        count += connection.waits_for_room is False
    assert not connection.waits_for_room


async def test_idle_connection_is_closed_by_one_timer(connection):
    now, timers = connection._loop.time(), []
    for _ in range(2):
        connection.data_received(GET)
        await yield_to_loop(20)
        timers.append(connection._keepalive_handle)
    assert timers[0] is timers[1] is not None
    assert connection._next_keepalive_close_time >= now + IDLE_SECONDS
    connection._next_keepalive_close_time = 0
    connection._process_keepalive()
    assert connection.is_closed


def our_classes():
    """Yield the classes of ours that inherit from one of aiohttp's."""
    for package in (mockube.apiserver.http, mockube.kubelet.server):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for value in vars(module).values():
                if inspect.isclass(value) and value.__module__ == found.name:
                    bases = [base for base in value.__mro__ if base.__module__.startswith("aiohttp.")]
                    if bases:
                        yield value, bases


def private_names(owner):
    return {
        node.attr
        for node in ast.walk(ast.parse(dedent(inspect.getsource(owner))))
        if isinstance(node, ast.Attribute) and re.fullmatch(r"_[a-z]\w*", node.attr)
    }


@pytest.mark.thorough
def test_no_other_file_uses_private_names_of_aiohttp():
    found = {}
    for owner, bases in our_classes():
        names = {name for base in bases for name in dir(base)}.union(*map(private_names, bases))
        if used := private_names(owner) & names:
            found[owner.__name__] = used
    assert not found
