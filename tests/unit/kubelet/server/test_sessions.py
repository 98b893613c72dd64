"""Sessions of clients that have left: their commands continue, and keep no connection."""

import asyncio
import weakref

import pytest

from mockube.container_runtime.streams import STDOUT, StreamsClosed
from mockube.kubelet.server import limits
from mockube.kubelet.server.sessions import Sessions
from mockube.kubelet.server.websocket_streams import WebSocketStreams
from tests.support.event_loop import yield_to_loop


async def test_oldest_command_without_a_client_ends_beyond_a_limit():
    sessions = Sessions()
    commands = [
        sessions.start("a command", asyncio.Event().wait()) for _ in range(limits.MAX_LEFT_COMMANDS + 2)
    ]
    for command in commands:
        sessions.leave(command)
    await yield_to_loop(10)
    assert [number for number, command in enumerate(commands) if command.cancelled()] == [0, 1]
    await sessions.end()


class Socket:
    ws_protocol = "v5.channel.k8s.io"

    async def send_bytes(self, data): ...

    async def close(self): ...


async def test_command_that_continues_does_not_keep_its_clients_socket():
    socket = Socket()
    kept = weakref.ref(socket)
    streams = WebSocketStreams(socket, frozenset({STDOUT}))
    await streams.write(STDOUT, b"a")
    del socket
    await streams.finish(b"")
    assert kept() is None
    with pytest.raises(StreamsClosed):
        await streams.write(STDOUT, b"b")
