"""A connection that is hijacked from HTTP: what remains of it when its client leaves."""

import asyncio
from types import SimpleNamespace

import pytest

from mockube.container_runtime.streams import StreamsClosed
from mockube.kubelet.server.upgrade import UpgradedConnection, UpgradedResponse, upgrade


class Transport(asyncio.Transport):
    """Records what is written, and the protocol."""

    def __init__(self, *, is_closing=False):
        super().__init__()
        self.written, self.protocol, self.is_reading, self._is_closing = b"", None, False, is_closing

    def is_closing(self):
        return self._is_closing

    def get_extra_info(self, _, default=None):
        return default

    def write(self, data):
        self.written += data

    def set_protocol(self, protocol):
        self.protocol = protocol

    def resume_reading(self):
        self.is_reading = True

    def close(self):
        self._is_closing = True


class Replaced:
    """The protocol of HTTP."""

    def __init__(self):
        self.losses = []

    def connection_lost(self, error):
        self.losses.append(error)


@pytest.mark.parametrize("transport", [None, Transport(is_closing=True)], ids=["lost", "closing"])
async def test_client_that_has_left_is_not_upgraded(transport):
    with pytest.raises(ConnectionResetError, match="the client has disconnected"):
        upgrade(SimpleNamespace(transport=transport, protocol=Replaced()), {})


async def test_bytes_after_the_head_are_those_of_the_connection():
    transport, replaced = Transport(), Replaced()
    connection = upgrade(SimpleNamespace(transport=transport, protocol=replaced), {"Upgrade": "tcp"})
    assert (
        transport.written
        == b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
    )
    assert transport.is_reading
    transport.protocol.data_received(b"abc")
    assert await connection.read(2) == b"ab"
    assert not connection.departure.is_set()
    await connection.write(b"x")
    assert transport.written.endswith(b"\r\n\r\nx")
    assert await connection.end() is False
    await connection.close()
    assert transport.is_closing()


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["an end", "a reset"])
async def test_bytes_before_the_loss_of_a_connection_are_read(error):
    transport, replaced = Transport(), Replaced()
    connection = upgrade(SimpleNamespace(transport=transport, protocol=replaced), {})
    transport.protocol.data_received(b"abc")
    transport.protocol.connection_lost(error)
    assert replaced.losses == [error]
    assert [await connection.read(9), await connection.read(9)] == [b"abc", b""]
    assert connection.departure.is_set()
    await connection.close()


class BrokenWriter:
    def write(self, data):
        pass

    async def drain(self):
        raise BrokenPipeError


async def test_client_that_has_left_is_not_written_to():
    with pytest.raises(StreamsClosed):
        await UpgradedConnection(asyncio.StreamReader(), BrokenWriter()).write(b"x")


async def test_connection_is_not_used_for_another_request():
    response = UpgradedResponse()
    assert (response.status, response.keep_alive) == (101, False)
