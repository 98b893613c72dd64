"""Let other tasks run, and wait for their results, without a clock: nothing here sleeps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from types import coroutine

PATIENCE = 60.0
"""Seconds after which a waiting test fails; a passing test never waits this long, on a busy machine either."""


@coroutine
def turn() -> Generator[None, None, None]:
    """Let every other task that can run do so once."""
    yield


async def turns(count: int) -> None:
    for _ in range(count):
        await turn()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another task fulfils."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await turn()


async def soon(iterator: AsyncIterator):
    """Return the next item of an iterator that has one soon."""
    async with asyncio.timeout(PATIENCE):
        return await anext(iterator)
