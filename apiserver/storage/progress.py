"""How far the watch cache is, and who waits until it is further."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

Reached = asyncio.Future[None]


class CacheProgress:
    def __init__(self) -> None:
        self.revision = 0
        """Every change up to this revision is in the cache."""
        self._waiting: list[tuple[int, Reached]] = []
        self._listed = asyncio.Event()
        self._consistent = asyncio.Event()
        """Clear while the resource caches have a part of a large batch of changes."""
        self._consistent.set()

    def advance(self, revision: int) -> None:
        """Note that the cache has a revision with all its changes."""
        self.revision = max(self.revision, revision)
        for awaited_revision, reached in self._waiting:
            if awaited_revision <= self.revision:
                finish(reached)
        self._consistent.set()

    @property
    def is_awaited(self) -> bool:
        return bool(self._waiting)

    @contextmanager
    def waiting_for(self, revision: int) -> Iterator[Reached]:
        """Return a future that is done when the cache has a revision."""
        reached: Reached = asyncio.get_running_loop().create_future()
        waiting = (revision, reached)
        self._waiting.append(waiting)
        try:
            yield reached
        finally:
            self._waiting.remove(waiting)

    def begin_part(self) -> None:
        """Note that the caches are about to have a part of a revision, until the next call of `advance`."""
        self._consistent.clear()

    @property
    def is_consistent(self) -> bool:
        """Whether the caches have whole revisions; if not, a reader of many objects awaits `wait_consistent`."""
        return self._consistent.is_set()

    async def wait_consistent(self) -> None:
        """Wait until the resource caches have whole revisions, which is so until another task runs."""
        while not self._consistent.is_set():
            await self._consistent.wait()

    @property
    def is_listed(self) -> bool:
        return self._listed.is_set()

    def note_listed(self) -> None:
        self._listed.set()

    async def wait_listed(self) -> None:
        await self._listed.wait()


def finish(reached: Reached) -> None:
    if not reached.done():
        reached.set_result(None)
