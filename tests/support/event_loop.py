"""Let other tasks run, and wait for their results, without a clock of the tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from types import coroutine

from mockube.component_base.clock import RealClock

WAIT_TIMEOUT = 60.0
"""Seconds after which a waiting test fails; a passing test never waits this long, on a busy machine either."""
ITERATIONS = 500
"""After so many of the loop, a condition depends on another thread or process, which needs the processor."""
POLL_SECONDS = 0.002
CLOCK = RealClock()


async def yield_to_loop(iterations: int = 1) -> None:
    """Let every other task that can run do so once in each iteration."""
    for _ in range(iterations):
        await _yield()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another task fulfils, or another thread or process."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        for _ in range(ITERATIONS):
            if condition():
                return
            await _yield()
        while not condition():
            await CLOCK.sleep(POLL_SECONDS)


async def next_item(iterator: AsyncIterator):
    """Return the next item of an iterator, for which it waits up to WAIT_TIMEOUT."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        return await anext(iterator)


@coroutine
def _yield() -> Generator[None, None, None]:
    yield
