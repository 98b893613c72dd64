"""Connections of clients to ports of this machine."""

import asyncio
from contextlib import suppress
from typing import Final

from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.container_runtime.streams import ClientConnection, StreamsClosed

READ: Final = 32 << 10
LEAVE_SECONDS: Final = 1.0


async def connect_port(port: int, clock: Clock, client: ClientConnection, host: str = "127.0.0.1") -> str:
    """Connect a client to a port of this machine until both have ended; return the error, or "".

    When one has left, all that it sent is delivered. The other one can still send for a second, as with containerd.
    """
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return f"dial tcp4 {host}:{port}: connect: connection refused"
    sender = supervision.start("a connection to a process", _send_to(writer, client))
    receiver = supervision.start("a connection from a process", _receive_from(reader, client))

    async def run() -> None:
        await supervision.run_until(client.departure.wait(), asyncio.wait({receiver}))
        if not receiver.done():
            await asyncio.wait({sender})
            await _wait(receiver, clock)
        elif await client.end():
            await _wait(sender, clock)

    try:
        await supervision.run_with(run(), background_tasks=[sender, receiver])
    finally:
        writer.close()
    return ""


async def _wait(task: "asyncio.Task[None]", clock: Clock) -> None:
    with suppress(TimeoutError):
        async with supervision.timeout(clock.real, LEAVE_SECONDS):
            await asyncio.wait({task})


async def _send_to(writer: asyncio.StreamWriter, stream: ClientConnection) -> None:
    with suppress(ConnectionError, StreamsClosed):
        while data := await stream.read(READ):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _receive_from(reader: asyncio.StreamReader, stream: ClientConnection) -> None:
    """Forward what a port sends, or discard it when the client has left: its input may not be delivered yet."""
    with suppress(ConnectionError):
        with suppress(StreamsClosed):
            while data := await reader.read(READ):
                await stream.write(data)
        while await reader.read(READ):
            pass
