"""Lists and counts of a resource cache."""

import pytest

from mockube.apiserver.storage.resource_cache import LARGE, Change, ChangeKind, ResourceCache, TooOld
from mockube.apiserver.storage.stored import Stored


@pytest.fixture
def resource_cache():
    resource_cache = ResourceCache(b"/r/pods/")
    keys = (b"/r/pods/a/1", b"/r/pods/a/2", b"/r/pods/a/3", b"/r/pods/b/1")
    resource_cache.reset([Stored(key, b"{}", 1) for key in keys], 1)
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
        after = Stored(key, b"x" * (1 << 20), revision)
        kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
        resource_cache.apply(Change(kind, after, before, 0.0))
        before = after
    with pytest.raises(TooOld):
        resource_cache.since(15, b"/r/pods/")
    assert [change.revision for change in resource_cache.since(28, b"/r/pods/")] == [29, 30]


def test_history_of_small_objects_is_not_limited_by_their_bytes():
    resource_cache = ResourceCache(b"/r/pods/")
    before = None
    for revision in range(1, 1025):
        after = Stored(b"/r/pods/a/1", b"x" * (LARGE - 1), revision)
        kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
        resource_cache.apply(Change(kind, after, before, 0.0))
        before = after
    assert len(resource_cache.since(0, b"/r/pods/")) == 1024
