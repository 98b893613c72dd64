"""Which watchers receive a change, and what happens to one that fails."""

import pytest

from mockube.apiserver.storage.cache_watchers import CacheWatchers
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.stored_object import StoredObject

PODS = b"/r/pods/"


class Watcher:
    def __init__(self, prefix):
        self.prefix = prefix
        self.keys = []
        self.missed = 0

    def handle_change(self, change):
        self.keys.append(change.after.key)

    def handle_missed_change(self):
        self.missed += 1


class BrokenWatcher(Watcher):
    def handle_change(self, _):
        raise ValueError("a defect")


def change_of(key):
    return Change(ChangeKind.ADDED, StoredObject(key, b"{}", 1), None, 0.0)


@pytest.fixture
def watchers():
    return CacheWatchers(PODS)


@pytest.mark.parametrize(
    ("prefix", "received"),
    [
        (PODS, [b"a/1", b"a/2", b"b/1", b"cluster"]),
        (b"/r/pods/a/", [b"a/1", b"a/2"]),
        (b"/r/pods/a/1", [b"a/1"]),
        (b"/r/pods/cluster", [b"cluster"]),
        (b"/r/pods/c/", []),
    ],
)
def test_watcher_receives_the_changes_of_its_resource_namespace_or_object(watchers, prefix, received):
    watcher = Watcher(prefix)
    watchers.add(watcher)
    keys = [PODS + name for name in (b"a/1", b"a/2", b"b/1", b"cluster")]
    answers = [watchers.notify(change_of(key)) for key in keys]
    assert [key.removeprefix(PODS) for key in watcher.keys] == received
    assert answers == [key in watcher.keys for key in keys]


def test_each_watcher_receives_a_change_once_until_it_is_removed(watchers):
    first, second = Watcher(PODS), Watcher(PODS)
    for watcher in (first, second):
        watchers.add(watcher)
    watchers.notify(change_of(PODS + b"a/1"))
    watchers.remove(first)
    watchers.notify(change_of(PODS + b"a/2"))
    assert (len(first.keys), len(second.keys), [*watchers]) == (1, 2, [second])
    watchers.remove(second)
    assert not watchers
    assert not watchers.notify(change_of(PODS + b"a/3"))


def test_failure_of_one_watcher_is_its_own_and_is_logged(watchers, caplog):
    broken, other = BrokenWatcher(PODS), Watcher(PODS)
    watchers.add(broken)
    watchers.add(other)
    assert watchers.notify(change_of(PODS + b"a/1"))
    assert (broken.missed, other.missed, other.keys) == (1, 0, [PODS + b"a/1"])
    assert "a watch could not process the change of /r/pods/a/1" in caplog.text


def test_watcher_that_ends_itself_does_not_hide_the_change_from_the_next(watchers):
    class Ending(Watcher):
        def handle_change(self, _):
            watchers.remove(self)

    last = Watcher(PODS)
    watchers.add(Ending(PODS))
    watchers.add(last)
    watchers.notify(change_of(PODS + b"a/1"))
    assert last.keys == [PODS + b"a/1"]
