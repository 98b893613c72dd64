"""Group commit: everything recorded during one fsync is written and synced together by the next.

Entries are bytes and revisions are numbers here. The state machine is ahead of the disk, so each entry comes with a
function that undoes it: if a batch cannot be written, its changes and all later ones are undone, the newest first.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from mockube.etcd.errors import Interrupted, KVError, Unavailable
from mockube.etcd.kv import Revision

from . import codec
from .disk import DiskThread
from .wal import Log

_logger = logging.getLogger(__name__)

PROBE_SECONDS = 1.0
"""The interval at which a disk that could not be written is tried, if somebody asks for it."""


class _Batch:
    """The entries that one fsync makes durable, and the futures that wait for it."""

    __slots__ = ("entries", "head", "undos", "waiters")

    def __init__(self, head: Revision) -> None:
        self.entries: list[bytes] = []
        self.undos: list[Callable[[], None]] = []
        self.waiters: list[asyncio.Future[None]] = []
        self.head = head
        """The newest revision when the last entry was added."""

    def undo(self) -> None:
        for undo in reversed(self.undos):
            undo()

    def resolve_waiters(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, kind: type[KVError], error: KVError) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                # One error for each waiter: raising it sets its traceback.
                waiter.set_exception(kind(error.reason, path=error.path))


class GroupCommit:
    """The task and the thread that write a log, which nothing else uses."""

    def __init__(
        self,
        log: Log,
        head: Revision,
        publish: Callable[[Revision], None],
        *,
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """`publish` is called with each newest durable revision, before its waiters resume. `on_failure` is called
        with the error that ended the task, unless it is a KVError.
        """
        self.head = head
        """The newest recorded revision."""
        self._durable = head
        self._log = log
        self._publish = publish
        self._on_failure = on_failure
        self._gathering = _Batch(head)
        self._writing: _Batch | None = None
        self._failure: KVError | None = None
        """The error after which nothing is written until the store is opened again."""
        self._problem: KVError | None = None
        """The error of the last write, if it failed."""
        self._next_probe = 0.0
        self._wakeup = asyncio.Event()
        self._closing = False
        self.thread = DiskThread("log")
        """The thread, which is the only user of the log."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="group commit")
        self._task.add_done_callback(self._on_end)

    def record(self, entries: Sequence[bytes], *, head: Revision, undo: Callable[[], None]) -> None:
        """Queue entries to be written together. If the log is broken, undo them now and raise Unavailable."""
        if self._failure is not None:
            undo()
            raise Unavailable(self._failure.reason, path=self._failure.path)
        self._gathering.entries += entries
        self._gathering.undos.append(undo)
        self._gathering.head = self.head = head
        self._wakeup.set()

    async def wait_durable(self) -> None:
        """Return when everything recorded so far is durable; raise if it was undone, or if that is unknown."""
        batch = self._gathering if self._gathering.entries else self._writing
        if batch is not None:
            waiter = asyncio.get_running_loop().create_future()
            batch.waiters.append(waiter)
            await waiter

    def problem(self, now: float) -> str:
        """Return why nothing can be written, or "". After a failed write the disk is tried now and then: it may have space again."""
        problem = self._problem  # the thread of the log clears it when a try succeeds
        if problem is None:
            return ""
        if self._failure is None and now >= self._next_probe:
            self._next_probe = now + PROBE_SECONDS
            self.thread.call_later(self._probe)
        return problem.reason

    def _probe(self) -> None:
        try:
            self._log.check_writable()
        except KVError as error:
            self._problem = error
        else:
            self._problem = None

    async def close(self) -> None:
        """Make all recorded entries durable, and close the log."""
        self._closing = True
        self._wakeup.set()
        await asyncio.wait([self._task])
        await self.thread.call(self._log.close)
        await self.thread.close()

    async def _run(self) -> None:
        while not self._closing:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._gathering.entries:
                await self._flush()

    async def _flush(self) -> None:
        batch = self._writing = self._gathering
        self._gathering = _Batch(batch.head)
        try:
            await self.thread.call(self._write, codec.join(batch.entries), self._durable + 1)
        except KVError as error:
            self._undo_pending(error)
            return
        self._problem = None
        self._durable = batch.head
        self._publish(batch.head)
        self._writing = None
        batch.resolve_waiters()

    def _write(self, payload: bytes, first_revision: Revision) -> None:
        self._log.append(payload, first_revision)
        self._log.sync()

    def _undo_pending(self, error: KVError) -> None:
        """Undo everything that is not durable, and fail its waiters with the error."""
        kind = type(error)
        self._problem = error
        if kind.outcome_unknown:
            reason = f"read-only until it is restarted: {error.reason}"
            self._problem = self._failure = kind(reason, path=error.path)
        gathering, writing = self._gathering, self._writing
        self._gathering, self._writing, self.head = _Batch(self._durable), None, self._durable
        # The waiters first: they resume later, and would wait for ever if an undo raised an error.
        gathering.fail(Unavailable if kind.outcome_unknown else kind, error)  # it was not written at all
        if writing is not None:
            writing.fail(kind, error)
        gathering.undo()
        if writing is not None:
            writing.undo()

    def _on_end(self, task: asyncio.Task[None]) -> None:
        """Fail the waiters that the task did not complete."""
        if task.cancelled():
            self._undo_pending(Interrupted("the event loop ended before the store was closed"))
            self._on_failure(RuntimeError("the log's writer was cancelled"))
            return
        error = task.exception()
        if error is None and not self._closing:
            error = RuntimeError("it returned before the store was closed")
        if error is not None:
            _logger.error("the log's writer failed", exc_info=error)
            self._undo_pending(Interrupted(f"the log's writer failed: {error!r}"))
            self._on_failure(error)
