"""Sharing of equal parts of cached objects."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.client.cache import sharing
from mockube.client.cache.sharing import SharedParts

SCALARS = st.sampled_from([0, -0.0, 0.0, 1, 1.0, True, False, None, "", "a", "1"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)
TREES = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "data"]), VALUES, max_size=4)


def pod(name, image="nginx"):
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image, "ports": [{"port": 80}]}]},
    }


def exact(value):
    """Return a value that differs for True, 1 and 1.0, and for other orders of fields."""
    return repr(value)


def deep(levels):
    """Return a list in a list in a list ..."""
    return orjson.loads(b"[" * levels + b"]" * levels)


@given(st.lists(TREES, max_size=8), st.integers(0, 3))
def test_sharing_does_not_change_objects(trees, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "MAX_PARTS", limit)
        patch.setattr(sharing, "MAX_TEXTS", limit)
        patch.setattr(sharing, "MAX_BYTES", 8 * limit)
        parts, before = SharedParts(), [exact(tree) for tree in trees]
        shared = [parts.share(tree) for tree in [*trees, *orjson.loads(orjson.dumps(trees))]]
        assert [exact(tree) for tree in shared] == before * 2


def test_equal_parts_are_one_object():
    first, second = map(SharedParts().share, (pod("web-0"), pod("web-1")))
    assert first["spec"]["containers"] is second["spec"]["containers"]
    assert first["metadata"]["labels"] is second["metadata"]["labels"]
    assert first["metadata"] is not second["metadata"]


def test_inner_parts_of_different_parts_are_one_object():
    first, second = map(SharedParts().share, (pod("a", "nginx:1"), pod("b", "nginx:2")))
    containers = [each["spec"]["containers"][0] for each in (first, second)]
    assert containers[0]["ports"] is containers[1]["ports"]


def test_inner_parts_of_unique_fields_are_one_object():
    """Two containers are in the same state, each with an ID of its own."""
    statuses = [
        {"status": {"containerStatuses": [{"containerID": number, "state": {"running": {}}}]}}
        for number in "12"
    ]
    first, second = [each["status"]["containerStatuses"][0] for each in map(SharedParts().share, statuses)]
    assert first["state"] is second["state"]


def test_parts_that_no_object_has_any_more_are_forgotten(monkeypatch):
    monkeypatch.setattr(sharing, "MAX_PARTS", 3)
    parts = SharedParts()
    often = [
        parts.share({"spec": {"often": ["x"], "number": [number]}})["spec"]["often"] for number in range(9)
    ]
    assert all(each is often[0] for each in often)
    assert parts.share({"spec": {"number": [8]}})["spec"] == {"number": [8]}
    assert len(parts._recent) + len(parts._older) <= 6


def test_long_and_unique_texts_are_not_kept():
    parts = SharedParts()
    parts.share({"metadata": {"name": "a", "uid": "b", "namespace": "c"}, "data": {"d": "e" * 129}})
    assert [*parts._texts] == ["c"]


def test_long_parts_are_not_kept():
    parts = SharedParts()
    parts.share({"data": {"a": "b" * sharing.MAX_BYTES}})
    assert not parts._recent


def test_deeply_nested_objects_are_kept_as_they_are():
    value = deep(900)
    assert SharedParts().share({"spec": {"nested": value}})["spec"]["nested"] is value
