"""Let other tasks run, and wait for their results, without a clock: nothing here sleeps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from types import coroutine

WAIT_TIMEOUT = 60.0
"""Seconds after which a waiting test fails; a passing test never waits this long, on a busy machine either."""


async def yield_to_loop(iterations: int = 1) -> None:
    """Let every other task that can run do so once in each iteration."""
    for _ in range(iterations):
        await _yield()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another task fulfils."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not condition():
            await _yield()


async def next_item(iterator: AsyncIterator):
    """Return the next item of an iterator, for which it waits up to WAIT_TIMEOUT."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        return await anext(iterator)


@coroutine
def _yield() -> Generator[None, None, None]:
    yield
