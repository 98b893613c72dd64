"""The MVCC state machine: what the contract tests cannot observe."""

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.etcd import compression
from mockube.etcd.embedded import mvcc
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.versions import PackedKeyValue
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Delete, KeyValue, Put, Range, Txn

ALL = Range(key=b"a", range_end=b"z")


def core_after(*operations: Put | Delete) -> Mvcc:
    core = Mvcc()
    for operation in operations:
        core.txn(Txn(then=(operation,)))
    return core


def all_revisions(core: Mvcc) -> object:
    oldest = max(core.compact_revision, 1)
    return [
        core.range(Range(key=b"a", range_end=b"z", revision=revision), core.revision)
        for revision in range(oldest, core.revision + 1)
    ]


def events_of(core: Mvcc) -> object:
    return [list(events) for events in core.events(2, core.revision)]


OPERATIONS = st.one_of(
    st.builds(Put, key=st.sampled_from([b"a", b"b", b"c"]), value=st.binary(max_size=3)),
    st.builds(Delete, key=st.sampled_from([b"a", b"b"]), range_end=st.sampled_from([None, b"z"])),
)


@given(st.lists(OPERATIONS, max_size=15), st.lists(OPERATIONS, max_size=15))
def test_undo_removes_whole_revisions(kept, undone):
    core = core_after(*kept)
    before, size, revision = all_revisions(core), core.size, core.revision
    for operation in undone:
        core.txn(Txn(then=(operation,)))
    while core.revision > revision:
        core.undo()
    assert all_revisions(core) == before
    assert core.size == size


def test_undo_reattaches_key_to_lease():
    core = Mvcc()
    core.leases.grant(7, 10, now=0.0)
    core.txn(Txn(then=(Put(key=b"a", value=b"", lease=7),)))
    core.txn(Txn(then=(Put(key=b"a", value=b""),)))
    assert not core.leases.keys(7)
    core.undo()
    assert core.leases.keys(7) == {b"a"}


def test_undo_of_revoke_needs_restored_lease():
    core = Mvcc()
    core.leases.grant(7, 10, now=0.0)
    core.txn(Txn(then=(Put(key=b"a", value=b"", lease=7),)))
    core.revoke(7)
    core.leases.grant(7, 10, now=0.0)
    core.undo()
    assert core.leases.keys(7) == {b"a"}


@pytest.mark.thorough
@pytest.mark.parametrize("budget", [1, 2, 3, 100])
@given(operations=st.lists(OPERATIONS, min_size=1, max_size=25), data=st.data())
def test_incremental_sweep_does_not_change_reads(budget, operations, data):
    core = core_after(*operations)
    for _ in range(2):
        if core.compact_revision == core.revision:
            break
        core.compact(data.draw(st.integers(core.compact_revision + 1, core.revision)))
        before = all_revisions(core)
        while core.sweep(budget):
            assert all_revisions(core) == before
        assert all_revisions(core) == before
        assert core.first_watchable in (0, core.compact_revision)


@given(operations=st.lists(OPERATIONS, min_size=1, max_size=25), data=st.data())
def test_compression_of_past_values_does_not_change_reads_events_or_size(operations, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "MIN_BYTES", 1)
        patch.setattr(compression, "MAX_CHAIN", data.draw(st.integers(2, 5)))
        patch.setattr(mvcc, "UNPACKED_BYTES", 0)
        core = core_after(*operations)
        history = all_revisions(core), events_of(core), core.size
        core.pack(data.draw(st.integers(1, 40)))
        assert (all_revisions(core), events_of(core), core.size) == history
        while core.has_unpacked:
            core.pack(1)
        assert (all_revisions(core), events_of(core), core.size) == history
        replaced = [kv for history in core._versions._past.values() for kv in history if kv.value]
        assert all(type(kv) is PackedKeyValue for kv in replaced)
        while core.revision > 1:
            core.undo()
        assert core.size == 0


def test_values_that_a_compressed_one_needs_are_compressed_too(monkeypatch):
    monkeypatch.setattr(mvcc, "UNPACKED_BYTES", 0)
    core = Mvcc()
    for number in range(10):
        core.txn(Txn(then=(Put(key=b"a", value=b"%d" % number * 10_000),)))
    while core.has_unpacked:
        core.pack(1)
    (history,) = core._versions._past.values()
    for version, newer in pairwise([*history, core.get(b"a")]):
        assert version.newer is newer


