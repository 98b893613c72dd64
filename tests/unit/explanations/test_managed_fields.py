"""The managers of fields stand for the writes that the history does not have."""

import pytest

from mockube.explanations.facts import Member
from mockube.explanations.managed_fields import managed_writes

IMAGE = ("spec", "containers", Member("c"), "image")


def entry(manager, time, fields, operation="Update", **more):
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields, **more}


OF_CONTAINER = {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}}
ENTRIES = [
    entry("first", "2026-01-01T00:00:00Z", {"f:spec": {"f:taints": {}, "f:nodeName": {}}}),
    entry("kubectl-edit", "2026-01-03T00:00:00Z", OF_CONTAINER, "Apply"),
    entry("kubectl-set", "2026-01-02T00:00:00Z", OF_CONTAINER),
    entry("kubelet", "2026-01-04T00:00:00Z", {"f:status": {"f:phase": {}}}, subresource="status"),
]
OBJECT = {
    "metadata": {"name": "x", "managedFields": ENTRIES},
    "spec": {
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}],
        "taints": [{"key": "k"}],
    },
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("path", "managers"),
    [
        (IMAGE, ["kubectl-edit", "kubectl-set"]),
        (("spec", "containers", Member("d"), "image"), []),
        (("spec", "containers"), ["kubectl-edit", "kubectl-set"]),
        (("spec", "taints", Member("k")), ["first"]),
        (("spec", "nodeName"), []),
        (("status", "phase"), ["kubelet"]),
        (("metadata", "name"), []),
        ((), ["kubectl-edit", "kubectl-set", "first"]),
    ],
)
def test_managers_of_a_field_are_named_the_newest_first(path, managers):
    assert [write["author"]["manager"] for write in managed_writes(OBJECT, path)] == managers


def test_write_says_where_it_is_from():
    assert managed_writes(OBJECT, IMAGE)[0] == {
        "revision": 0,
        "type": "MODIFIED",
        "time": "2026-01-03T00:00:00Z",
        "author": {"manager": "kubectl-edit", "verb": "apply"},
        "source": "managedFields",
        "after": "i",
    }
    (of_status,) = managed_writes(OBJECT, ("status", "phase"))
    assert of_status["author"]["subresource"] == "status"
    assert "after" not in managed_writes(OBJECT, ())[0]


def test_object_without_managers_has_no_writes():
    assert managed_writes({"metadata": {}, "spec": {"a": 1}}, ("spec", "a")) == []
    assert (
        managed_writes({"metadata": {"managedFields": [{"manager": "m"}]}, "spec": {"a": 1}}, ("spec", "a"))
        == []
    )
