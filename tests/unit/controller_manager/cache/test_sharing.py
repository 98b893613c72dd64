"""Sharing of equal parts of cached objects."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.cache import sharing
from mockube.controller_manager.cache.sharing import SharedParts

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


@given(st.lists(TREES, max_size=8), st.integers(0, 3))
def test_sharing_does_not_change_objects(trees, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "MAX_CANDIDATES", limit * 5)
        patch.setattr(sharing, "MAX_SHARED", limit)
        parts, before = SharedParts(), [exact(tree) for tree in trees]
        for tree in [*trees, *orjson.loads(orjson.dumps(trees))]:
            parts.share(tree)
        assert [exact(tree) for tree in trees] == before


def test_equal_parts_are_one_object():
    parts, pods = SharedParts(), [pod(f"web-{number}") for number in range(3)]
    for each in pods:
        parts.share(each)
    first, second, third = pods
    assert second["spec"]["containers"] is third["spec"]["containers"]
    assert second["metadata"]["labels"] is third["metadata"]["labels"]
    assert first["metadata"] is not second["metadata"]


def test_inner_parts_of_different_parts_are_one_object():
    parts, pods = SharedParts(), [pod("a", "nginx:1"), pod("b", "nginx:2"), pod("c", "nginx:3")]
    for each in pods:
        parts.share(each)
    ports = [each["spec"]["containers"][0]["ports"] for each in pods]
    assert ports[1] is ports[2]


def test_long_and_unique_texts_are_not_kept():
    parts = SharedParts()
    parts.share({"metadata": {"name": "a", "uid": "b", "namespace": "c"}, "data": {"d": "e" * 65}})
    assert [*parts._texts] == ["c"]
