"""The embedded store as a KV: the state machine, its watches and its leases on one event loop.

A store in memory and a durable one differ only in what happens between a change and its response, which subclasses
implement in `_settle`: `MemoryStore` here, and `DurableStore` in `durable.py`. Everything else is in `EmbeddedStore`.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

from msgspec import Struct

from mockube.etcd.errors import Closed, InvalidRequest, KVError, TooLarge
from mockube.etcd.kv import (
    NO_LEASE,
    Delete,
    DeleteResult,
    Event,
    Lease,
    LeaseId,
    Operation,
    Put,
    PutResult,
    Range,
    RangeResult,
    Revision,
    Status,
    Target,
    Txn,
    TxnResult,
    WatchRequest,
)

from .clock import StoreClock, StoreTimer
from .hub import Hub
from .mvcc import IsOther, Mvcc
from .rewriting import Rewrites
from .versions import covers
from .watch import StoreWatch

_T = TypeVar("_T")

_logger = logging.getLogger(__name__)

SWEEP = 2048
"""The number of revisions that compaction frees before it yields to the event loop."""
BURST = 256
"""The number of changes after which a caller of the store in memory yields, so that a writer does not block readers."""
CHECK_REVISIONS = 16
"""The number of revisions after which the limits of history are checked."""
PACK_BYTES, PACK_SECONDS = 1024 * 1024, 0.05
"""Bytes of replaced values that are compressed at each interval, in some milliseconds."""


class RequestLimits(Struct, frozen=True, kw_only=True):
    """etcd's own limits, which Kubernetes is built for."""

    request_bytes: int = 1536 * 1024
    operations: int = 128


class HistoryLimits(Struct, frozen=True, kw_only=True):
    """How much history a store keeps at most: what is older is compacted."""

    bytes: int = sys.maxsize
    """The memory that it takes."""
    revisions: int = sys.maxsize


UNLIMITED = HistoryLimits()


