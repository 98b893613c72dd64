"""The recent changes of a resource: which are kept, for how long, and what a watch gets that resumes."""

from itertools import pairwise

import pytest

from mockube.apiserver.storage import recent_changes as module
from mockube.apiserver.storage.recent_changes import (
    HISTORY_SECONDS,
    LARGE,
    MAX_CHANGES_WITH_FRAMES,
    MIN_HISTORY,
    Change,
    ChangeKind,
    RecentChanges,
    TooOldResourceVersion,
)
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.etcd import compression

PODS = b"/r/pods/"
POD = b"/r/pods/a/1"


def added(revision, *, key=None, at=0.0):
    stored = StoredObject(key or b"/r/pods/a/%d" % revision, b"{}", revision)
    return Change(ChangeKind.ADDED, stored, None, at)


def history_of(*changes):
    history = RecentChanges()
    for change in changes:
        history.append(change)
    return history


def history_of_sizes(count, size):
    """Return the history of one object that had `count` versions of a size."""
    versions = [StoredObject(POD, b"x" * size, revision) for revision in range(1, count + 1)]
    changes = [Change(ChangeKind.MODIFIED, after, before, 0.0) for before, after in pairwise(versions)]
    return history_of(Change(ChangeKind.ADDED, versions[0], None, 0.0), *changes)


def revisions_since(history, revision, prefix=PODS):
    """Return the revisions of the changes since one; None if the history begins later."""
    try:
        return [change.revision for change in history.since(revision, prefix)]
    except TooOldResourceVersion:
        return None


def test_changes_below_a_prefix_since_a_revision_are_in_order():
    in_b = added(3, key=b"/r/pods/b/1")
    history = history_of(added(2), in_b, added(5))
    assert revisions_since(history, 0) == [2, 3, 5]
    assert revisions_since(history, 3) == revisions_since(history, 4) == [5]
    assert revisions_since(history, 2, b"/r/pods/b/") == [3]
    assert (revisions_since(history, 5), history.newest) == ([], 5)


def test_history_begins_at_the_revision_of_a_list():
    history = history_of(added(1))
    history.reset(7)
    assert (revisions_since(history, 6), revisions_since(history, 7), history.newest) == (None, [], 7)
    with pytest.raises(TooOldResourceVersion, match=r"too old resource version: 6 \(7\)"):
        history.since(6, PODS)


def test_history_of_a_new_store_begins_at_the_first_revision_only():
    history = RecentChanges()
    history.reset(100, is_whole=True)
    history.append(added(101))
    assert [revisions_since(history, revision) for revision in (1, 2, 100)] == [[101], None, [101]]


def test_old_half_is_dropped_once_there_are_enough_changes():
    long_ago = [added(revision) for revision in range(1, 2 * MIN_HISTORY)]
    history = history_of(*long_ago)
    history.append(added(2 * MIN_HISTORY, at=HISTORY_SECONDS))
    assert len(revisions_since(history, 0)) == 2 * MIN_HISTORY, "the changes are not too old yet"
    history.append(added(2 * MIN_HISTORY + 1, at=HISTORY_SECONDS + 1))
    assert (revisions_since(history, 0), revisions_since(history, MIN_HISTORY - 1)) == (None, None)
    assert len(revisions_since(history, MIN_HISTORY)) == MIN_HISTORY + 1


def test_few_changes_are_kept_however_old_they_are():
    history = history_of(*[added(revision) for revision in range(1, MIN_HISTORY)])
    history.append(added(MIN_HISTORY, at=100 * HISTORY_SECONDS))
    assert len(revisions_since(history, 0)) == MIN_HISTORY


def test_history_has_a_maximum_of_recent_changes(monkeypatch):
    monkeypatch.setattr(module, "MAX_HISTORY", 250)
    history = history_of(*[added(revision) for revision in range(1, 251)])
    assert len(revisions_since(history, 0)) == 250
    history.append(added(251))
    assert (revisions_since(history, 124), len(revisions_since(history, 125))) == (None, 126)


def test_history_of_large_objects_is_limited_by_their_bytes():
    history = history_of_sizes(30, 1 << 20)
    assert revisions_since(history, 15) is None
    assert revisions_since(history, 28) == [29, 30]


