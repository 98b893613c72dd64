"""StorageVersionMigrations write all objects of a resource again, one migration of each resource at a time."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.storageversionmigrator.controller import STORAGE_VERSION_MIGRATOR
from tests.support.controllers.running_manager import running_cluster
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition

MIGRATIONS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    async with running_cluster(clock=clock, runnables=[STORAGE_VERSION_MIGRATOR]) as running:
        yield running


async def migrate(server, manager, name, resource, group=""):
    body = {"metadata": {"name": name}, "spec": {"resource": {"resource": resource, "group": group}}}
    answer = await server.post(MIGRATIONS, body)
    assert answer.status == 201, answer.body
    await manager.settle()
    return (await server.get(f"{MIGRATIONS}/{name}")).body["status"]


def states(status):
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in status["conditions"]}


async def test_migration_of_current_objects_succeeds_without_writes(cluster):
    server, manager = cluster
    before = (await server.post(MAPS, {"metadata": {"name": "a"}})).body["metadata"]["resourceVersion"]
    status = await migrate(server, manager, "m", "configmaps")
    assert states(status) == {
        "Running": ("False", "MigrationCompleted", "Migration completed"),
        "Succeeded": ("True", "StorageVersionMigrationSucceeded", "Migration completed"),
    }
    assert int(status["resourceVersion"]) >= int(before)
    assert (await server.get(f"{MAPS}/a")).body["metadata"]["resourceVersion"] == before


async def test_custom_objects_are_stored_in_new_version(cluster):
    server, manager = cluster
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
    ]
    await define(server, definition(versions=versions))
    widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert (await server.post(WIDGETS, widget)).status == 201
    path = f"{DEFINITIONS}/widgets.{GROUP}"
    changed = (await server.get(path)).body
    for version in changed["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    assert (await server.put(path, changed)).body["status"]["storedVersions"] == ["v1", "v2"]
    before = (await server.get(f"{WIDGETS}/w")).body["metadata"]["resourceVersion"]
    status = await migrate(server, manager, "m", "widgets", GROUP)
    assert states(status)["Succeeded"][0] == "True"
    assert (await server.get(f"{WIDGETS}/w")).body["metadata"]["resourceVersion"] != before
    after = (await server.get(path)).body
    assert after["status"]["storedVersions"] == ["v2"]
    (condition,) = [each for each in after["status"]["conditions"] if each["type"] == "StorageMigrating"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False", "MigrationSucceeded", "The migration has succeeded and the stored versions have been updated",
    )  # fmt: skip


async def test_migration_of_absent_resource_fails_after_a_minute(cluster):
    server, manager = cluster
    status = await migrate(server, manager, "m", "nothings", "a.b")
    assert states(status) == {"Running": ("True", "MigrationRunning", "The migration is running")}
    for _ in range(12):
        await manager.step(10)
    status = (await server.get(f"{MIGRATIONS}/m")).body["status"]
    assert states(status) == {
        "Running": ("False", "MigrationCompleted", "Migration completed"),
        "Failed": ("True", "StorageVersionMigrationFailed", "resource does not exist in discovery"),
    }


async def test_resource_without_updates_cannot_be_migrated(cluster):
    server, manager = cluster
    status = await migrate(server, manager, "m", "componentstatuses")
    assert states(status)["Failed"][2] == (
        'resource "/v1, Resource=componentstatuses" does not support discovery operations: [update patch list]'
    )


async def test_second_migration_of_resource_follows_first(cluster):
    server, manager = cluster
    await migrate(server, manager, "first", "secrets")
    status = await migrate(server, manager, "second", "secrets")
    assert states(status)["Succeeded"][0] == "True"
