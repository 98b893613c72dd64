"""Which migration of a resource is next, and what its state and its definition say."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.storageversionmigrator import migrations

NOW = SteppedClock().now()
WIDGETS = GroupResource("example.com", "widgets")


def migration(name, *states, age=0, resource="widgets"):
    return {
        "metadata": {"name": name, "creationTimestamp": f"2030-01-01T00:00:{59 - age:02d}Z"},
        "spec": {"resource": {"group": "example.com", "resource": resource}},
        "status": {"conditions": [{"type": state, "status": "True"} for state in states]},
    }


@pytest.mark.parametrize(
    ("present", "finished", "start"),
    [
        ([], [], None),
        ([migration("a")], [], "a"),
        ([migration("a", age=1), migration("b", age=2)], [], "b"),
        ([migration("b"), migration("a")], [], "a"),
        ([migration("a", "Running"), migration("b")], [], None),
        ([migration("a", "Running", "Succeeded"), migration("b")], ["a"], "b"),
        ([migration("a", "Running", "Failed"), migration("b", "Running")], ["a"], None),
        ([migration("a", "Succeeded")], [], None),
        ([migration("a", "Failed")], [], None),
        ([migration("a", resource="gadgets")], [], None),
        ([migration("a", "Running", resource="gadgets"), migration("b")], [], "b"),
    ],
)
def test_oldest_migration_of_a_resource_is_next(present, finished, start):
    found = migrations.next_migration(present, WIDGETS)
    assert [each["metadata"]["name"] for each in found.finished] == finished
    assert (found.start and found.start["metadata"]["name"]) == start


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "The migration is running"),
        ((2, 5), "The migration is running, 2/5 objects not yet migrated"),
        ((0, 5), "The migration is running, 5 objects verified migrated"),
        ((2, 5, "no"), "The migration is running, 2/5 objects not yet migrated; transient error: no"),
        ((0, 0, "no"), "The migration is running; transient error: no"),
    ],
)
def test_message_has_the_progress(arguments, message):
    assert migrations.running_message(*arguments) == message


def definition(*, observed=None, generation=2):
    conditions = (
        []
        if observed is None
        else [{"type": "StorageMigrating", "status": "True", "observedGeneration": observed}]
    )
    versions = [{"name": "v1"}, {"name": "v2", "storage": True}]
    return {
        "metadata": {"name": "widgets.example.com", "generation": generation, "resourceVersion": "7"},
        "spec": {"versions": versions},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("observed", "is_success", "versions", "reason", "message"),
    [
        (2, True, ["v2"], "MigrationSucceeded", "The migration has succeeded and the stored versions have been updated"),
        (
            1, True, None, "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
        (
            None, True, None, "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
        (2, False, ["v2"], "MigrationFailed", "The migration has failed"),
    ],
)  # fmt: skip
def test_definition_that_did_not_change_stores_one_version(observed, is_success, versions, reason, message):
    body = migrations.end_status_body(definition(observed=observed), is_success=is_success, time="t")
    (condition,) = body["status"]["conditions"]
    assert body["status"].get("storedVersions") == versions
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", reason, message)
    assert body["metadata"] == {"name": "widgets.example.com", "resourceVersion": "7"}


def test_definition_has_the_migration_that_runs():
    (condition,) = migrations.start_status_body(definition(), "m", "t")["status"]["conditions"]
    assert (condition["status"], condition["message"]) == ("True", "Migration m is running")
    assert condition["observedGeneration"] == 2


def test_states_of_a_migration():
    running = migrations.running_state(migration("a"), "x", NOW)
    assert (migrations.is_running(running), migrations.is_finished(running)) == (True, False)
    ended = migrations.end(migrations.success(running, 3, NOW), NOW)
    assert (migrations.is_running(ended), migrations.is_finished(ended)) == (False, True)
    assert migrations.is_finished(migrations.failure(running, "no", NOW))
    assert migrations.resource_of({"spec": {"resource": {"resource": "pods"}}}) == GroupResource("", "pods")
