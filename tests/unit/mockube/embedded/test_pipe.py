"""What a server writes bit by bit, and a reader in the same loop."""

import asyncio

import pytest

from mockube.embedded import pipe
from mockube.embedded.pipe import Pipe
from tests.support.turns import turns


async def all_of(made):
    return [chunk async for chunk in made.chunks()]


async def test_what_is_written_is_read_and_then_it_ends():
    made = Pipe()
    reading = asyncio.create_task(all_of(made))
    await made.begin()
    await made.write([b"one"])
    await made.write([b" and two"])
    await turns(3)
    await made.write([b"three"])
    await made.end()
    assert await reading == [b"one and two", b"three"]
    assert made.has_begun


async def test_it_may_end_without_a_beginning():
    made = Pipe()
    made.close()
    await made.wait_begun()
    assert (made.has_begun, await all_of(made)) == (False, [])


async def test_who_writes_more_than_is_read_waits():
    made = Pipe()
    await made.write([b"x" * (pipe.FULL + 1)])
    writing = asyncio.create_task(made.write([b"more"]))
    await turns(3)
    assert not writing.done()
    chunks = made.chunks()
    assert len(await anext(chunks)) == pipe.FULL + 1
    await writing
    assert await anext(chunks) == b"more"
    await chunks.aclose()


async def test_nobody_writes_to_a_reader_who_is_gone():
    made = Pipe()
    await made.write([b"x" * (pipe.FULL + 1)])
    writing = asyncio.create_task(made.write([b"more"]))
    await turns(3)
    made.close()
    with pytest.raises(ConnectionResetError):
        await writing
