from datetime import UTC, datetime

import pytest

from mockube.apimachinery import meta

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1", "uid": "owner"}}
CONTROLLER = {"kind": "ReplicaSet", "name": "web-1", "uid": "owner", "controller": True}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web-1-b2c4d",
        "generateName": "web-1-",
        "namespace": "default",
        "uid": "pod",
        "resourceVersion": "42",
        "generation": 3,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "deletionTimestamp": "2030-01-01T00:00:30Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"app": "web"},
        "annotations": {"a": "1"},
        "ownerReferences": [{"kind": "Other", "uid": "other", "controller": False}, CONTROLLER],
        "finalizers": ["example.com/one"],
    },
    "spec": {},
}


@pytest.mark.parametrize(
    ("read", "value", "empty"),
    [
        (meta.api_version, "v1", ""),
        (meta.kind, "Pod", ""),
        (meta.name, "web-1-b2c4d", ""),
        (meta.generate_name, "web-1-", ""),
        (meta.namespace, "default", ""),
        (meta.uid, "pod", ""),
        (meta.resource_version, "42", ""),
        (meta.generation, 3, 0),
        (meta.labels, {"app": "web"}, {}),
        (meta.annotations, {"a": "1"}, {}),
        (meta.finalizers, ["example.com/one"], ()),
        (meta.controller_of, CONTROLLER, None),
        (meta.creation_timestamp, datetime(2030, 1, 1, tzinfo=UTC), None),
        (meta.deletion_timestamp, datetime(2030, 1, 1, 0, 0, 30, tzinfo=UTC), None),
        (meta.deletion_grace_period_seconds, 0, None),
        (meta.is_deleting, True, False),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_metadata_is_read(read, value, empty):
    assert read(POD) == value
    assert read({}) == empty
    assert read({"metadata": None}) == empty


def test_is_controlled_by():
    assert meta.is_controlled_by(POD, OWNER)
    assert not meta.is_controlled_by(POD, POD)
    assert not meta.is_controlled_by({}, OWNER)


def test_with_value_shares_unchanged_parts():
    tree = {"spec": {"a": {"b": 1}, "c": {}}, "status": {}}
    changed = meta.with_value(tree, ("spec", "a", "b"), 2)
    assert changed == {"spec": {"a": {"b": 2}, "c": {}}, "status": {}}
    assert tree["spec"]["a"]["b"] == 1
    assert changed["spec"]["c"] is tree["spec"]["c"]


def test_with_value_creates_missing_parents():
    assert meta.with_value({"status": None}, ("status", "a", "b"), 1) == {"status": {"a": {"b": 1}}}


def test_with_metadata_keeps_order_and_omits_empty_fields():
    changed = meta.with_metadata(
        {"kind": "Pod", "metadata": {"labels": {"a": "b"}, "name": "x", "of-tomorrow": 1}},
        uid="1",
        labels={},
        deletionGracePeriodSeconds=0,
        generation=0,
        unheard=None,
    )
    assert list(changed["metadata"].items()) == [
        ("name", "x"),
        ("uid", "1"),
        ("deletionGracePeriodSeconds", 0),
        ("of-tomorrow", 1),
    ]
    assert meta.with_metadata({}, name="x") == {"metadata": {"name": "x"}}


def test_with_metadata_removes_fields_set_to_none():
    pod = meta.with_metadata(POD, deletionTimestamp=None, deletionGracePeriodSeconds=None)
    assert not meta.is_deleting(pod)
    assert meta.deletion_grace_period_seconds(pod) is None
    assert meta.is_deleting(POD)


@pytest.mark.parametrize(
    ("change", "read"), [(meta.with_labels, meta.labels), (meta.with_annotations, meta.annotations)]
)
def test_labels_and_annotations_are_merged(change, read):
    obj = change(change({}, {"b": "1", "c": "1"}), {"a": "2", "b": None, "unknown": None})
    assert list(read(obj).items()) == [("a", "2"), ("c", "1")]
    assert read(change(obj, {"a": None, "c": None})) == {}


def test_finalizers_are_added_and_removed():
    pod = meta.with_finalizer(POD, "example.com/two")
    assert meta.finalizers(pod) == ["example.com/one", "example.com/two"]
    assert meta.with_finalizer(pod, "example.com/one") == pod
    assert meta.finalizers(meta.without_finalizer(pod, "example.com/one")) == ["example.com/two"]
    assert "finalizers" not in meta.without_finalizer(POD, "example.com/one")["metadata"]
    assert meta.finalizers(POD) == ["example.com/one"]


def test_controller_reference_has_all_fields():
    reference = meta.controller_reference(OWNER)
    assert reference == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-1",
        "uid": "owner",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert meta.is_controlled_by(meta.with_metadata({}, ownerReferences=[reference]), OWNER)


def test_newest_default_is_chosen_by_creation_and_name():
    def storage_class(name, created, **marks):
        return {"metadata": {"name": name, "creationTimestamp": created, "annotations": marks}}

    objects = [
        storage_class("d", "2026-01-03T00:00:00Z", a="false"),
        storage_class("c", "2026-01-02T00:00:00Z", b="true"),
        storage_class("b", "2026-01-02T00:00:00Z", a="true"),
        storage_class("a", "2026-01-01T00:00:00Z", a="true"),
    ]
    assert meta.newest_default(objects, ("a", "b")) is objects[2]
    assert meta.newest_default(objects, ("b",)) is objects[1]
    assert meta.newest_default(objects, ("c",)) is None
