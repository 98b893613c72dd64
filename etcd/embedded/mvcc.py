"""The multi-version state machine: transactions over keys, and the log of what each revision changed.

Synchronous and pure: no event loop, no clock, no disk. A transaction is checked completely before it is applied, so it
cannot fail half-way. Every version is readable until compaction drops it; therefore the store of an earlier time is just a revision.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec.structs import replace

from mockube.etcd.errors import Compacted, FutureRevision, LeaseNotFound
from mockube.etcd.kv import (
    FIRST_REVISION,
    HEAD,
    NO_LEASE,
    Compare,
    Delete,
    DeleteResult,
    Event,
    EventKind,
    KeyValue,
    LeaseId,
    Operation,
    OperationResult,
    Put,
    PutResult,
    Range,
    RangeResult,
    Relation,
    Revision,
    Target,
    Txn,
    TxnResult,
    prefix_end,
)

from .leases import Leases
from .versions import Versions, covers, is_worth_packing, packable_bytes, taken_by, unpack_event

LOG_BYTES = 150
"""The memory of a revision in the log: its tuple, an event and a version's record."""
STEP = 512
"""The number of keys that one step of a rewrite processes in a few milliseconds."""

UNPACKED_BYTES = 4 << 20
"""The newest replaced values up to this size are not compressed: a short history is small."""
PACKED_EVENTS = 16
"""The maximum of events of a revision whose values are compressed; a restored snapshot has many more."""

Change: TypeAlias = tuple[bytes, bytes | None, LeaseId]
"""The change of a key: its new value and lease, or None for its deletion."""

IsOther: TypeAlias = Callable[[bytes, bytes], bool]
"""Returns whether two values of a key are not two states of one thing."""

_VALUE = Target.VALUE
_TARGET_VALUES: dict[Target, Callable[[KeyValue], int | bytes]] = {
    Target.VERSION: lambda kv: kv.version,
    Target.CREATE: lambda kv: kv.create_revision,
    Target.MOD: lambda kv: kv.mod_revision,
    Target.VALUE: lambda kv: kv.value,
    Target.LEASE: lambda kv: kv.lease,
}
_RELATIONS: dict[Relation, Callable[..., bool]] = {
    Relation.EQUAL: lambda have, operand: have == operand,
    Relation.NOT_EQUAL: lambda have, operand: have != operand,
    Relation.GREATER: lambda have, operand: have > operand,
    Relation.LESS: lambda have, operand: have < operand,
}


