"""Replace many keys in one revision, in steps, so that the event loop is not blocked; meanwhile other changes wait."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import closing
from types import coroutine

from mockube.etcd.errors import Closed
from mockube.etcd.kv import Event, Put, Revision

from .mvcc import IsOther, Mvcc

_logger = logging.getLogger(__name__)


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Let the event loop run all other ready callbacks once."""
    yield


class Rewrites:
    """The rewrites of one store, one at a time."""

    def __init__(
        self,
        core: Mvcc,
        start: Callable[[Coroutine[None, None, Revision | None], str], asyncio.Task[Revision | None]],
        settle: Callable[[object], Awaitable[None]],
        prepare: Callable[[Sequence[Event]], None],
        discard: Callable[[], None],
    ) -> None:
        """`start` starts a task of the store. `settle` waits until changes take effect, and gets their note; `prepare` does a part of that
        in advance for some of the events, and `discard` drops that part.
        """
        self._core = core
        self._start = start
        self._settle, self._prepare, self._discard = settle, prepare, discard
        self.end: asyncio.Future[None] | None = None
        """Done when keys may be changed again; None if no rewrite is running."""

    async def wait(self) -> None:
        """Wait until keys may be changed."""
        while self.end is not None:
            await asyncio.shield(self.end)  # all writers wait for it: the end of one must not cancel it

    async def run(
        self,
        prefix: bytes,
        puts: Sequence[Put],
        is_excluded: Callable[[bytes], bool],
        is_other: IsOther | None,
        note: object,
    ) -> Revision | None:
        """Replace the keys with a prefix; return None if nothing changed. Cancelling the caller does not stop it."""
        self.end = asyncio.get_running_loop().create_future()
        task = self._start(self._rewrite(prefix, puts, is_excluded, is_other, note), "rewrite")
        task.add_done_callback(self._on_end)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # by `close`
                raise Closed("the store is closed") from None
            task.add_done_callback(_log_failure)  # no caller receives its error any more
            raise

    async def _rewrite(
        self,
        prefix: bytes,
        puts: Sequence[Put],
        is_excluded: Callable[[bytes], bool],
        is_other: IsOther | None,
        note: object,
    ) -> Revision | None:
        await self._settle(None)  # changes that may be undone must be durable before a rewrite begins
        before = self._core.revision
        try:
            with closing(self._core.rewrite(prefix, puts, is_excluded, is_other)) as steps:
                for events in steps:
                    self._prepare(events)
                    await yield_to_loop()
            revision = self._core.revision
            await self._settle(note)
        finally:
            self._discard()
        return None if revision == before else revision

    def _on_end(self, _task: asyncio.Task[Revision | None]) -> None:
        end, self.end = self.end, None
        assert end is not None
        end.set_result(None)


def _log_failure(task: asyncio.Task[Revision | None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("a rewrite failed after its caller was cancelled", exc_info=error)
