"""ControllerRevisions: the history of what a workload's pods were to look like.

Pure, and the same for every kind that keeps such a history. Which part of the owner a revision keeps is the owner's
business: here it is `data`, a tree that is compared and hashed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.fnv import fnv1
from mockube.apimachinery.gotext import escape_html
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree, sorted_keys
from mockube.controller_manager.client import kinds
from mockube.controller_manager.control.actions import Action, Create, Delete, Update
from mockube.controller_manager.workloads.ownership import object_ref
from mockube.controller_manager.workloads.templates import safe_encode

LABEL_HASH: Final = "controller.kubernetes.io/hash"

_MAX_PREFIX_LENGTH: Final = 223
"""How much of the owner's name fits into a revision's, beside the hash."""


class DesiredRevision(Struct, frozen=True, kw_only=True):
    """The revision that an owner's present spec needs."""

    owner: ReadOnlyTree
    data: ReadOnlyTree
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class SyncedRevision(Struct, frozen=True, kw_only=True):
    """The desired revision, existing or created by the actions."""

    revision: ReadOnlyTree
    collision_count: int
    actions: tuple[Create | Update, ...] = ()


def number(revision: ReadOnlyTree) -> int:
    return int(revision.get("revision") or 0)


def in_order(revisions: Iterable[ReadOnlyTree]) -> list[ReadOnlyTree]:
    """Oldest first."""
    return sorted(
        revisions,
        key=lambda revision: (
            number(revision),
            meta.metadata(revision).get("creationTimestamp") or "",
            meta.name(revision),
        ),
    )


def sync_revision(
    desired: DesiredRevision,
    history: Sequence[ReadOnlyTree],
    collision_count: int,
    named: Callable[[str], ReadOnlyTree | None],
) -> SyncedRevision:
    """Find the desired revision in the ordered history, renumber it as the newest, or create it.

    `named` returns the ControllerRevision of a name, whatever its owner: hashes and names may collide.
    """
    equal_revisions = [revision for revision in history if _is_equal(revision.get("data"), desired.data)]
    if equal_revisions and equal_revisions[-1] is history[-1]:
        return SyncedRevision(revision=equal_revisions[-1], collision_count=collision_count)
    newest = number(history[-1]) + 1 if history else 1
    if equal_revisions:
        again = {**equal_revisions[-1], "revision": newest}
        update = Update(resource=kinds.CONTROLLER_REVISIONS, body=again)
        return SyncedRevision(revision=again, collision_count=collision_count, actions=(update,))
    return _record(desired, newest, collision_count, named)


def _record(
    desired: DesiredRevision, newest: int, collision_count: int, named: Callable[[str], ReadOnlyTree | None]
) -> SyncedRevision:
    while True:
        revision = _new(desired, newest, collision_count)
        existing = named(meta.name(revision))
        if existing is None:
            create = Create(resource=kinds.CONTROLLER_REVISIONS, bodies=(revision,))
            return SyncedRevision(revision=revision, collision_count=collision_count, actions=(create,))
        if _is_equal(existing.get("data"), desired.data):
            return SyncedRevision(revision=existing, collision_count=collision_count)
        collision_count += 1


def _new(desired: DesiredRevision, newest: int, collision_count: int) -> dict[str, Any]:
    hashed = hash_of(desired.data, collision_count)
    metadata = {
        "name": f"{meta.name(desired.owner)[:_MAX_PREFIX_LENGTH]}-{hashed}",
        "namespace": meta.namespace(desired.owner),
        "labels": {**desired.labels, LABEL_HASH: hashed},
        "annotations": dict(desired.annotations),
        "ownerReferences": [meta.controller_reference(desired.owner)],
    }
    return {
        "kind": kinds.CONTROLLER_REVISIONS.kind,
        "apiVersion": kinds.CONTROLLER_REVISIONS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "data": sorted_keys(desired.data),
        "revision": newest,
    }


def hash_of(data: ReadOnlyTree, collision_count: int) -> str:
    """32-bit FNV-1 over Go's JSON of the data and the count, encoded without vowels, so that it contains no word."""
    text = escape_html(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
    return safe_encode(str(fnv1(text + str(collision_count).encode(), 32)))


def _is_equal(value: Any, other: Any) -> bool:
    # Managers of older versions recorded a `creationTimestamp: null` that newer ones leave out.
    return equal(value, other) or equal(_without_nulls(value), _without_nulls(other))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _without_nulls(item) for field, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def truncate_history(
    history: Sequence[ReadOnlyTree], live: Collection[str], limit: int
) -> tuple[Action, ...]:
    """Delete the oldest revisions beyond the limit that no pod has; a negative limit keeps all."""
    past = [revision for revision in history if meta.name(revision) not in live]
    surplus = past[: max(len(past) - limit, 0)] if limit >= 0 else []
    if not surplus:
        return ()
    refs = tuple(object_ref(kinds.CONTROLLER_REVISIONS, revision) for revision in surplus)
    return (Delete(resource=kinds.CONTROLLER_REVISIONS, objects=refs),)