def test_history_of_small_objects_is_not_limited_by_their_bytes():
    assert len(history_of_sizes(1024, LARGE - 1).since(0, PODS)) == 1024


def append_versions(history, *revisions):
    """Append changes of one object of a megabyte, each of which replaces such an object."""
    for revision in revisions:
        before, after = (StoredObject(POD, b"x" * (1 << 20), number) for number in (revision - 1, revision))
        history.append(Change(ChangeKind.MODIFIED, after, before, 0.0))


def test_bytes_of_dropped_changes_do_not_count_any_more():
    history = RecentChanges()
    append_versions(history, *range(1, 10))
    assert revisions_since(history, 4) == [5, 6, 7, 8, 9], "half of 9 MB was dropped"
    append_versions(history, 10, 11)
    assert revisions_since(history, 4) == [5, 6, 7, 8, 9, 10, 11]
    history.reset(11)
    append_versions(history, 12, 13, 14)
    assert revisions_since(history, 11) == [12, 13, 14]


def test_long_history_without_new_changes_gets_shorter(monkeypatch):
    monkeypatch.setattr(module, "IDLE_HISTORY", 10)
    monkeypatch.setattr(module, "FORGOTTEN_AT_ONCE", 20)
    history, lengths = history_of(*map(added, range(1, 51))), []
    for now in (74.0, 76.0, 81.0, 86.0):
        history.forget_old(now)
        oldest = next(n for n in range(51) if revisions_since(history, n) is not None)
        lengths.append((oldest, len(revisions_since(history, oldest))))
    assert lengths == [(0, 50), (20, 30), (40, 10), (40, 10)]


def test_shortened_history_does_not_begin_at_the_first_revision(monkeypatch):
    monkeypatch.setattr(module, "IDLE_HISTORY", 10)
    history = RecentChanges()
    history.reset(100, is_whole=True)
    for revision in range(101, 151):
        history.append(added(revision))
    assert revisions_since(history, 1) is not None
    history.forget_old(100.0)
    assert revisions_since(history, 1) is None


def test_history_of_old_changes_is_compressed_and_read_as_before(monkeypatch):
    monkeypatch.setattr(module, "MAX_UNCOMPRESSED_CHANGES", 1)
    monkeypatch.setattr(compression, "MAX_CHAIN", 3)
    history, common, before, expected = RecentChanges(), b"x" * 4_000, None, []
    for revision in range(1, 11):
        value = b'{"kind":"a","metadata":{"uid":"u","labels":{"a":"%d"}},"b":"%b"}' % (revision, common)
        after = StoredObject(POD, value, revision)
        history.append(Change(ChangeKind.MODIFIED if before else ChangeKind.ADDED, after, before, 0.0))
        expected.append((value, {"a": str(revision)}, len(value)))
        before = after
    history.append(Change(ChangeKind.DELETED, before.at(11), before, 0.0))
    for revision in 12, 13:
        history.append(added(revision))
    *changes, deletion, _, _ = history.since(0, PODS)
    objects = [change.after for change in changes]
    assert [(stored.value, stored.labels, stored.size) for stored in objects] == expected
    assert [change.before for change in (*changes[1:], deletion)] == objects
    assert deletion.after.value == expected[-1][0]
    assert all(len(stored._value.compressed) < 300 for stored in (*objects, deletion.after))
    without_newer = [stored.revision for stored in objects if stored._value.newer is None]
    assert without_newer == [3, 6, 9], "a chain has three objects"


class Encoder:
    def __init__(self):
        self.made = 0

    def __call__(self, kind, stored):
        self.made += 1
        return kind.encode() + stored.value


def test_old_frames_are_dropped_and_encoded_again():
    history, encode, changes = RecentChanges(), Encoder(), []

    def frame_of(change):
        return change.frame(encode, change.kind.value, change.after)

    for revision in range(1, MAX_CHANGES_WITH_FRAMES + 2):
        changes.append(added(revision))
        history.append(changes[-1])
        assert frame_of(changes[-1]) is frame_of(changes[-1])
    assert encode.made == len(changes)
    assert frame_of(changes[1]) == b"ADDED{}"
    assert encode.made == len(changes), "one of the newest frames is still cached"
    assert frame_of(changes[0]) == b"ADDED{}"
    assert encode.made == len(changes) + 1
