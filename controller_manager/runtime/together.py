"""Tasks that live side by side and end together. Unlike a task group, it passes on every cancellation, not the first alone.

The first one lets a loop finish what it has in hand, and the second cuts that off: both must arrive.
"""

import asyncio
from collections.abc import Coroutine, Sequence


async def together(**runs: Coroutine[None, None, None]) -> None:
    """Until cancelled, or one fails, whose error is raised: then all are cancelled, and waited for."""
    await all_of([asyncio.create_task(run, name=name) for name, run in runs.items()])


async def all_of(tasks: "Sequence[asyncio.Task[None]]") -> None:
    try:
        await _first_failure(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_failure(tasks: "Sequence[asyncio.Task[None]]") -> None:
    if not tasks:
        await asyncio.get_running_loop().create_future()
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in ended:
        task.result()
