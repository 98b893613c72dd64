"""The multi-version state machine: keys, their versions, and the log of what each revision changed.

Synchronous and pure: no event loop, no clock, no disk. A transaction is checked whole, then applied whole, so it
cannot fail half-way. Every version stays readable until compaction passes it; therefore a snapshot is a number.

How a key is held, for a key put at 2, put at 5, deleted at 7 and put at 9:

    current[key]   the version of 9, for it exists now
    past[key]      the versions of 2 and 5 and the tombstone of 7, oldest first
    log            at 2, 5, 7 and 9 an event each, with the version before it

compact(6) leaves past = [5, 7]: at 6 the key reads as of 5. compact(7) leaves past = []: at 7 it was absent.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import chain

from etcd.embedded.keys import Keys
from etcd.embedded.leases import Leases
from etcd.errors import Compacted, FutureRevision, LeaseNotFound
from etcd.kv import (
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
)

FIRST_REVISION: Revision = 1
"""What an empty store is at, as in etcd: the first change makes revision 2."""

PUT, DELETE = EventKind.PUT, EventKind.DELETE


class Mvcc:
    """One store's whole state."""

    __slots__ = (
        "_current",
        "_keys",
        "_log",
        "_past",
        "_swept",
        "compact_revision",
        "leases",
        "revision",
        "size",
    )

    def __init__(self) -> None:
        self.revision: Revision = FIRST_REVISION
        self.compact_revision: Revision = 0
        """Reads before it are refused. What compaction frees is swept up later, bit by bit."""
        self.size = 0
        """Bytes of the keys and values of every version held."""
        self.leases = Leases()
        self._keys = Keys()
        self._current: dict[bytes, KeyValue] = {}
        self._past: dict[bytes, list[KeyValue]] = {}
        self._log: list[
            Sequence[Event]
        ] = []  # the events of revision _swept + 1, then of the next, to the newest
        self._swept: Revision = FIRST_REVISION

    # --- reading

    def range(self, request: Range, head: Revision | None = None) -> RangeResult:
        """Read as if `head` were the newest revision (default: it is)."""
        newest = self.revision if head is None else head
        revision = self._readable(request.revision, newest)
        if request.range_end is None:
            kv = self._at(request.key, revision)
            kvs: Sequence[KeyValue] = () if kv is None else (kv,)
            count = len(kvs)
        elif revision == self.revision:
            count = self._keys.count(request.key, request.range_end)
            kvs = () if request.count_only else self._now(request.key, request.range_end, request.limit)
        else:
            kvs = self._then(request.key, request.range_end, revision)
            count = len(kvs)
        return _shape(request, newest, kvs, count)

    def get(self, key: bytes) -> KeyValue | None:
        """The key as it is now."""
        return self._current.get(key)

    def events(self, first: Revision, last: Revision) -> Sequence[Sequence[Event]]:
        """What each of the revisions first..last changed, with previous values; all must be later than swept history."""
        return self._log[first - self._swept - 1 : last - self._swept]

    @property
    def first_watchable(self) -> Revision:
        """The oldest revision a watch may start at."""
        nothing_lost = self._swept == FIRST_REVISION and self.compact_revision <= FIRST_REVISION
        return HEAD if nothing_lost else max(self.compact_revision, self._swept + 1)

    def check_readable(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if type(operation) is Range and operation.revision > 0:
                self._readable(operation.revision, self.revision)

    def _readable(self, revision: Revision, newest: Revision) -> Revision:
        if revision <= 0:
            return newest
        if revision > newest:
            raise FutureRevision(revision, newest)
        if revision < self.compact_revision:
            raise Compacted(revision, self.compact_revision)
        return revision

    def _now(self, key: bytes, range_end: bytes, limit: int) -> Sequence[KeyValue]:
        current = self._current
        return [current[k] for k in self._keys.live(key, range_end, limit)]

    def _then(self, key: bytes, range_end: bytes, revision: Revision) -> Sequence[KeyValue]:
        at = self._at
        return [kv for k in self._keys.ever(key, range_end) if (kv := at(k, revision)) is not None]

    def _at(self, key: bytes, revision: Revision) -> KeyValue | None:
        kv = self._current.get(key)
        if kv is not None and kv.mod_revision <= revision:
            return kv
        versions = self._past.get(key)
        if versions is None:
            return None
        after = bisect_right(versions, revision, key=_mod_revision)
        kv = versions[after - 1] if after else None
        return kv if kv is not None and kv.version else None

    # --- writing

    def txn(self, request: Txn) -> TxnResult:
        """Carry out a transaction that `admit.check_txn` let pass; `revision` rises by one if it changed anything."""
        succeeded = all(map(self._holds, request.compare))
        operations = request.then if succeeded else request.otherwise
        self.check_readable(operations)
        self._check_leases(operations)
        events: list[Event] = []
        results = [_DO[type(operation)](self, operation, events) for operation in operations]
        if events:
            self._log.append(tuple(events))
            self.revision += 1
        return TxnResult(revision=self.revision, succeeded=succeeded, results=results)

    def revoke(self, lease: LeaseId) -> None:
        """End a lease; what it held is deleted in one revision."""
        held = sorted(self.leases.keys(lease))
        events: list[Event] = []
        for key in held:
            self._delete_one(key, self.revision + 1, events)
        self.leases.revoke(lease)
        if events:
            self._log.append(tuple(events))
            self.revision += 1

    def undo(self) -> None:
        """Take the newest revision back, as if it had not been; its leases' ends are not taken back."""
        for event in reversed(self._log.pop()):
            _UNDO[event.kind](self, event)
            self.size -= len(event.kv.key) + len(event.kv.value)
        self.revision -= 1

    def _holds(self, compare: Compare) -> bool:
        kv = self._current.get(compare.key)
        if kv is None:
            if compare.target is Target.VALUE:
                return False
            have: int | bytes = 0
        else:
            have = _LOOK[compare.target](kv)
        return _STANDS[compare.relation](have, compare.operand)

    def _check_leases(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if type(operation) is Put and operation.lease != NO_LEASE and operation.lease not in self.leases:
                raise LeaseNotFound(f"lease {operation.lease} not found")

    def _range(self, request: Range, events: list[Event]) -> RangeResult:
        # Within a transaction a read sees the changes before it, which stand at the revision being made.
        return self.range(request, self.revision + bool(events))

    def _put(self, request: Put, events: list[Event]) -> PutResult:
        key, revision = request.key, self.revision + 1
        previous = self._current.get(key)
        if previous is None:
            created, version = revision, 1
            self._keys.born(key, was_ghost=key in self._past)
        else:
            created, version = previous.create_revision, previous.version + 1
            self._retire(previous)
        kv = KeyValue(
            key=key,
            value=request.value,
            create_revision=created,
            mod_revision=revision,
            version=version,
            lease=request.lease,
        )
        self._current[key] = kv
        self.size += len(key) + len(request.value)
        self.leases.move(key, NO_LEASE if previous is None else previous.lease, request.lease)
        events.append(Event(kind=PUT, kv=kv, previous=previous))
        return PutResult(revision=revision, previous=previous if request.previous else None)

    def _delete(self, request: Delete, events: list[Event]) -> DeleteResult:
        if request.range_end is not None:
            keys = self._keys.live(request.key, request.range_end)
        else:
            keys = (request.key,) if request.key in self._current else ()
        before = len(events)
        for key in keys:
            self._delete_one(key, self.revision + 1, events)
        gone = [event.previous for event in events[before:] if event.previous is not None]
        return DeleteResult(
            revision=self.revision + bool(events),
            deleted=len(gone),
            previous=gone if request.previous else (),
        )

    def _delete_one(self, key: bytes, revision: Revision, events: list[Event]) -> None:
        previous = self._current.pop(key)
        tombstone = KeyValue(key=key, value=b"", create_revision=0, mod_revision=revision, version=0)
        self._retire(previous)
        self._past[key].append(tombstone)
        self._keys.died(key)
        self.size += len(key)
        self.leases.move(key, previous.lease, NO_LEASE)
        events.append(Event(kind=DELETE, kv=tombstone, previous=previous))

    def _retire(self, kv: KeyValue) -> None:
        versions = self._past.get(kv.key)
        if versions is None:
            self._past[kv.key] = [kv]
        else:
            versions.append(kv)

    def _unput(self, event: Event) -> None:
        key = event.kv.key
        if event.previous is None:
            del self._current[key]
            self._keys.unborn(key, is_ghost=key in self._past)
        else:
            self._current[key] = self._unretire(key)
        self.leases.move(key, event.kv.lease, NO_LEASE if event.previous is None else event.previous.lease)

    def _undelete(self, event: Event) -> None:
        key = event.kv.key
        self._past[key].pop()
        kv = self._current[key] = self._unretire(key)
        self._keys.undied(key)
        self.leases.move(key, NO_LEASE, kv.lease)

    def _unretire(self, key: bytes) -> KeyValue:
        versions = self._past[key]
        kv = versions.pop()
        if not versions:
            del self._past[key]
        return kv

    # --- forgetting

    def compact(self, revision: Revision) -> None:
        """Refuse reads before `revision` from now on; `sweep` then frees what nobody can read."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision <= self.compact_revision:
            raise Compacted(revision, self.compact_revision)
        self.compact_revision = revision

    def sweep(self, budget: int) -> bool:
        """Free the next `budget` revisions' worth of unreadable versions; False when nothing is left to free."""
        # The log keeps the compact revision itself: a watch may still start there.
        last = min(self.compact_revision, self._swept + budget)
        for event in chain.from_iterable(self.events(self._swept + 1, last)):
            self._trim(event.kv.key, last)
        keep_from = min(last, self.compact_revision - 1)
        if keep_from > self._swept:
            del self._log[: keep_from - self._swept]
            self._swept = keep_from
        return self._swept < self.compact_revision - 1

    def _trim(self, key: bytes, revision: Revision) -> None:
        """Drop the versions of a key that no read at `revision` or later can see."""
        versions = self._past.get(key)
        if versions is None:
            return
        drop = bisect_right(versions, revision, key=_mod_revision)
        current = self._current.get(key)
        if drop and versions[drop - 1].version and (current is None or current.mod_revision > revision):
            drop -= 1  # the key reads as this version at `revision`
        for kv in versions[:drop]:
            self.size -= len(kv.key) + len(kv.value)
        if drop < len(versions):
            del versions[:drop]
        else:
            del self._past[key]
            if current is None:
                self._keys.forget(key)

    # --- starting from what was saved

    def load(self, revision: Revision, kvs: Sequence[KeyValue]) -> None:
        """Begin, in place of an empty store, with all that existed at a revision, in byte order of keys; leases first."""
        self.revision = self.compact_revision = self._swept = revision
        self._current = {kv.key: kv for kv in kvs}
        self._keys.load(self._current)
        self.size = sum(len(kv.key) + len(kv.value) for kv in kvs)
        for kv in kvs:
            self.leases.move(kv.key, NO_LEASE, kv.lease)


def _shape(request: Range, newest: Revision, kvs: Sequence[KeyValue], count: int) -> RangeResult:
    """Cut what was found to what was asked for."""
    if request.count_only:
        return RangeResult(revision=newest, kvs=(), count=count)
    more = False
    if request.limit and count > request.limit:
        kvs, more = kvs[: request.limit], True
    if request.keys_only:
        kvs = [_without_value(kv) for kv in kvs]
    return RangeResult(revision=newest, kvs=kvs, count=count, more=more)


def _without_value(kv: KeyValue) -> KeyValue:
    return KeyValue(
        key=kv.key,
        value=b"",
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        lease=kv.lease,
    )


def _mod_revision(kv: KeyValue) -> Revision:
    return kv.mod_revision


_LOOK: dict[Target, Callable[[KeyValue], int | bytes]] = {
    Target.VERSION: lambda kv: kv.version,
    Target.CREATE: lambda kv: kv.create_revision,
    Target.MOD: lambda kv: kv.mod_revision,
    Target.VALUE: lambda kv: kv.value,
    Target.LEASE: lambda kv: kv.lease,
}
_STANDS: dict[Relation, Callable[..., bool]] = {
    Relation.EQUAL: lambda have, operand: have == operand,
    Relation.NOT_EQUAL: lambda have, operand: have != operand,
    Relation.GREATER: lambda have, operand: have > operand,
    Relation.LESS: lambda have, operand: have < operand,
}
_DO: dict[type, Callable[..., OperationResult]] = {Range: Mvcc._range, Put: Mvcc._put, Delete: Mvcc._delete}
_UNDO: dict[EventKind, Callable[[Mvcc, Event], None]] = {PUT: Mvcc._unput, DELETE: Mvcc._undelete}
