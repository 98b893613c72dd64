"""The states of StorageVersionMigrations, and of the definitions of the resources that they migrate."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
STORAGE_MIGRATING: Final = "StorageMigrating"
_RUNNING_REASON: Final = "MigrationRunning"


def resource_of(migration: ReadOnlyTree) -> GroupResource:
    resource = migration["spec"]["resource"]
    return GroupResource(resource.get("group") or "", resource.get("resource") or "")


def is_running(migration: ReadOnlyTree) -> bool:
    return conditions.is_true(migration, RUNNING)


def is_finished(migration: ReadOnlyTree) -> bool:
    return conditions.is_true(migration, SUCCEEDED) or conditions.is_true(migration, FAILED)


class NextMigration(NamedTuple):
    """The migrations of one resource that are finished but still marked as running, and the one to start."""

    finished: Sequence[ReadOnlyTree]
    start: ReadOnlyTree | None


def next_migration(migrations: Iterable[ReadOnlyTree], resource: GroupResource) -> NextMigration:
    """Let one migration of a resource run at a time, the oldest first."""
    own = [migration for migration in migrations if resource_of(migration) == resource]
    finished = [migration for migration in own if is_running(migration) and is_finished(migration)]
    if any(is_running(migration) and not is_finished(migration) for migration in own):
        return NextMigration(finished, None)
    waiting = [migration for migration in own if not is_running(migration) and not is_finished(migration)]
    return NextMigration(finished, min(waiting, key=_age, default=None))


def _age(migration: ReadOnlyTree) -> tuple[str, str]:
    return meta.metadata(migration).get("creationTimestamp") or "", meta.name(migration)


# --- conditions


def running_message(remaining: int = 0, total: int = 0, problem: str = "") -> str:
    message = "The migration is running"
    if total and remaining:
        message += f", {remaining}/{total} objects not yet migrated"
    elif total:
        message += f", {total} objects verified migrated"
    return f"{message}; transient error: {problem}" if problem else message


def with_state(
    migration: ReadOnlyTree, kind: str, reason: str, message: str, now: datetime, *, status: str = "True"
) -> dict[str, Any]:
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    return conditions.with_condition(migration, condition, now)


def running_state(migration: ReadOnlyTree, message: str, now: datetime) -> dict[str, Any]:
    return with_state(migration, RUNNING, _RUNNING_REASON, message, now)


def success(migration: ReadOnlyTree, total: int, now: datetime) -> dict[str, Any]:
    present = running_state(migration, running_message(0, total), now)
    return with_state(present, SUCCEEDED, "StorageVersionMigrationSucceeded", "Migration completed", now)


def failure(migration: ReadOnlyTree, message: str, now: datetime) -> dict[str, Any]:
    return with_state(migration, FAILED, "StorageVersionMigrationFailed", message, now)


def end(migration: ReadOnlyTree, now: datetime) -> dict[str, Any]:
    return with_state(migration, RUNNING, "MigrationCompleted", "Migration completed", now, status="False")


# --- definitions


def definition_status(
    definition: ReadOnlyTree, condition: ReadOnlyTree, stored_versions: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the body of an apply of a definition's status, which fails if the definition was changed meanwhile."""
    status: dict[str, Any] = {"conditions": [condition]}
    if stored_versions:
        status["storedVersions"] = [*stored_versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": meta.name(definition),
            "resourceVersion": meta.resource_version(definition),
        },
        "status": status,
    }


def start_status_body(definition: ReadOnlyTree, migration: str, time: str) -> ReadOnlyTree:
    """Return the body that marks a definition whose objects are migrated."""
    message = f"Migration {migration} is running"
    return definition_status(definition, _condition(definition, "True", "MigrationRunning", message, time))


def end_status_body(definition: ReadOnlyTree, *, is_success: bool, time: str) -> ReadOnlyTree:
    """Return the body that ends a migration; unless the definition was changed meanwhile, only one version is stored."""
    present = conditions.get(definition, STORAGE_MIGRATING) or {}
    is_unchanged = bool(present) and present.get("observedGeneration", 0) == meta.generation(definition)
    reason, message = "MigrationFailed", "The migration has failed"
    if is_success:
        stored = (
            "and the stored versions have been updated"
            if is_unchanged
            else "but the stored versions have not been updated due to a generation mismatch"
        )
        reason, message = "MigrationSucceeded", f"The migration has succeeded {stored}"
    versions = [version["name"] for version in definition["spec"]["versions"] if version.get("storage")]
    condition = _condition(definition, "False", reason, message, time)
    return definition_status(definition, condition, versions[:1] if is_unchanged else ())


def _condition(definition: ReadOnlyTree, status: str, reason: str, message: str, time: str) -> dict[str, Any]:
    return {
        "type": STORAGE_MIGRATING,
        "status": status,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
        "observedGeneration": meta.generation(definition),
    }
