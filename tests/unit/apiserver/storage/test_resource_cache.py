"""Lists and counts of a resource cache."""

from itertools import count

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.storage import resource_cache as module
from mockube.apiserver.storage.resource_cache import (
    LARGE,
    Change,
    ChangeKind,
    ResourceCache,
    TooOldResourceVersion,
)
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.etcd import compression


@pytest.fixture
def resource_cache():
    resource_cache = ResourceCache(b"/r/pods/")
    keys = (b"/r/pods/a/1", b"/r/pods/a/2", b"/r/pods/a/3", b"/r/pods/b/1")
    resource_cache.reset([StoredObject(key, b"{}", 1) for key in keys], 1)
    return resource_cache


@pytest.mark.parametrize(
    ("prefix", "limit", "names"),
    [
        (b"/r/pods/", 0, [b"a/1", b"a/2", b"a/3", b"b/1"]),
        (b"/r/pods/a/", 0, [b"a/1", b"a/2", b"a/3"]),
        (b"/r/pods/a/", 2, [b"a/1", b"a/2"]),
        (b"/r/pods/a/", 9, [b"a/1", b"a/2", b"a/3"]),
        (b"/r/pods/c/", 2, []),
    ],
)
def test_resources_are_listed_up_to_limit(resource_cache, prefix, limit, names):
    shown = resource_cache.select(prefix, limit=limit)
    assert [stored.key.removeprefix(resource_cache.prefix) for stored in shown] == names


def test_resources_are_counted_without_limit(resource_cache):
    assert [resource_cache.count(prefix) for prefix in (b"/r/pods/", b"/r/pods/a/", b"/r/pods/c/")] == [
        4,
        3,
        0,
    ]


def test_history_of_large_objects_is_limited_by_their_bytes():
    resource_cache = ResourceCache(b"/r/pods/")
    key, before = b"/r/pods/a/1", None
    for revision in range(1, 31):
        after = StoredObject(key, b"x" * (1 << 20), revision)
        kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
        resource_cache.apply(Change(kind, after, before, 0.0))
        before = after
    with pytest.raises(TooOldResourceVersion):
        resource_cache.since(15, b"/r/pods/")
    assert [change.revision for change in resource_cache.since(28, b"/r/pods/")] == [29, 30]


def test_history_of_small_objects_is_not_limited_by_their_bytes():
    resource_cache = ResourceCache(b"/r/pods/")
    before = None
    for revision in range(1, 1025):
        after = StoredObject(b"/r/pods/a/1", b"x" * (LARGE - 1), revision)
        kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
        resource_cache.apply(Change(kind, after, before, 0.0))
        before = after
    assert len(resource_cache.since(0, b"/r/pods/")) == 1024


def test_long_history_without_new_changes_gets_shorter(monkeypatch):
    monkeypatch.setattr(module, "IDLE_HISTORY", 10)
    monkeypatch.setattr(module, "FORGOTTEN_AT_ONCE", 20)
    resource_cache = ResourceCache(b"/r/pods/")
    for revision in range(1, 51):
        pod = StoredObject(b"/r/pods/a/%d" % revision, b"{}", revision)
        resource_cache.apply(Change(ChangeKind.ADDED, pod, None, 0.0))
    lengths = []
    for now in (74.0, 76.0, 81.0, 86.0):
        resource_cache.forget_old(now)
        lengths.append(len(resource_cache.since(50 - 10, b"/r/pods/")))
        oldest = next(n for n in range(51) if _is_known(resource_cache, n))
        lengths.append(oldest)
    assert lengths == [10, 0, 10, 20, 10, 40, 10, 40]


def _is_known(resource_cache, revision):
    try:
        resource_cache.since(revision, b"/r/pods/")
    except TooOldResourceVersion:
        return False
    return True


def pod_with_app(number, value, revision):
    tree = {"metadata": {"name": f"p{number}", "labels": {"app": value} if value else {}}}
    return StoredObject(b"/r/pods/a/%03d" % number, orjson.dumps(tree), revision)


CHANGES = st.lists(st.tuples(st.integers(0, 79), st.sampled_from(["a", "b", "", None])), max_size=12)
"""Objects by number, with their new label; None is a deletion."""