class Mvcc:
    """The state of one store."""

    __slots__ = (
        "_is_rewriting",
        "_log",
        "_swept",
        "_unpacked",
        "_unpacked_bytes",
        "_versions",
        "_was_compacted",
        "compact_revision",
        "leases",
        "revision",
    )

    def __init__(self) -> None:
        self.revision: Revision = FIRST_REVISION
        self.compact_revision: Revision = 0
        """Earlier revisions cannot be read. Their memory is freed later, in steps."""
        self.leases = Leases()
        self._versions = Versions()
        self._log: list[Sequence[Event]] = []
        """By revision, from _swept + 1 to the newest, the events: a list if some values are compressed, else a tuple."""
        self._unpacked: deque[tuple[Revision, int]] = deque()
        """The revisions that replaced values which can be compressed, with the bytes of these values."""
        self._unpacked_bytes = 0
        self._swept: Revision = FIRST_REVISION
        self._was_compacted = False
        self._is_rewriting = False
        """Whether some keys are already at the next revision, so that the present is read like a past revision."""

    def load(self, revision: Revision, kvs: Sequence[KeyValue], events: Sequence[Event]) -> None:
        """Load all keys that existed at a revision, in byte order, and the events of that revision."""
        self.revision = self.compact_revision = revision
        self._versions = Versions(kvs)
        self._log = [tuple(events)]
        self._swept = revision - 1
        self._was_compacted = bool(kvs)

    def replay(self, changes: Sequence[Change]) -> None:
        """Create the next revision from the recorded result of a transaction."""
        events: list[Event] = []
        for key, value, lease in changes:
            if value is None:
                self._delete_key(key, events)
            else:
                self._put(Put(key=key, value=value, lease=lease), events)
        self._log_events(events)

    def restore_leases(self, ttls: Mapping[LeaseId, int], now: float) -> None:
        """Grant leases that keys may already have."""
        for lease, ttl in ttls.items():
            self.leases.grant(lease, ttl, now)
        for kv in self._versions.existing():
            self.leases.move(kv.key, NO_LEASE, kv.lease)

    @property
    def size(self) -> int:
        return self._versions.size

    # --- reading

    def range(self, request: Range, head: Revision) -> RangeResult:
        """Read as if `head` were the newest revision."""
        revision = self._resolve_revision(request.revision, head)
        if request.range_end is None:
            kv = self._versions.at(request.key, revision)
            kvs: Sequence[KeyValue] = () if kv is None else (kv,)
            count = len(kvs)
        elif revision == self.revision and not self._is_rewriting:
            count = self._versions.count(request.key, request.range_end)
            kvs = (
                ()
                if request.count_only
                else self._versions.range(request.key, request.range_end, request.limit)
            )
        else:
            limit = 1 if request.count_only else request.limit
            kvs, count = self._versions.range_at(request.key, request.range_end, revision, limit)
        return _shape(request, head, kvs, count)

    def get(self, key: bytes) -> KeyValue | None:
        """Return the present version of a key."""
        return self._versions.get(key)

    def walk(self, revision: Revision) -> Iterator[KeyValue]:
        """Yield everything that existed at a revision, in byte order, while the store runs; it must not be swept
        meanwhile.
        """
        return self._versions.walk(revision)

    def events(self, first: Revision, last: Revision) -> Sequence[Sequence[Event]]:
        """Return the events of the revisions first..last, with previous values; `first` is at least `first_watchable`."""
        revisions = self._log[first - self._swept - 1 : last - self._swept]
        return [[*map(unpack_event, events)] if type(events) is list else events for events in revisions]

    def selected_events(
        self, first: Revision, last: Revision, *, key: bytes, range_end: bytes | None, limit: int
    ) -> tuple[Sequence[Event], Revision]:
        """Return the events of an interval of keys in the revisions from `first` on, and the last one that was read.

        Whole revisions are read, up to `last`, or until `limit` events are selected. Only their values are decompressed.
        """
        selected: list[Event] = []
        for revision, events in enumerate(self._log[first - self._swept - 1 : last - self._swept], first):
            matching = [event for event in events if covers(key, range_end, event.kv.key)]
            selected += map(unpack_event, matching) if type(events) is list else matching
            if len(selected) >= limit:
                return selected, revision
        return selected, last

    @property
    def first_watchable(self) -> Revision:
        """The oldest revision at which a watch may start."""
        nothing_lost = self._swept == FIRST_REVISION and self.compact_revision <= FIRST_REVISION
        return HEAD if nothing_lost else max(self.compact_revision, self._swept + 1)

    def _is_unchanged(self, put: Put) -> bool:
        kv = self._versions.get(put.key)
        return kv is not None and kv.value == put.value and kv.lease == put.lease

    def _resolve_revision(self, revision: Revision, head: Revision) -> Revision:
        if revision <= HEAD:
            return head
        if revision > head:
            raise FutureRevision(revision, head)
        # A store without keys at its first revision, however high, has lost nothing: it was empty at FIRST_REVISION, too.
        is_readable = revision == FIRST_REVISION and not self._was_compacted
        if revision < self.compact_revision and not is_readable:
            raise Compacted(revision, self.compact_revision)
        return revision

    # --- writing

    def txn(self, request: Txn) -> TxnResult:
        """Apply a transaction that the store has checked; `revision` rises by one if it changed anything."""
        succeeded = all(map(self._holds, request.compare))
        operations = request.then if succeeded else request.otherwise
        for operation in operations:
            self._check(operation)
        events: list[Event] = []
        results = [self._execute(operation, events) for operation in operations]
        self._log_events(events)
        return TxnResult(revision=self.revision, succeeded=succeeded, results=results)

    def revoke(self, lease: LeaseId) -> None:
        """Revoke a lease; its keys are deleted in one revision."""
        events: list[Event] = []
        for key in sorted(self.leases.keys(lease)):
            self._delete_key(key, events)
        self.leases.revoke(lease)
        self._log_events(events)

    def undo(self) -> None:
        """Undo the newest revision. A lease that it revoked must be granted again before."""
        self._revert(self._log.pop())
        self.revision -= 1

    def rewrite(
        self,
        prefix: bytes,
        puts: Sequence[Put],
        is_excluded: Callable[[bytes], bool],
        is_other: IsOther | None = None,
    ) -> Generator[Sequence[Event], None, None]:
        """Replace the keys with a prefix by those of `puts`; keys that `is_excluded` accepts stay.

        Each step yields its events; the last step makes one revision of them all. Until then reads return the old keys,
        and no other change is allowed. If the generator is closed early, the change is reverted.

        If the old and the new value of some keys are of different things, by `is_other`, a revision before deletes these keys, so
        that watches see a deletion and a creation. The steps for it yield no events.
        """
        before = self.revision
        events: list[Event] = []
        self._is_rewriting = True
        try:
            if is_other is not None:
                deletions: list[Event] = []
                for keys in self._other_keys(puts, is_other):
                    for key in keys:
                        self._delete_key(key, deletions)
                    events = deletions  # to be reverted
                    yield ()
                events = []
                self._log_events(deletions)
            for operations in self._steps(prefix, puts, is_excluded):
                done = len(events)
                for operation in operations:
                    self._check(operation)
                    self._execute(operation, events)
                yield events[done:]
        except BaseException:
            self._revert(events)
            if self.revision > before:
                self.undo()
            raise
        finally:
            self._is_rewriting = False
        self._log_events(events)

    def _other_keys(self, puts: Sequence[Put], is_other: IsOther) -> Iterator[Sequence[bytes]]:
        """Yield the keys whose values become those of other things, in steps."""
        for start in range(0, len(puts), STEP):
            yield [
                put.key
                for put in puts[start : start + STEP]
                if (kv := self._versions.get(put.key)) is not None
                and kv.value != put.value
                and is_other(kv.value, put.value)
            ]

    def _steps(
        self, prefix: bytes, puts: Sequence[Put], is_excluded: Callable[[bytes], bool]
    ) -> Iterator[Sequence[Put | Delete]]:
        put_keys = {put.key for put in puts}
        present = self._versions.keys(prefix, prefix_end(prefix))
        for start in range(0, len(present), STEP):
            batch = present[start : start + STEP]
            yield [Delete(key=key) for key in batch if key not in put_keys and not is_excluded(key)]
        for start in range(0, len(puts), STEP):
            yield [put for put in puts[start : start + STEP] if not self._is_unchanged(put)]

    def _revert(self, events: Sequence[Event]) -> None:
        """Undo the newest changes."""
        for event in reversed(events):
            key, before = event.kv.key, event.previous
            if event.kind is EventKind.PUT:
                self._versions.undo_put(key)
            else:
                self._versions.undo_delete(key)
            self.leases.move(key, event.kv.lease, NO_LEASE if before is None else before.lease)

    def _holds(self, compare: Compare) -> bool:
        kv = self._versions.get(compare.key)
        if kv is not None:
            have = _TARGET_VALUES[compare.target](kv)
        elif compare.target is _VALUE:
            return False
        else:
            have = 0
        return _RELATIONS[compare.relation](have, compare.operand)

    def _check(self, operation: Operation) -> None:
        """Raise an error if an operation is invalid in the present state; called before any change."""
        if type(operation) is Put and operation.lease != NO_LEASE and operation.lease not in self.leases:
            raise LeaseNotFound(f"lease {operation.lease} not found")
        if type(operation) is Range:
            self._resolve_revision(operation.revision, self.revision)

    def _log_events(self, events: Sequence[Event]) -> None:
        if not events:
            return
        self._log.append(tuple(events))
        self.revision += 1
        size = sum(map(packable_bytes, events)) if len(events) <= PACKED_EVENTS else 0
        if size:
            self._unpacked.append((self.revision, size))
            self._unpacked_bytes += size

    def _execute(self, operation: Operation, events: list[Event]) -> OperationResult:
        match operation:
            case Put():
                return self._put(operation, events)
            case Range():
                # It includes the earlier changes of its transaction, which have the revision that is being made.
                return self.range(operation, self.revision + bool(events))
            case Delete():
                return self._delete(operation, events)

    @property
    def has_unpacked(self) -> bool:
        """Whether there are replaced values that `pack` would compress."""
        return self._unpacked_bytes > UNPACKED_BYTES

    def pack(self, budget: int) -> None:
        """Compress at least `budget` bytes of replaced values, which only reads of past revisions use."""
        while self.has_unpacked and budget > 0:
            revision, size = self._unpacked.popleft()
            self._unpacked_bytes -= size
            self._pack(revision)
            budget -= size

    def _pack(self, revision: Revision) -> None:
        """Compress the values that a revision replaced."""
        for index, event in enumerate(self._events_of(revision)):
            replaced = event.previous
            if replaced is None or not is_worth_packing(replaced):
                continue
            older_events = self._events_of(replaced.mod_revision)
            if len(older_events) > PACKED_EVENTS:
                continue
            packed = self._versions.pack(replaced, event.kv)
            self._replace_event(revision, index, replace(event, previous=packed))
            for place, older in enumerate(older_events):
                if older.kv is replaced:
                    self._replace_event(replaced.mod_revision, place, replace(older, kv=packed))

    def _events_of(self, revision: Revision) -> Sequence[Event]:
        index = revision - self._swept - 1
        return self._log[index] if 0 <= index < len(self._log) else ()

    def _replace_event(self, revision: Revision, index: int, event: Event) -> None:
        events = [*self._events_of(revision)]
        events[index] = event
        self._log[revision - self._swept - 1] = events

    def _put(self, request: Put, events: list[Event]) -> PutResult:
        revision = self.revision + 1
        kv, previous = self._versions.put(request.key, request.value, request.lease, revision)
        old_lease = NO_LEASE if previous is None else previous.lease
        if old_lease != kv.lease:  # most keys have no lease
            self.leases.move(kv.key, old_lease, kv.lease)
        events.append(Event(kind=EventKind.PUT, kv=kv, previous=previous))
        return PutResult(revision=revision, previous=previous if request.previous else None)

    def _delete(self, request: Delete, events: list[Event]) -> DeleteResult:
        if request.range_end is not None:
            keys = self._versions.keys(request.key, request.range_end)
        else:
            keys = () if self._versions.get(request.key) is None else (request.key,)
        previous = [self._delete_key(key, events) for key in keys]
        revision = self.revision + bool(events)
        return DeleteResult(
            revision=revision, deleted=len(previous), previous=previous if request.previous else ()
        )

    def _delete_key(self, key: bytes, events: list[Event]) -> KeyValue:
        tombstone, previous = self._versions.delete(key, self.revision + 1)
        self.leases.move(key, previous.lease, NO_LEASE)
        events.append(Event(kind=EventKind.DELETE, kv=tombstone, previous=previous))
        return previous

    # --- compaction

    @property
    def history_revisions(self) -> int:
        """The number of revisions that can be read, or are being freed."""
        return len(self._log)

    @property
    def history_bytes(self) -> int:
        """The memory that past versions and the log of events take."""
        return self._versions.past_bytes + len(self._log) * LOG_BYTES

    @property
    def is_swept(self) -> bool:
        """Whether all that was compacted is freed."""
        return self._swept >= self.compact_revision - 1

    def compaction_freeing(self, excess_bytes: int, excess_revisions: int) -> Revision:
        """Return the revision whose compaction frees at least so much of the history; the newest one if none does."""
        first = max(self._swept, self.compact_revision) + 1
        for revision, events in enumerate(self._log[first - self._swept - 1 :], first):
            if excess_bytes <= 0 and excess_revisions <= 0:
                return revision
            excess_bytes -= LOG_BYTES + sum(map(taken_by, events))
            excess_revisions -= 1
        return self.revision

    def check_compact(self, revision: Revision, head: Revision) -> None:
        """Refuse a compaction that would be invalid if `head` were the newest revision."""
        if revision > head:
            raise FutureRevision(revision, head)
        if revision <= self.compact_revision:
            raise Compacted(revision, self.compact_revision)

    def compact(self, revision: Revision) -> None:
        """Refuse reads before `revision` from now on; `sweep` then frees what can no longer be read."""
        self.check_compact(revision, self.revision)
        self.compact_revision = revision
        self._was_compacted = True

    def sweep(self, budget: int) -> bool:
        """Free the unreadable versions of the next `budget` revisions; return False when nothing is left to free."""
        last = min(self.compact_revision, self._swept + budget)
        for event in chain.from_iterable(self._log[: last - self._swept]):
            self._versions.trim(event.kv.key, last)
        # The log keeps the compact revision itself, because a watch may start there.
        swept = min(last, self.compact_revision - 1)
        if swept > self._swept:
            del self._log[: swept - self._swept]
            self._swept = swept
        return last < self.compact_revision


def _shape(request: Range, head: Revision, kvs: Sequence[KeyValue], count: int) -> RangeResult:
    """Apply the limit and the options of a request to its result."""
    if request.count_only:
        return RangeResult(revision=head, kvs=(), count=count)
    more = bool(request.limit) and count > request.limit
    if more:
        kvs = kvs[: request.limit]
    if request.keys_only:
        kvs = [_without_value(kv) for kv in kvs]
    return RangeResult(revision=head, kvs=kvs, count=count, more=more)


def _without_value(kv: KeyValue) -> KeyValue:
    return KeyValue(
        key=kv.key,
        value=b"",
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        lease=kv.lease,
    )
