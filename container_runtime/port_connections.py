"""Connections of clients to ports of processes, and to others that this process has opened."""

import asyncio
from contextlib import suppress
from typing import Final

from mockube.component_base import supervision
from mockube.component_base.clock import Clock

from .process_port import ProcessPort
from .streams import ClientConnection, StreamsClosed

READ: Final = 32 << 10
LEAVE_SECONDS: Final = 1.0


async def connect_port(port: ProcessPort, clock: Clock, client: ClientConnection) -> str:
    """Connect a client to a port until both have ended; return the error, or ""."""
    try:
        reader, writer = await port.connect()
    except OSError:
        return f"dial tcp4 {port.host}:{port.port}: connect: connection refused"
    return await relay(reader, writer, clock, client)


async def relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clock: Clock, client: ClientConnection
) -> str:
    """Forward between a client and an open connection until both have ended; return "".

    When one has left, all that it sent is delivered. The other one can still send for a second, as with containerd.
    """
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
