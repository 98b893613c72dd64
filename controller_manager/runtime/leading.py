"""Work while a lease is held and not a moment longer, and end in order when somebody says so."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from apimachinery.clock import Clock
from controller_manager.runtime.deadline import within
from controller_manager.runtime.leader import Elector

LOG = logging.getLogger(__name__)

Work = Callable[[], Coroutine[None, None, None]]


async def lead(elector: Elector, work: Work, *, clock: Clock, patience: float) -> None:
    """Once the lease is held, work until cancelled; then give it back. Raises `LeaseLost`, and what the work raises.

    When the lease is lost the work is cut off, for another process may have begun: the fence before the transport
    lets no write of it out any more.
    """
    await elector.acquire()
    keeping = asyncio.create_task(elector.keep(), name="lease")
    working = asyncio.create_task(work(), name="work")
    try:
        await asyncio.wait({keeping, working}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _finish(working, clock=clock, patience=0.0 if keeping.done() else patience)
        keeping.cancel()
        await elector.release()
    for ended in (keeping, working):
        if not ended.cancelled():
            ended.result()


async def work_alone(work: Work, *, clock: Clock, patience: float) -> None:
    """Work until cancelled, where nobody else would. Raises what the work raises."""
    working = asyncio.create_task(work(), name="work")
    try:
        await asyncio.wait({working})
    finally:
        await _finish(working, clock=clock, patience=patience)
    working.result()


async def _finish(working: "asyncio.Task[None]", *, clock: Clock, patience: float) -> None:
    """Have it end what it has in hand within so many seconds, and then without that."""
    working.cancel()
    try:
        async with within(clock, patience):
            await asyncio.wait({working})
    except TimeoutError:
        LOG.warning("What was in hand did not end within %g seconds, and is cut off", patience)
        working.cancel()
        await asyncio.wait({working})
