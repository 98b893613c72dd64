"""Any sequence of requests gets the same responses from a store and from the model."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from mockube.etcd import compression
from mockube.etcd.embedded import mvcc
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.errors import Compacted, KVError
from mockube.etcd.kv import (
    FROM_KEY,
    KV,
    Compare,
    Delete,
    Event,
    EventKind,
    Put,
    Range,
    Relation,
    Revision,
    Target,
    Txn,
    TxnResult,
    Watch,
    WatchRequest,
)
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.stores import backends
from tests.support.stores.backends import Backend
from tests.support.stores.calls import batches_so_far, events_of, head, read_all
from tests.support.stores.formatting import words
from tests.support.stores.model import Model
from tests.support.stores.replay import is_equal_result

KEYS = (b"a", b"a/1", b"a/2", b"a0", b"\xff")
WATCHES = 3

keys = st.sampled_from(KEYS)
values = st.sampled_from((b"", b"1", b"2"))
ends = st.sampled_from((None, None, b"a/2", b"a0", b"b"))
offsets = st.integers(-1, 12)
"""How many revisions ago; -1 is the future."""
compares = st.builds(
    Compare,
    key=keys,
    target=st.sampled_from([target for target in Target if target is not Target.VALUE]),
    relation=st.sampled_from(Relation),
    operand=st.integers(0, 3),
) | st.builds(
    Compare, key=keys, target=st.just(Target.VALUE), relation=st.sampled_from(Relation), operand=values
)
ranges = st.builds(
    Range,
    key=keys,
    range_end=ends | st.just(FROM_KEY),
    limit=st.integers(0, 3),
    keys_only=st.booleans(),
    count_only=st.booleans(),
)
puts = st.builds(Put, key=keys, value=values, previous=st.booleans())
deletes = st.builds(Delete, key=keys, range_end=ends, previous=st.booleans())
operations = st.lists(ranges | puts | puts | deletes, max_size=5)


@pytest.fixture(autouse=True)
def small_values_are_compressed(monkeypatch):
    monkeypatch.setattr(compression, "MIN_BYTES", 1)
    monkeypatch.setattr(compression, "MAX_CHAIN", 3)
    monkeypatch.setattr(mvcc, "UNPACKED_BYTES", 0)


class ComparedWatch:
    """A watch, and the revision up to which its events were compared."""

    def __init__(self, watch: Watch, request: WatchRequest, seen: Revision) -> None:
        self.watch = watch
        self.request = request
        self.seen = seen


class StoreMachine(RuleBasedStateMachine):
    opened: Callable[[], AbstractAsyncContextManager[Backend]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.backend = self.runner.run(self.stack.enter_async_context(self.opened()))
        self.store = self.backend.store
        self.model = Model(self.backend.base)
        self.granted: list[int] = []
        self.followed: list[ComparedWatch] = []

    def teardown(self) -> None:
        try:
            for followed in list(self.followed):
                self.compare_events(followed)
            self.compare_history()
        finally:
            self.runner.run(self.stack.aclose())
            self.runner.close()

    # --- rules

    @rule(compare=st.lists(compares, max_size=2), then=operations, otherwise=operations)
    def txn(self, compare, then, otherwise):
        self.run_on_both("txn", Txn(compare=compare, then=then, otherwise=otherwise))

    @rule(operation=puts)
    def put(self, operation):
        self.run_on_both("put", operation)

    @rule(operation=deletes, endless=st.booleans())
    def delete(self, operation, endless):
        self.run_on_both(
            "delete", Delete(key=operation.key, range_end=FROM_KEY if endless else operation.range_end)
        )

    @rule(offset=offsets, operation=ranges)
    def range(self, offset, operation):
        revision = max(self.backend.base, self.model.revision - offset)
        self.run_on_both("range", replace(operation, revision=revision))

    @rule(offset=offsets)
    def compact(self, offset):
        revision = max(self.backend.base + 1, self.model.revision - offset)
        if self.backend.forgets_deletions and has_deletion(self.model.events.get(revision, ())):
            return
        expected = outcome(lambda: self.model.compact(revision))
        assert self.outcome(self.store.compact(revision)) == expected

    @precondition(lambda self: isinstance(self.store, EmbeddedStore))
    @rule()
    def compress_past_values(self):
        self.store._core.pack(1)

    @rule()
    def grant(self):
        lease = self.runner.run(self.store.grant(600))
        self.granted.append(lease.id)
        self.model.leases.add(lease.id)

    @precondition(lambda self: self.granted)
    @rule(data=st.data(), key=keys)
    def put_with_lease(self, data, key):
        self.run_on_both("put", Put(key=key, value=b"leased", lease=data.draw(st.sampled_from(self.granted))))

    @precondition(lambda self: self.granted)
    @rule(data=st.data())
    def revoke(self, data):
        lease = data.draw(st.sampled_from(self.granted))
        actual = self.outcome(self.store.revoke(lease))
        assert actual == (None if lease in self.model.leases else "LeaseNotFound")
        self.end_lease(lease)

    @precondition(lambda self: self.backend.pass_time and self.model.leases)
    @rule()
    def expire(self):
        self.runner.run(self.backend.let_expire(601))
        for lease in sorted(self.model.leases):
            self.end_lease(lease)
        self.runner.run(until_ended(self.store, self.model.revision))

    @precondition(lambda self: len(self.followed) < WATCHES)
    @rule(key=keys, range_end=st.sampled_from((None, b"b", FROM_KEY)), offset=offsets, previous=st.booleans())
    def watch(self, key, range_end, offset, previous):
        start = max(self.backend.base + 1, self.model.compacted, self.model.revision - offset)
        if range_end == b"b" <= key:
            range_end = None  # an interval that holds nothing cannot be watched
        request = WatchRequest(key=key, range_end=range_end, start_revision=start, previous=previous)
        followed = ComparedWatch(self.runner.run(self.store.watch(request)), request, start - 1)
        self.followed.append(followed)
        self.compare_events(followed)

    @precondition(lambda self: self.followed)
    @rule(data=st.data())
    def read_watch(self, data):
        self.compare_events(data.draw(st.sampled_from(self.followed)))

    @precondition(lambda self: self.followed)
    @rule(data=st.data())
    def resume(self, data):
        """Close a watch, and open it again after its last event."""
        self.reopen(data.draw(st.sampled_from(self.followed)))

    @invariant()
    def store_equals_model(self):
        result = self.runner.run(read_all(self.store))
        assert result.revision == self.model.revision
        assert list(result.kvs) == [kv for _, kv in sorted(self.model.states[self.model.revision].items())]

    # --- comparing

    def run_on_both(self, method: str, request: Any) -> None:
        txn = request if isinstance(request, Txn) else Txn(then=[request])
        expected = outcome(lambda: self.model.txn(txn))
        if txn is not request and isinstance(expected, TxnResult):
            expected = expected.results[0]
        actual = self.outcome(getattr(self.store, method)(request))
        assert is_equal_result(actual, expected), f"{words(actual)} is not {words(expected)}"

    def outcome(self, call: Any) -> Any:
        return outcome(lambda: self.runner.run(call))

    def end_lease(self, lease: int) -> None:
        if lease in self.model.leases:
            self.model.leases.remove(lease)
            events = self.model.end_lease(lease)
            if events:
                self.model.commit(events)

    def reopen(self, followed: ComparedWatch) -> None:
        self.runner.run(followed.watch.close())
        followed.request = replace(followed.request, start_revision=followed.seen + 1)
        followed.watch = self.runner.run(self.store.watch(followed.request))

    def compare_events(self, followed: ComparedWatch) -> None:
        forgotten = followed.seen + 1 < self.model.compacted
        try:
            events = events_of(self.runner.run(batches_so_far(self.store, followed.watch)))
        except Compacted:
            assert forgotten
            followed.seen = self.model.compacted - 1
            self.reopen(followed)
            self.compare_events(followed)
            return
        request, seen = followed.request, followed.seen
        expected = list(self.model.events_between(request.key, request.range_end, seen, self.model.revision))
        assert [(each.kind, each.kv) for each in events] == [(each.kind, each.kv) for each in expected]
        for actual, truth in zip(events, expected, strict=True):
            left_out = actual.previous is None and actual.kv.mod_revision <= self.model.compacted
            assert left_out or actual.previous == (truth.previous if request.previous else None)
        followed.seen = max(seen, self.model.revision)

    def compare_history(self) -> None:
        first = max(self.backend.base, self.model.compacted)
        for revision in range(first, self.model.revision + 1):
            result = self.runner.run(read_all(self.store, revision=revision))
            assert list(result.kvs) == [kv for _, kv in sorted(self.model.states[revision].items())]


async def until_ended(store: KV, revision: Revision) -> None:
    """Wait until a store has ended every lease by itself and created the resulting revisions."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while await store.leases() or await head(store) < revision:
            await yield_to_loop()


def has_deletion(events: Iterable[Event]) -> bool:
    return any(event.kind is EventKind.DELETE for event in events)


def outcome(call: Callable[[], Any]) -> Any:
    """Return a call's result, or the name of its error."""
    try:
        return call()
    except KVError as error:
        return type(error).__name__


def machine(opener: Callable[[], AbstractAsyncContextManager[Backend]]) -> type[StoreMachine]:
    return type("Machine", (StoreMachine,), {"opened": staticmethod(opener)})


def fewer_examples() -> settings:
    """For stores that are slower than a store in memory."""
    return settings(max_examples=max(settings.default.max_examples // 4, 1))


def test_memory_is_as_the_model():
    run_state_machine_as_test(machine(backends.memory))


def test_durable_is_as_the_model(tmp_path_factory):
    durable = machine(lambda: backends.durable(tmp_path_factory.mktemp("durable")))
    run_state_machine_as_test(durable, settings=fewer_examples())


@pytest.mark.etcd
@pytest.mark.slow
def test_etcd_is_as_the_model(shared_etcd_url):
    run_state_machine_as_test(machine(lambda: backends.etcd(shared_etcd_url)), settings=fewer_examples())
