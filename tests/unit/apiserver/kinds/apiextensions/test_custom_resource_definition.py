"""Stored versions of a CustomResourceDefinition, and its deletion after its custom objects."""

import pytest

from mockube.apiserver.kinds.apiextensions.custom_resource_definition import CLEANUP, KIND
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import NOW_TEXT, request

DEFINITIONS = KIND.strategy


def definition(*versions, stored=()):
    return {
        "spec": {"versions": [{"name": name.strip("*"), "storage": "*" in name} for name in versions]},
        "status": {"storedVersions": [*stored]},
    }


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(definition("v1", "v2*", stored=["v1"]), ["v1", "v2"], id="another one"),
        pytest.param(definition("v1*", stored=["v2", "v1"]), ["v2", "v1"], id="one that was before"),
    ],
)
def test_stored_versions_gain_new_storage_version(new, expected):
    DEFINITIONS.prepare_update[MAIN](new, {}, request())
    assert new["status"]["storedVersions"] == expected


@pytest.mark.parametrize(
    ("metadata", "waits"),
    [
        pytest.param({}, True, id="not deleted"),
        pytest.param(
            {"deletionTimestamp": NOW_TEXT, "finalizers": [CLEANUP]}, True, id="with cleanup finalizer"
        ),
        pytest.param({"deletionTimestamp": NOW_TEXT}, False, id="without finalizers"),
    ],
)
def test_definition_deletion_waits_for_cleanup(metadata, waits):
    assert DEFINITIONS.pending({"metadata": metadata}) is waits


def test_delete_sets_terminating_condition_and_finalizer():
    tree = {"metadata": {"deletionTimestamp": NOW_TEXT, "finalizers": ["mine"]}, "status": {}}
    DEFINITIONS.prepare_delete(tree)
    assert tree["metadata"]["finalizers"] == ["mine", CLEANUP]
    (condition,) = tree["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Terminating", "InstanceDeletionPending")


def test_second_delete_changes_nothing():
    tree = {"metadata": {"deletionTimestamp": NOW_TEXT}, "status": {}}
    DEFINITIONS.prepare_delete(tree)
    before = {"metadata": dict(tree["metadata"]), "status": dict(tree["status"])}
    DEFINITIONS.prepare_delete(tree)
    assert tree == before
