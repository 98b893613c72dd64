"""The versions of single keys: values at each revision, trimming, and undo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.etcd.embedded.versions import Versions

KEY = b"k"


def scenario() -> Versions:
    """Put at 2, put at 5, deleted at 7, put at 9: the example in the module's docstring."""
    versions = Versions()
    versions.put(KEY, b"2", 0, 2)
    versions.put(KEY, b"5", 0, 5)
    versions.delete(KEY, 7)
    versions.put(KEY, b"9", 0, 9)
    return versions


def values(versions: Versions, revisions: range) -> list[bytes | None]:
    return [kv.value if (kv := versions.at(KEY, revision)) else None for revision in revisions]


def test_each_revision_has_its_value():
    assert values(scenario(), range(1, 11)) == [None, b"2", b"2", b"2", b"5", b"5", None, None, b"9", b"9"]


@pytest.mark.parametrize("at", range(1, 11))
def test_trim_does_not_change_readable_values(at):
    versions = scenario()
    before = values(versions, range(at, 11))
    versions.trim(KEY, at)
    assert values(versions, range(at, 11)) == before


@pytest.mark.parametrize(
    ("at", "size"),
    [
        pytest.param(1, 3 * 2 + 1, id="nothing to free"),
        pytest.param(5, 2 * 2 + 1, id="the version of 2"),
        pytest.param(7, 2, id="all but the present"),
        pytest.param(10, 2, id="never the present"),
    ],
)
def test_trim_frees_unreadable_values(at, size):
    versions = scenario()
    versions.trim(KEY, at)
    assert versions.size == size


def test_deleted_key_is_dropped_when_its_deletion_is_trimmed():
    versions = Versions()
    versions.put(KEY, b"2", 0, 2)
    versions.delete(KEY, 3)
    versions.trim(KEY, 3)
    assert versions.size == 0
    assert versions.range_at(b"a", b"z", 3, 0) == ([], 0)


def test_version_restarts_at_1_after_deletion():
    kvs = [scenario().at(KEY, revision) for revision in (2, 5, 9)]
    assert [(kv.version, kv.create_revision) for kv in kvs if kv] == [(1, 2), (2, 2), (1, 9)]


CHANGES = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.booleans()), max_size=30)


@given(CHANGES, CHANGES)
def test_undo_restores_previous_state(kept, taken_back):
    versions = Versions()
    revision = apply_changes(versions, kept, 1)[-1:] or [1]
    before = all_contents(versions, revision[0])
    size = versions.size
    apply_changes(versions, taken_back, revision[0])
    for key, deleted in reversed(expected_changes(kept, taken_back)):
        if deleted:
            versions.undo_delete(key)
        else:
            versions.undo_put(key)
    assert all_contents(versions, revision[0]) == before
    assert versions.size == size


def apply_changes(versions: Versions, changes, revision: int) -> list[int]:
    """Delete a key if the change requests it and the key exists, else put it; return the revisions."""
    made = []
    for key, delete in changes:
        revision += 1
        if delete and versions.get(key) is not None:
            versions.delete(key, revision)
        else:
            versions.put(key, b"%d" % revision, 0, revision)
        made.append(revision)
    return made


def expected_changes(kept, changes) -> list[tuple[bytes, bool]]:
    """Return for each change whether it deletes a key, after the changes in `kept`."""
    alive: dict[bytes, bool] = {}
    done = []
    for key, delete in [*kept, *changes]:
        deleted = delete and alive.get(key, False)
        alive[key] = not deleted
        done.append((key, deleted))
    return done[len(kept) :]


def all_contents(versions: Versions, upto: int) -> object:
    return [versions.range_at(b"a", b"z", revision, 0) for revision in range(1, upto + 1)], versions.range(
        b"a", b"z", 0
    )
