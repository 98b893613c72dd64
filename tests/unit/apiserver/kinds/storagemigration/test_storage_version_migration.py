"""StorageVersionMigrations name a resource, and their result is final."""

import pytest

from mockube.apiserver.kinds.storagemigration.storage_version_migration import KIND as ROW
from tests.support import field_rules

KIND = "storagemigration.k8s.io/v1", "StorageVersionMigration"


def migration(resource="secrets", group="", **status):
    tree = {"metadata": {"name": "a"}, "spec": {"resource": {"resource": resource, "group": group}}}
    return tree | ({"status": status} if status else {})


def condition(kind, status="True"):
    return {
        "type": kind,
        "status": status,
        "reason": "R",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
        "message": "",
    }


@pytest.mark.parametrize(
    ("tree", "found"),
    [
        (migration(), []),
        (migration("deployments", "apps"), []),
        (migration(""), ["spec.resource.resource: Required value: resource is required to be set"]),
    ],
)
def test_new_migration_is_validated(tree, found):
    assert field_rules.create_errors(*KIND, tree) == found


def test_invalid_names_are_refused():
    resource, group = field_rules.create_errors(*KIND, migration("A", "B"))
    assert resource.startswith('spec.resource.resource: Invalid value: "A": a DNS-1035 label must consist')
    assert group.startswith('spec.resource.group: Invalid value: "B": a lowercase RFC 1123 subdomain')


def test_resource_is_immutable():
    assert field_rules.update_errors(*KIND, migration(), migration("pods")) == [
        'spec: Invalid value: {"Resource":{"group":"","resource":"pods"}}: field is immutable'
    ]


@pytest.mark.parametrize(
    ("new", "old", "found"),
    [
        ({"resourceVersion": "7"}, {}, []),
        (
            {"resourceVersion": "07"},
            {},
            ['status.resourceVersion: Invalid value: "07": resource version is not well formed: 07'],
        ),
        (
            {"resourceVersion": "8"},
            {"resourceVersion": "7"},
            ['status.resourceVersion: Invalid value: "8": field is immutable'],
        ),
    ],
)
def test_revision_of_status_is_validated(new, old, found):
    assert field_rules.update_errors(*KIND, migration(**old), migration(**new), "status") == found


def test_result_is_final():
    def problems(new, old):
        trees = migration(conditions=old), migration(conditions=new)
        return [error.rpartition(": ")[2] for error in field_rules.update_errors(*KIND, *trees, "status")]

    succeeded, failed = condition("Succeeded"), condition("Failed")
    assert problems([succeeded], []) == []
    assert problems([succeeded, failed], []) == [
        "Both success and failed conditions cannot be true at the same time"
    ]
    assert problems([], [succeeded]) == ["Success condition cannot be set to false once it is true"]
    assert problems([], [failed]) == ["Failed condition cannot be set to false once it is true"]


def test_row_shows_state():
    assert ROW.printer.cells(migration("deployments", "apps"), None) == ["a", "deployments.apps", "Unknown"]
    running = migration(conditions=[condition("Running"), condition("Failed", "False")])
    assert ROW.printer.cells(running, None) == ["a", "secrets", "Running"]
