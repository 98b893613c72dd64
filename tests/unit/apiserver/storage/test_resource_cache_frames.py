"""A watch frame is encoded once and cached for the most recent changes only."""

from mockube.apiserver.storage.resource_cache import (
    MAX_CHANGES_WITH_FRAMES,
    Change,
    ChangeKind,
    ResourceCache,
)
from mockube.apiserver.storage.stored_object import StoredObject


class Encoder:
    def __init__(self):
        self.made = 0

    def __call__(self, kind, stored):
        self.made += 1
        return kind.encode() + stored.value


def frame_of(encode, change):
    return change.frame(encode, change.kind.value, change.after)


def test_old_frames_are_dropped_and_encoded_again():
    resource_cache, encode = ResourceCache(b"/registry/pods/"), Encoder()
    changes = []
    for revision in range(1, MAX_CHANGES_WITH_FRAMES + 2):
        key = b"/registry/pods/default/%d" % revision
        change = Change(ChangeKind.ADDED, StoredObject(key, b"{}", revision), None, 0.0)
        changes.append(change)
        resource_cache.apply(change)
        assert frame_of(encode, change) is frame_of(encode, change)
    assert encode.made == len(changes)
    assert frame_of(encode, changes[1]) == b"ADDED{}"
    assert encode.made == len(changes), "one of the newest frames is still cached"
    assert frame_of(encode, changes[0]) == b"ADDED{}"
    assert encode.made == len(changes) + 1
    assert resource_cache.since(0, resource_cache.prefix) == changes