@given(st.lists(CHANGES, min_size=1, max_size=12), st.integers(1, 40))
def test_index_of_label_contains_changes_made_between_its_steps(changes_between_steps, step):
    resource_cache, revisions = ResourceCache(b"/r/pods/"), count(2)
    resource_cache.reset([pod_with_app(number, "ab"[number % 9 > 0], 1) for number in range(70)], 1)
    steps = resource_cache.index_label("app", step)
    for changes in changes_between_steps:
        for number, value in changes:
            before = resource_cache.get(b"/r/pods/a/%03d" % number)
            after = pod_with_app(number, value, next(revisions))
            if value is not None:
                kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
                resource_cache.apply(Change(kind, after, before, 0.0))
            elif before:
                resource_cache.apply(Change(ChangeKind.DELETED, after, before, 0.0))
        next(steps, None)
    assert all(done is None for done in steps)
    assert resource_cache.is_indexed("app")
    for value in "ab":
        expected = [stored for stored in resource_cache.select(b"/r/") if stored.labels.get("app") == value]
        shown = resource_cache.select(b"/r/", ("app", value))
        assert [stored for stored in shown if stored.labels.get("app") == value] == expected
        assert len(shown) in (len(expected), len(resource_cache))
    assert len(resource_cache.select(b"/r/", ("app", "nowhere"))) == 0


def test_index_that_is_abandoned_or_reset_is_not_used(resource_cache):
    objects = [pod_with_app(number, "a", 1) for number in range(70)]
    resource_cache.reset(objects, 1)
    abandoned = resource_cache.index_label("app", 10)
    next(abandoned)
    abandoned.close()
    assert not resource_cache.is_indexed("app")
    outdated = resource_cache.index_label("app", 10)
    next(outdated)
    resource_cache.reset(objects[:60], 2)
    assert list(outdated)
    assert not resource_cache.is_indexed("app")
    assert len(resource_cache.select(b"/r/", ("app", "b"))) == 60


def test_label_is_indexed_once_by_several_lists(resource_cache):
    resource_cache.reset([pod_with_app(number, "a", 1) for number in range(70)], 1)
    first = resource_cache.index_label("app", 10)
    next(first)
    assert list(resource_cache.index_label("app", 10)) == []
    assert len(list(first)) == 6
    assert resource_cache.is_indexed("app")


def test_number_of_indexed_labels_is_limited(resource_cache):
    resource_cache.reset([pod_with_app(number, "a", 1) for number in range(70)], 1)
    for number in range(20):
        assert len(list(resource_cache.index_label(f"label{number}", 100))) == 1
    assert [resource_cache.is_indexed(f"label{number}") for number in (0, 3, 4, 19)] == [
        False,
        False,
        True,
        True,
    ]


def test_history_of_old_changes_is_compressed_and_read_as_before(monkeypatch):
    monkeypatch.setattr(module, "MAX_UNCOMPRESSED_CHANGES", 1)
    monkeypatch.setattr(compression, "MAX_CHAIN", 3)
    resource_cache, common, before, expected = ResourceCache(b"/r/pods/"), b"x" * 4_000, None, []
    for revision in range(1, 11):
        value = b'{"kind":"a","metadata":{"uid":"u","labels":{"a":"%d"}},"b":"%b"}' % (revision, common)
        after = StoredObject(b"/r/pods/a/1", value, revision)
        kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
        resource_cache.apply(Change(kind, after, before, 0.0))
        expected.append((value, {"a": str(revision)}, len(value)))
        before = after
    resource_cache.apply(Change(ChangeKind.DELETED, before.at(11), before, 0.0))
    for name in b"2", b"3":
        resource_cache.apply(
            Change(ChangeKind.ADDED, StoredObject(b"/r/pods/a/" + name, b"{}", 12), None, 0.0)
        )
    *changes, deletion, _, _ = resource_cache.since(0, b"/r/pods/")
    objects = [change.after for change in changes]
    assert [(stored.value, stored.labels, stored.size) for stored in objects] == expected
    assert [change.before for change in (*changes[1:], deletion)] == objects
    assert deletion.after.value == expected[-1][0]
    assert all(len(stored._value.compressed) < 300 for stored in (*objects, deletion.after))
    without_newer = [stored.revision for stored in objects if stored._value.newer is None]
    assert without_newer == [3, 6, 9], "a chain has three objects"


def test_shortened_history_does_not_begin_at_the_first_revision(monkeypatch):
    monkeypatch.setattr(module, "IDLE_HISTORY", 10)
    resource_cache = ResourceCache(b"/r/pods/")
    resource_cache.reset((), 100, is_whole=True)
    for revision in range(101, 151):
        pod = StoredObject(b"/r/pods/a/%d" % revision, b"{}", revision)
        resource_cache.apply(Change(ChangeKind.ADDED, pod, None, 0.0))
    assert _is_known(resource_cache, 1)
    resource_cache.forget_old(100.0)
    assert not _is_known(resource_cache, 1)
