"""Let other tasks run, and wait for what they do, without a clock: nothing here sleeps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from types import coroutine

PATIENCE = 60.0
"""Seconds after which a test that waits has failed; never what a passing test waits for, on a busy machine either."""


@coroutine
def turn() -> Generator[None, None, None]:
    """Let every other task that can run do so once."""
    yield


async def turns(count: int) -> None:
    for _ in range(count):
        await turn()


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that another task brings about."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await turn()


async def soon(iterator: AsyncIterator):
    """The next item of an iterator that has one coming."""
    async with asyncio.timeout(PATIENCE):
        return await anext(iterator)