class EmbeddedStore:
    """A `KV` in this process, for use in one event loop."""

    backend = "embedded"

    def __init__(
        self,
        *,
        clock: StoreClock,
        core: Mvcc | None = None,
        limits: RequestLimits | None = None,
        watch_backlog: int = 65_536,
        progress_interval: float = 5.0,
        history: HistoryLimits = UNLIMITED,
    ) -> None:
        self._clock = clock
        self._history = history
        self._history_compaction: asyncio.Task[None] | None = None
        self.on_compacted: list[Callable[[Revision], None]] = []
        """Called with the oldest revision that can be read after each compaction."""
        self._core = core if core is not None else Mvcc()
        self._limits = limits if limits is not None else RequestLimits()
        self._hub = Hub(self._core, backlog=watch_backlog, guard=self._guard)
        self._progress_interval = progress_interval
        self._lease_timers: list[StoreTimer] = []
        self._progress_timer: StoreTimer | None = None
        self._sweeping: asyncio.Handle | None = None
        self._pack_timer: StoreTimer | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._rewrites = Rewrites(
            self._core, self._start, self._settle, self._prepare, self._discard_prepared
        )
        self._task_error: BaseException | None = None
        self._task_failed = asyncio.Event()
        self._closed = False

    # --- KV

    async def range(self, request: Range) -> RangeResult:
        self._check_open()
        _check_key(request.key)
        return self._core.range(request, self._hub.revision)

    async def put(self, request: Put) -> PutResult:
        result = (await self.txn(Txn(then=(request,)))).results[0]
        assert isinstance(result, PutResult)
        return result

    async def delete(self, request: Delete) -> DeleteResult:
        result = (await self.txn(Txn(then=(request,)))).results[0]
        assert isinstance(result, DeleteResult)
        return result

    async def txn(self, request: Txn) -> TxnResult:
        if self._rewrites.end is not None:
            await self._rewrites.wait()
        self._check_open()
        _check_txn(request, self._limits)
        try:
            return self._core.txn(request)
        finally:
            if not self._core.revision % CHECK_REVISIONS:
                self._limit_history()
            self._set_pack_timer()
            await self._settle(request.note)

    async def rewrite(
        self,
        prefix: bytes,
        puts: Sequence[Put],
        *,
        is_excluded: Callable[[bytes], bool],
        is_other: IsOther | None = None,
        note: object = None,
    ) -> Revision | None:
        """Replace the keys with a prefix by those of `puts`, in one revision of any size; keys that `is_excluded` accepts stay.

        A key whose value is the same does not change; the result is None if no key has changed. If `is_other` accepts the old and
        the new value of some keys, these are deleted in the revision before, which takes effect together with this one. The rewrite has several steps:
        until the last one, reads return the old keys, and other writes and all calls for leases wait. Cancelling the caller does not stop it.
        """
        await self._rewrites.wait()
        self._check_open()
        return await self._rewrites.run(prefix, puts, is_excluded, is_other, note)

    async def watch(self, request: WatchRequest) -> StoreWatch:
        self._check_open()
        watch = StoreWatch(self._hub, self._core, request)
        if request.progress and self._progress_timer is None:
            self._set_progress_timer()
        return watch

    async def compact(self, revision: Revision) -> None:
        self._check_open()
        self._core.check_compact(revision, self._hub.revision)
        await self._record_compaction(revision)
        self._core.compact(revision)
        for callback in self.on_compacted:
            callback(revision)
        self._start_sweep()

    async def grant(self, ttl: int, lease: LeaseId = NO_LEASE) -> Lease:
        await self._rewrites.wait()
        self._check_open()
        try:
            lease = lease or self._core.leases.fresh_id()
            self._core.leases.grant(lease, ttl, self._clock.monotonic())
            self._record_grant(lease, ttl)
            self._set_lease_timers()
            return self._core.leases.describe(lease, self._clock.monotonic())
        finally:
            await self._settle()

    async def keep_alive(self, lease: LeaseId) -> Lease:
        self._check_open()
        try:
            self._core.leases.renew(lease, self._clock.monotonic())
            self._set_lease_timers()
            return self._core.leases.describe(lease, self._clock.monotonic())
        finally:
            await self._rewrites.wait()  # not before the renewal, or the lease may expire meanwhile
            await self._settle()

    async def revoke(self, lease: LeaseId) -> None:
        await self._rewrites.wait()
        self._check_open()
        try:
            ended = self._core.leases.describe(lease, self._clock.monotonic())
            self._core.revoke(lease)
            self._record_revocation(ended)
        finally:
            await self._settle()

    async def time_to_live(self, lease: LeaseId, *, keys: bool = False) -> Lease:
        await self._rewrites.wait()
        self._check_open()
        try:
            return self._core.leases.describe(lease, self._clock.monotonic(), keys=keys)
        finally:
            await self._settle()

    async def leases(self) -> Sequence[LeaseId]:
        await self._rewrites.wait()
        self._check_open()
        try:
            return sorted(self._core.leases)
        finally:
            await self._settle()

    async def status(self) -> Status:
        self._check_open()
        return Status(
            backend=self.backend,
            version="3",
            revision=self._hub.revision,
            compact_revision=self._core.compact_revision,
            size=self._core.size,
        )

    async def supervise(self) -> None:
        """Wait until one of the store's own tasks fails, and raise its error: the store is unusable then."""
        await self._task_failed.wait()
        assert self._task_error is not None
        raise self._task_error

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for timer in (*self._lease_timers, self._progress_timer, self._pack_timer, self._sweeping):
            if timer is not None:
                timer.cancel()
        self._hub.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- for subclasses to implement

    async def _settle(self, note: object = None) -> None:
        """Return when the state machine's results may be returned to callers, and notify the watches. The note is the newest revision's.

        It is not called while a rewrite is running, whose first revisions would take effect alone.
        """
        raise NotImplementedError

    def _prepare(self, events: Sequence[Event]) -> None:
        """Process some events of a rewrite in advance, because `_settle` would take too long with all of them."""
        self._hub.prepare(events)

    def _discard_prepared(self) -> None:
        self._hub.discard_prepared()

    def _record_grant(self, lease: LeaseId, ttl: int) -> None:
        raise NotImplementedError

    def _record_revocation(self, lease: Lease) -> None:
        """Record the end of a lease. The newest revision deletes its keys, unless it had none."""
        raise NotImplementedError

    async def _record_compaction(self, revision: Revision) -> None:
        """Return when the compaction is recorded."""
        raise NotImplementedError

    def _start_sweep(self) -> None:
        """Start to free the compacted history, unless that has started."""
        if self._sweeping is None:
            self._sweep()

    # --- background tasks

    def _limit_history(self) -> None:
        """Start to compact the oldest eighth of a history that is longer than its limits."""
        core, limits = self._core, self._history
        if core.history_bytes <= limits.bytes and core.history_revisions <= limits.revisions:
            return
        if self._history_compaction is None and core.is_swept:
            task = self._history_compaction = self._start(self._compact_oldest(), "limit history")
            task.add_done_callback(self._history_compacted)

    async def _compact_oldest(self) -> None:
        core, limits = self._core, self._history
        revision = core.compaction_freeing(
            core.history_bytes - limits.bytes * 7 // 8, core.history_revisions - limits.revisions * 7 // 8
        )
        revision = min(revision, self._hub.revision)
        if revision > core.compact_revision:
            await self.compact(revision)

    def _history_compacted(self, task: asyncio.Task[None]) -> None:
        self._history_compaction = None
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, KVError):
                _logger.warning("history was not compacted, which the next write tries again: %s", error)
            else:
                self._task_ended(task)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the store is closed")

    def _sweep(self) -> None:
        # In steps, between which requests are served: a compaction may have millions of versions to delete.
        more = self._core.sweep(SWEEP)
        self._sweeping = asyncio.get_running_loop().call_soon(self._guard(self._sweep)) if more else None

    def _set_pack_timer(self) -> None:
        if self._core.has_unpacked and self._pack_timer is None:
            self._pack_timer = self._clock.routine.call_later(PACK_SECONDS, self._guard(self._pack))

    def _pack(self) -> None:
        self._core.pack(PACK_BYTES)
        self._pack_timer = None
        self._set_pack_timer()

    def _set_lease_timers(self) -> None:
        for timer in self._lease_timers:
            timer.cancel()
        # After a leap of the clock, a lease that is kept alive is renewed before it expires.
        clocks = ((self._clock, False), (self._clock.routine, True))
        self._lease_timers = [
            clock.call_later(deadline - self._clock.monotonic(), self._guard(self._expire_leases))
            for clock, kept_alive in clocks
            if (deadline := self._core.leases.next_deadline(kept_alive=kept_alive)) is not None
        ]

    def _expire_leases(self) -> None:
        self._spawn(self._revoke_expired(), "expire leases")

    async def _revoke_expired(self) -> None:
        # Look up the leases again after each one: others may be renewed or revoked while its end is recorded.
        while True:
            await self._rewrites.wait()
            if not (expired := self._core.leases.expired_leases(self._clock.monotonic())):
                break
            try:
                await self.revoke(expired[0])
            except KVError as error:
                problem = "the expiry of lease %d could not be written to the log, so its TTL restarts: %s"
                _logger.warning(problem, expired[0], error)
                self._core.leases.renew(expired[0], self._clock.monotonic())
        self._set_lease_timers()

    def _start(self, work: Coroutine[None, None, _T], name: str) -> asyncio.Task[_T]:
        """Start a task that is cancelled with the store at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        """Start a task whose failure makes the store unusable."""
        self._start(work, name).add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            if not self._closed:  # what it awaited was cancelled, or the event loop ends
                self._fail(RuntimeError(f"the store's task {task.get_name()!r} was cancelled"))
        elif (error := task.exception()) is not None:
            _logger.error("the store's task %r failed", task.get_name(), exc_info=error)
            self._fail(error)

    def _guard(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Return the callback for the event loop; an error of it is logged, and makes the store unusable."""

        def run() -> None:
            try:
                callback()
            except Exception as error:
                _logger.exception("the store's callback %r failed", callback.__name__)
                self._fail(error)

        return run

    def _fail(self, error: BaseException) -> None:
        self._task_error = self._task_error or error
        self._task_failed.set()

    def _notify_progress(self) -> None:
        self._hub.notify_progress()
        self._set_progress_timer()

    def _set_progress_timer(self) -> None:
        notify = self._guard(self._notify_progress)
        self._progress_timer = self._clock.routine.call_later(self._progress_interval, notify)


