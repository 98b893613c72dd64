"""Lists and counts of a resource cache, and what a change does to its parts."""

import pytest

from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject


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


class ObjectsSeen:
    """A watcher that records the cached object at the time of each change."""

    def __init__(self, resource_cache, key):
        self.prefix = resource_cache.prefix
        self.seen = []
        self._read = lambda: resource_cache.get(key)

    def handle_change(self, change):
        self.seen.append((change.kind, self._read()))


def test_change_is_in_the_objects_and_in_the_history_when_watchers_receive_it(resource_cache):
    key = b"/r/pods/a/4"
    watcher = ObjectsSeen(resource_cache, key)
    resource_cache.watchers.add(watcher)
    first, second = StoredObject(key, b"{}", 2), StoredObject(key, b'{"a":1}', 3)
    changes = [
        Change(ChangeKind.ADDED, first, None, 0.0),
        Change(ChangeKind.MODIFIED, second, first, 0.0),
        Change(ChangeKind.DELETED, second.at(4), second, 0.0),
    ]
    counts = []
    for change in changes:
        assert resource_cache.apply(change)
        counts.append(resource_cache.count(b"/r/pods/a/"))
    assert watcher.seen == [
        (ChangeKind.ADDED, first),
        (ChangeKind.MODIFIED, second),
        (ChangeKind.DELETED, None),
    ]
    assert counts == [4, 4, 3]
    assert resource_cache.history.since(1, b"/r/") == changes


def test_reset_replaces_the_objects_and_keeps_the_watchers(resource_cache):
    watcher = ObjectsSeen(resource_cache, b"/r/pods/z/1")
    resource_cache.watchers.add(watcher)
    resource_cache.reset([StoredObject(b"/r/pods/c/1", b"{}", 5)], 9)
    assert [stored.key for stored in resource_cache.select(b"/r/")] == [b"/r/pods/c/1"]
    assert (resource_cache.history.newest, [*resource_cache.watchers], watcher.seen) == (9, [watcher], [])


def test_objects_between_two_keys_do_not_include_the_second(resource_cache):
    keys = [stored.key for stored in resource_cache.between(b"/r/pods/a/2", b"/r/pods/b/1")]
    assert keys == [b"/r/pods/a/2", b"/r/pods/a/3"]
