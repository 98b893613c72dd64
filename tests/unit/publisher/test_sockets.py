"""Sockets of published ports: the first port that can be had, and what becomes of a client's connection."""

import asyncio
import errno
import socket

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.streams import StreamsClosed
from mockube.publisher import sockets
from mockube.publisher.sockets import NoSocket, accept, open_socket
from tests.support.publishing import ADDRESS


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (errno.EADDRINUSE, "port 80 of ::1 is taken by another program"),
        (errno.EACCES, "port 80 of ::1 needs rights that this process does not have"),
        (errno.EPERM, "port 80 of ::1 needs rights that this process does not have"),
        (errno.EADDRNOTAVAIL, "::1 is no address of this machine"),
        (errno.EINVAL, "port 80 of ::1: odd"),
    ],
)
def test_problem_of_a_port_is_named(number, problem):
    assert sockets._problem(OSError(number, "odd"), "::1", 80) == problem


def test_first_port_that_is_free_is_taken():
    with socket.create_server((ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        first = open_socket(ADDRESS, [port, port, 0])
        with first.listener:
            assert first.problem == f"port {port} of {ADDRESS} is taken by another program"
        second = open_socket(ADDRESS, [0, port])
        with second.listener:
            assert second.problem == ""
        with pytest.raises(NoSocket) as caught:
            open_socket(ADDRESS, [port, port])
        assert str(caught.value) == first.problem


def test_address_of_another_machine_has_no_ports():
    with pytest.raises(NoSocket, match=r"192\.0\.2\.1 is no address of this machine"):
        open_socket("192.0.2.1", [0])


def test_addresses_of_both_families_have_ports():
    for address, family in ((ADDRESS, socket.AF_INET), ("::1", socket.AF_INET6)):
        with open_socket(address, [0]).listener as listener:
            assert listener.family == family


def test_server_at_a_port_is_noticed():
    with socket.create_server((ADDRESS, 0)) as taken:
        address = taken.getsockname()
        assert sockets._has_server(*address)
    assert not sockets._has_server(*address)


class Pair:
    """A client, and its connection to a port."""

    async def open(self):
        self.clock, accepted = SteppedClock(), asyncio.Queue()
        self.listener = socket.create_server((ADDRESS, 0))
        self.server = await accept(self.listener, self.clock, accepted.put_nowait)
        self.reader, self.writer = await asyncio.open_connection(*self.listener.getsockname())
        self.connection = await accepted.get()
        return self

    async def end(self):
        self.server.close()
        self.writer.transport.abort()
        self.connection.reset()


@pytest.fixture
async def pair():
    made = await Pair().open()
    yield made
    await made.end()


async def test_connection_has_the_address_of_its_client_and_carries_bytes(pair):
    connection = pair.connection
    assert (connection.address, connection.port) == pair.writer.get_extra_info("sockname")
    pair.clock.advance(3)
    pair.writer.write(b"hello")
    assert await connection.read(3) == b"hel"
    assert connection.used_at == pair.clock.monotonic()
    await connection.write(b"answer")
    assert await pair.reader.readexactly(6) == b"answer"


async def test_end_of_a_client_is_read_while_it_still_receives(pair):
    pair.writer.write_eof()
    assert await pair.connection.read(9) == b""
    assert not pair.connection.departure.is_set()
    await pair.connection.write(b"last")
    assert await pair.connection.end()
    assert await pair.reader.read() == b"last"


async def test_lost_connection_is_noticed_without_a_read(pair):
    pair.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, sockets._RESETS)
    pair.writer.transport.abort()
    await pair.connection.departure.wait()
    with pytest.raises(StreamsClosed):
        await pair.connection.write(b"x")
    assert await pair.connection.read(9) == b""


async def test_closed_connection_sends_what_is_unsent(pair):
    await pair.connection.write(b"all")
    await pair.connection.close()
    assert await pair.reader.read() == b"all"


async def test_reset_breaks_the_connection(pair):
    pair.connection.reset()
    assert pair.connection.departure.is_set()
    with pytest.raises(ConnectionResetError):
        await pair.reader.read()
    pair.connection.reset()
    await pair.connection.end()


class BrokenStream:
    """A stream of which every call fails, as after the loss of the connection."""

    transport = property(lambda self: self)

    def set_write_buffer_limits(self, **_): ...

    def get_extra_info(self, name):
        return self if name == "socket" else None

    def setsockopt(self, *_):
        raise OSError

    def write(self, _): ...

    async def drain(self):
        raise ConnectionResetError

    async def read(self, _):
        raise ConnectionResetError

    def close(self): ...

    async def wait_closed(self):
        raise ConnectionResetError

    def write_eof(self):
        raise OSError


async def test_loss_of_a_connection_is_no_error_of_the_server():
    stream = BrokenStream()
    connection = sockets.SocketConnection(stream, stream, SteppedClock())
    assert (connection.address, connection.port) == ("", 0)
    assert await connection.read(1) == b""
    assert connection.departure.is_set()
    other = sockets.SocketConnection(stream, stream, SteppedClock())
    with pytest.raises(StreamsClosed):
        await other.write(b"x")
    assert other.departure.is_set()
    await other.end()
    await other.close()


@pytest.mark.parametrize(
    ("platform", "port", "is_taken"), [("darwin", 1, True), ("darwin", 0, False), ("linux", 0, False)]
)
def test_port_of_another_program_is_not_taken_over_on_other_systems(platform, port, is_taken, monkeypatch):
    """There, a socket of one address could be opened beside one of all addresses."""
    with socket.create_server((ADDRESS, 0)) as free:
        number = free.getsockname()[1] if port else 0
    monkeypatch.setattr(sockets.sys, "platform", platform)
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: socket.socket())
    if is_taken:
        with pytest.raises(NoSocket, match="is taken by another program"):
            open_socket(ADDRESS, [number])
    else:
        open_socket(ADDRESS, [number]).listener.close()


def test_linux_needs_no_look_for_a_server(monkeypatch):
    monkeypatch.setattr(sockets.sys, "platform", "linux")
    with socket.create_server((ADDRESS, 0)) as free:
        number = free.getsockname()[1]
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: socket.socket())
    open_socket(ADDRESS, [number]).listener.close()