class MemoryStore(EmbeddedStore):
    """The store without a disk: writes take effect at once and are lost with the process."""

    backend = "memory"

    _since_turn = 0

    async def _settle(self, note: object = None) -> None:  # noqa: ARG002 - it is lost with the process
        if self._core.revision == self._hub.revision:
            return
        self._hub.publish(self._core.revision)
        self._since_turn += 1
        if self._since_turn >= BURST:
            await self._hub.turn()
            self._since_turn = 0

    def _record_grant(self, lease: LeaseId, ttl: int) -> None:
        """Do nothing: only the table in memory changes."""

    def _record_revocation(self, lease: Lease) -> None:
        """Do nothing."""

    async def _record_compaction(self, revision: Revision) -> None:
        """Do nothing."""


# --- the checks of a request that do not depend on the content of the store


def _check_txn(request: Txn, limits: RequestLimits) -> None:
    """Raise InvalidRequest or TooLarge unless etcd accepts such a transaction."""
    operation_count = max(len(request.compare), len(request.then), len(request.otherwise))
    if operation_count > limits.operations:
        raise TooLarge(f"transaction has {operation_count} operations, the limit is {limits.operations}")
    size = 0
    for compare in request.compare:
        _check_key(compare.key)
        if isinstance(compare.operand, bytes) is not (compare.target is Target.VALUE):
            raise InvalidRequest(f"{compare.target.value} cannot be compared with {compare.operand!r}")
    for operations in (request.then, request.otherwise):
        for operation in operations:
            _check_key(operation.key)
            if type(operation) is Put:
                size += len(operation.key) + len(operation.value)
        if len(operations) > 1:
            _check_no_overlap(operations)
    if size > limits.request_bytes:
        raise TooLarge(f"request has {size} bytes, the limit is {limits.request_bytes}")


def _check_key(key: bytes) -> None:
    if not key:
        raise InvalidRequest("key is empty")


def _check_no_overlap(operations: Sequence[Operation]) -> None:
    """Refuse a request that changes a key twice: each revision may put or delete a key once."""
    puts = [operation.key for operation in operations if type(operation) is Put]
    if len(set(puts)) < len(puts):
        raise InvalidRequest("duplicate key in transaction: a key is put twice")
    for operation in operations:
        if type(operation) is Delete and any(covers(operation.key, operation.range_end, key) for key in puts):
            raise InvalidRequest("duplicate key in transaction: a key is both put and deleted")
