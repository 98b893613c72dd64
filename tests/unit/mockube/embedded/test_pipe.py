"""The pipe between a server that writes chunks and a reader in the same event loop."""

import asyncio

import pytest

from mockube.embedded import pipe
from mockube.embedded.pipe import Pipe
from tests.support.event_loop import yield_to_loop


async def chunks_of(made):
    return [chunk async for chunk in made.chunks()]


async def test_pipe_delivers_written_chunks_until_end():
    made = Pipe()
    reading = asyncio.create_task(chunks_of(made))
    await made.begin()
    await made.write([b"one"])
    await made.write([b" and two"])
    await yield_to_loop(3)
    await made.write([b"three"])
    await made.end()
    assert await reading == [b"one and two", b"three"]
    assert made.has_begun


async def test_pipe_may_close_before_begin():
    made = Pipe()
    made.close()
    await made.wait_started()
    assert (made.has_begun, await chunks_of(made)) == (False, [])


async def test_write_to_full_pipe_waits():
    made = Pipe()
    await made.write([b"x" * (pipe.MAX_BUFFERED_BYTES + 1)])
    writing = asyncio.create_task(made.write([b"more"]))
    await yield_to_loop(3)
    assert not writing.done()
    chunks = made.chunks()
    assert len(await anext(chunks)) == pipe.MAX_BUFFERED_BYTES + 1
    await writing
    assert await anext(chunks) == b"more"
    await chunks.aclose()


async def test_write_to_closed_pipe_raises():
    made = Pipe()
    await made.write([b"x" * (pipe.MAX_BUFFERED_BYTES + 1)])
    writing = asyncio.create_task(made.write([b"more"]))
    await yield_to_loop(3)
    made.close()
    with pytest.raises(ConnectionResetError):
        await writing
