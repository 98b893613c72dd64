"""The contract as a dict for every revision: slow and simple; stores are compared with it.

It shares no code with any store. A request is evaluated on one dict, so any older revision can be evaluated as
well as the newest: the history checker needs that.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from mockube.etcd.errors import Compacted, FutureRevision, InvalidRequest, LeaseNotFound
from mockube.etcd.kv import (
    FROM_KEY,
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

Keys = dict[bytes, KeyValue]

STANDS: dict[Relation, Callable[[object, object], bool]] = {
    Relation.EQUAL: operator.eq,
    Relation.NOT_EQUAL: operator.ne,
    Relation.GREATER: operator.gt,
    Relation.LESS: operator.lt,
}
FIELDS = {
    Target.VERSION: "version",
    Target.CREATE: "create_revision",
    Target.MOD: "mod_revision",
    Target.VALUE: "value",
    Target.LEASE: "lease",
}


def is_in_range(key: bytes, range_end: bytes | None, candidate: bytes) -> bool:
    if range_end is None:
        return candidate == key
    return key <= candidate and (range_end == FROM_KEY or candidate < range_end)


class Model:
    """A store that begins empty at `revision`."""

    def __init__(self, revision: Revision = 1) -> None:
        self.revision = revision
        self.compacted = HEAD
        self.states: dict[Revision, Keys] = {revision: {}}
        self.events: dict[Revision, list[Event]] = {}
        self.leases: set[LeaseId] = set()

    def txn(self, request: Txn) -> TxnResult:
        refuse_overlaps(request.then)
        refuse_overlaps(request.otherwise)
        result, events = self.judge(request, self.revision)
        for operation in request.then if result.succeeded else request.otherwise:
            if isinstance(operation, Put) and operation.lease not in {NO_LEASE, *self.leases}:
                raise LeaseNotFound(f"lease {operation.lease}")
        if events:
            self.commit(events)
        return result

    def judge(self, request: Txn, revision: Revision) -> tuple[TxnResult, list[Event]]:
        """Return the transaction's response and changes if it comes right after `revision`."""
        keys, events = dict(self.states[revision]), []
        succeeded = all(holds(compare, keys.get(compare.key)) for compare in request.compare)
        operations = request.then if succeeded else request.otherwise
        results = [self._operate(operation, revision, keys, events) for operation in operations]
        return TxnResult(revision=revision + bool(events), succeeded=succeeded, results=results), events

    def commit(self, events: list[Event]) -> None:
        keys = dict(self.states[self.revision])
        for event in events:
            if event.kind is EventKind.PUT:
                keys[event.kv.key] = event.kv
            else:
                del keys[event.kv.key]
        self.revision += 1
        self.states[self.revision], self.events[self.revision] = keys, events

    def end_lease(self, lease: LeaseId) -> list[Event]:
        """Return the changes when a lease ends."""
        lease_keys = sorted(key for key, kv in self.states[self.revision].items() if kv.lease == lease)
        return [deletion(self.states[self.revision][key], self.revision + 1) for key in lease_keys]

    def compact(self, revision: Revision) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision <= self.compacted:
            raise Compacted(revision, self.compacted)
        self.compacted = revision

    def events_between(
        self, key: bytes, range_end: bytes | None, after: Revision, last: Revision
    ) -> Iterator[Event]:
        """Return the events of the interval in the revisions after `after` up to `last`, with previous values."""
        events = chain.from_iterable(self.events.get(revision, ()) for revision in range(after + 1, last + 1))
        return (event for event in events if is_in_range(key, range_end, event.kv.key))

    def _operate(
        self, operation: Operation, head: Revision, keys: Keys, events: list[Event]
    ) -> OperationResult:
        match operation:
            case Range():
                return self._range(operation, head, keys, head + bool(events))
            case Put():
                before = keys.get(operation.key)
                keys[operation.key] = kv = key_value_after_put(operation, before, head + 1)
                events.append(Event(kind=EventKind.PUT, kv=kv, previous=before))
                return PutResult(revision=head + 1, previous=before if operation.previous else None)
            case Delete():
                previous = [
                    kv
                    for key, kv in sorted(keys.items())
                    if is_in_range(operation.key, operation.range_end, key)
                ]
                for kv in previous:
                    del keys[kv.key]
                    events.append(deletion(kv, head + 1))
                return DeleteResult(
                    revision=head + bool(events),
                    deleted=len(previous),
                    previous=previous if operation.previous else (),
                )

    def _range(self, request: Range, head: Revision, keys: Keys, newest: Revision) -> RangeResult:
        if request.revision > head:
            raise FutureRevision(request.revision, head)
        if request.revision != HEAD and request.revision < self.compacted:
            raise Compacted(request.revision, self.compacted)
        keys = keys if request.revision == HEAD else self.states[request.revision]
        found = [kv for key, kv in sorted(keys.items()) if is_in_range(request.key, request.range_end, key)]
        if request.count_only:
            return RangeResult(revision=newest, kvs=(), count=len(found))
        page = found[: request.limit or None]
        kvs = [replace(kv, value=b"") for kv in page] if request.keys_only else page
        return RangeResult(revision=newest, kvs=kvs, count=len(found), more=len(page) < len(found))


def holds(compare: Compare, kv: KeyValue | None) -> bool:
    if kv is None and compare.target is Target.VALUE:
        return False
    have = 0 if kv is None else getattr(kv, FIELDS[compare.target])
    return STANDS[compare.relation](have, compare.operand)


def key_value_after_put(put: Put, before: KeyValue | None, revision: Revision) -> KeyValue:
    return KeyValue(
        key=put.key,
        value=put.value,
        lease=put.lease,
        mod_revision=revision,
        create_revision=before.create_revision if before else revision,
        version=before.version + 1 if before else 1,
    )


def deletion(kv: KeyValue, revision: Revision) -> Event:
    tombstone = KeyValue(key=kv.key, value=b"", create_revision=0, mod_revision=revision, version=0)
    return Event(kind=EventKind.DELETE, kv=tombstone, previous=kv)


def refuse_overlaps(operations: Sequence[Operation]) -> None:
    """Check that a key changes once in a revision: it is not put twice, nor both put and deleted."""
    puts = [operation.key for operation in operations if isinstance(operation, Put)]
    deletes = [operation for operation in operations if isinstance(operation, Delete)]
    if len(set(puts)) < len(puts) or any(
        is_in_range(d.key, d.range_end, key) for d in deletes for key in puts
    ):
        raise InvalidRequest("a key changes twice")
