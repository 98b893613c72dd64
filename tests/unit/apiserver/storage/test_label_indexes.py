"""Indexes of labels: lists by a selector read them, and changes keep them up to date."""

from itertools import count

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject


@pytest.fixture
def resource_cache():
    return ResourceCache(b"/r/pods/")


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
