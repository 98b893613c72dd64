"""A limit of time on the injected clock, for what would wait for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apimachinery.clock import Clock


@asynccontextmanager
async def within(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Cancel the block after so many seconds, and raise `TimeoutError` instead."""
    task = asyncio.current_task()
    assert task is not None
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    before = task.cancelling()
    timer = clock.call_later(seconds, expire)
    try:
        yield
    except asyncio.CancelledError:
        if expired and task.uncancel() <= before:
            raise TimeoutError(f"not done within {seconds:g} seconds") from None
        raise
    finally:
        timer.cancel()