def test_newest_replaced_values_are_not_compressed():
    core, value = Mvcc(), b"1" * (1 << 18)
    for _ in range(mvcc.UNPACKED_BYTES // len(value) + 2):
        core.txn(Txn(then=(Put(key=b"a", value=value),)))
    assert core.has_unpacked
    core.pack(1)
    assert not core.has_unpacked


def test_similar_versions_take_little_memory(monkeypatch):
    monkeypatch.setattr(mvcc, "UNPACKED_BYTES", 0)
    core, common = Mvcc(), hashlib.shake_128(b"").digest(4_000)
    for number in range(64):
        core.txn(Txn(then=(Put(key=b"a", value=b"%d" % number + common),)))
    while core.has_unpacked:
        core.pack(1)
    (history,) = core._versions._past.values()
    assert sum(len(kv.value) for kv in history) < 5 * 4_000
    assert core.size > 64 * 4_000
    assert [kv.version for kv in history if kv.newer is None] == [16, 32, 48], "each chain ends"


def test_value_is_compressed_alone_if_next_one_exceeds_window(monkeypatch):
    monkeypatch.setattr(mvcc, "UNPACKED_BYTES", 0)
    core, sizes = Mvcc(), (1_000, 1_000, compression.MAX_DICTIONARY, 1_000, compression.MAX_DICTIONARY + 1, 1)
    for size in sizes:
        core.txn(Txn(then=(Put(key=b"a", value=b"1" * size),)))
    history = all_revisions(core)
    while core.has_unpacked:
        core.pack(1)
    assert all_revisions(core) == history
    (packed,) = core._versions._past.values()
    assert [kv.newer is None for kv in packed] == [False, False, False, True, False]


def test_replaced_large_values_take_little_memory(monkeypatch):
    monkeypatch.setattr(mvcc, "UNPACKED_BYTES", 0)
    core = Mvcc()
    for number in range(100):
        core.txn(Txn(then=(Put(key=b"a", value=b"%d" % number * 20_000),)))
    while core.has_unpacked:
        core.pack(1)
    kept = {
        id(kv.value): len(kv.value) for events in core._log for e in events for kv in (e.kv, e.previous) if kv
    }
    assert sum(kept.values()) < 100_000
    assert core.size > 1_900_000


def test_values_of_revisions_with_many_changes_are_not_compressed(monkeypatch):
    """Each compressed event copies the events of two revisions."""
    monkeypatch.setattr(mvcc, "UNPACKED_BYTES", 0)
    core, keys = Mvcc(), [b"%d" % number for number in range(100)]
    for value in (b"1" * 20_000, b"2" * 20_000):
        core.txn(Txn(then=tuple(Put(key=key, value=value) for key in keys)))
    assert not core.has_unpacked
    core.txn(Txn(then=(Put(key=keys[0], value=b"3"),)))
    history = events_of(core)
    while core.has_unpacked:
        core.pack(1)
    assert events_of(core) == history
    assert all(type(events) is tuple for events in core._log)


@given(st.lists(OPERATIONS, min_size=1, max_size=25))
def test_compaction_at_head_keeps_current_keys_only(operations):
    core = core_after(*operations)
    if core.revision > 1:
        core.compact(core.revision)
        while core.sweep(1):
            pass
    kvs = core.range(ALL, core.revision).kvs
    assert core.size == sum(len(kv.key) + len(kv.value) for kv in kvs)


def test_loaded_state_machine_continues():
    core = Mvcc()
    kvs = [
        KeyValue(key=b"a", value=b"1", create_revision=4, mod_revision=9, version=2),
        KeyValue(key=b"b", value=b"2", create_revision=5, mod_revision=5, version=1, lease=3),
    ]
    core.load(12, kvs, events=())
    core.restore_leases({3: 10}, now=0.0)
    assert list(core.range(ALL, core.revision).kvs) == kvs
    assert core.leases.keys(3) == {b"b"}
    assert core.first_watchable == 12
    core.txn(Txn(then=(Put(key=b"a", value=b"3"),)))
    kv = core.range(Range(key=b"a"), core.revision).kvs[0]
    assert (kv.create_revision, kv.mod_revision, kv.version) == (4, 13, 3)


FIRST = Range(key=b"a", range_end=b"z", revision=1)


def test_new_store_is_empty_at_the_first_revision_until_it_is_compacted():
    core = Mvcc()
    core.load(1000, (), events=())
    core.txn(Txn(then=(Put(key=b"a", value=b"1"),)))
    assert list(core.range(FIRST, core.revision).kvs) == []
    with pytest.raises(Compacted):
        core.range(Range(key=b"a", range_end=b"z", revision=2), core.revision)
    core.compact(core.revision)
    with pytest.raises(Compacted):
        core.range(FIRST, core.revision)


def test_first_revision_of_a_loaded_store_with_keys_is_compacted():
    core = Mvcc()
    core.load(9, [KeyValue(key=b"a", value=b"1", create_revision=4, mod_revision=9, version=2)], events=())
    with pytest.raises(Compacted):
        core.range(FIRST, core.revision)
