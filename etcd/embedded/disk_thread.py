"""A thread for what may block on the disk, so that the event loop never does.

What is called runs in the order in which it was called, one at a time: whoever owns the thread needs no lock.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DiskThread:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in the thread and wait for the answer. A caller that is cancelled does not stop what has begun."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))

    def call_later(self, function: Callable[[], None]) -> None:
        """Call in the thread after everything before it, without waiting."""
        self._executor.submit(function)

    async def close(self) -> None:
        """Return when everything that was called is done."""
        await asyncio.to_thread(self._executor.shutdown)
