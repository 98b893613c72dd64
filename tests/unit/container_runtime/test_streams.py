"""The queues between a client and a container: in order, complete, bounded; what the reader leaves does not stop the sender."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime import limits
from mockube.container_runtime.output import MAX_REST, MAX_UNREAD, OUTPUT_END, ContainerOutput
from mockube.container_runtime.streams import (
    InputStream,
    ProgramStreams,
    StreamsClosed,
    TerminalSize,
    TerminalSizes,
)


async def turns():
    for _ in range(10):
        await yield_to_loop()


async def start_waiting(work):
    """Start a task that waits."""
    task = asyncio.create_task(work)
    await turns()
    assert not task.done()
    return task


async def test_input_is_read_completely_before_its_end():
    stream = InputStream()
    for chunk in (b"abc", b"", b"defgh"):
        await stream.feed(chunk)
    await stream.end()
    await stream.feed(b"too late")
    assert [await stream.read(limit) for limit in (2, 9, 4, 9, 9, 9)] == [
        b"ab",
        b"c",
        b"defg",
        b"h",
        b"",
        b"",
    ]


async def test_full_input_stops_its_feeder_until_it_is_read():
    stream = InputStream()
    await stream.feed(b"x" * limits.MAX_UNREAD)
    feeder = await start_waiting(stream.feed(b"y"))
    ending = asyncio.create_task(stream.end())
    await stream.read(1)
    await feeder
    await ending
    assert len(await stream.read(1 << 30)) == limits.MAX_UNREAD - 1


async def test_discarded_input_does_not_stop_its_feeder():
    stream = InputStream()
    await stream.feed(b"x" * limits.MAX_UNREAD)
    feeder = await start_waiting(stream.feed(b"y"))
    stream.discard()
    await feeder
    await stream.feed(b"z" * limits.MAX_UNREAD)
    assert await stream.read(1) == b""


async def test_latest_size_of_terminal_is_read():
    sizes = TerminalSizes()
    for width in range(1000):  # without a reader, the client does not wait
        await sizes.feed(b'{"Width": %d, "Hei' % width)
        await sizes.feed(b'ght": 24}')
    assert await sizes.next() == TerminalSize(999, 24)
    reader = await start_waiting(sizes.next())
    await sizes.feed(b'{"Width": 3} {"Width": "a", "Height": 1}{"Width":80,"Height":25}')
    assert await reader == TerminalSize(80, 25)
    await sizes.end()
    assert await sizes.next() is None


async def test_slow_client_stops_container_until_it_reads_or_leaves():
    output = ContainerOutput()
    with output.listen() as slow, output.listen() as leaving:
        await output.send(1, b"x" * MAX_UNREAD)
        sender = await start_waiting(output.send(2, b"y"))
        await leaving.get()
        await turns()
        assert not sender.done()
        assert await slow.get() == (1, b"x" * MAX_UNREAD)
        await sender
        assert await slow.get() == (2, b"y")
        sender = await start_waiting(send_all(output, [b"z" * MAX_UNREAD, b"z"], slow))
        leaving.close()
        await sender


async def send_all(output, pieces, reader):
    for piece in pieces:
        await output.send(1, piece)
        assert await reader.get() == (1, piece)


async def test_rest_of_output_is_queued_after_end_of_process():
    output = ContainerOutput()
    with output.listen() as client:
        await output.send(1, b"x" * MAX_UNREAD)
        sender = await start_waiting(output.send(1, b"y"))
        output.release()
        await sender
        await output.send(1, b"z" * MAX_REST)
        sender = await start_waiting(output.send(1, b"more than the pipes have"))
        output.end()
        pieces = [await client.get() for _ in range(3)]
        await sender
    assert [data[:1] for _, data in pieces] == [b"x", b"y", b"z"]
    assert OUTPUT_END == (0, b"")


@pytest.mark.parametrize("size", [1, 1 << 20])
async def test_program_continues_without_its_client_until_it_has_written_too_much(size):
    written = []

    async def write(stream, data):
        if written:
            raise StreamsClosed
        written.append((stream, data))

    program = ProgramStreams(SimpleNamespace(stdin=None, sizes=TerminalSizes(), write=write))
    await program.write(1, b"seen")
    for _ in range(limits.MAX_DISCARDED >> 20):
        await program.write(1, b"x" * size)
    assert written == [(1, b"seen")]
    with pytest.raises(StreamsClosed) if size > 1 else contextlib.nullcontext():
        await program.write(1, b"x" * (1 << 20))
