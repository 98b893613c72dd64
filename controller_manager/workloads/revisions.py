"""ControllerRevisions: the history of a workload's pod templates. Pure.

Each kind of owner determines which part of it a revision contains; here that is `data`, which is compared and hashed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.fnv import fnv1
from mockube.apimachinery.gotext import escape_html
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree, sorted_keys, without_nulls
from mockube.client import kinds
from mockube.controller_manager.control.actions import Action, Create, Delete, Update

from .ownership import object_ref
from .templates import canonical_template, safe_encode

LABEL_HASH: Final = "controller.kubernetes.io/hash"

_DIRECTIVE: Final = "$patch"
_MAX_PREFIX_LENGTH: Final = 223
"""The maximum length of the owner's name in the name of a revision, before the hash."""


class DesiredRevision(Struct, frozen=True, kw_only=True):
    """The revision that matches the current spec of the owner."""

    owner: ReadOnlyTree
    data: ReadOnlyTree
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    compares_semantically: bool = False
    """Whether the newest revision also matches if its template is semantically equal."""


class SyncedRevision(Struct, frozen=True, kw_only=True):
    """The desired revision, which exists or is created by the actions."""

    revision: ReadOnlyTree
    collision_count: int
    actions: tuple[Create | Update, ...] = ()


def data_of(template: ReadOnlyTree) -> dict[str, Any]:
    """Return the data of a revision with a template, in upstream's form, because upstream's manager may have to read it.

    It is a patch that replaces the template.
    """
    return {"spec": {"template": {**template, _DIRECTIVE: "replace"}}}


def template_of(revision: ReadOnlyTree) -> ReadOnlyTree:
    """Return the template in the data of a revision."""
    template = revision["data"]["spec"]["template"]
    return {field: value for field, value in template.items() if field != _DIRECTIVE}


def number(revision: ReadOnlyTree) -> int:
    return int(revision.get("revision") or 0)


def in_order(revisions: Iterable[ReadOnlyTree]) -> list[ReadOnlyTree]:
    """Return the revisions in order, the oldest first."""
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
    get_revision: Callable[[str], ReadOnlyTree | None],
) -> SyncedRevision:
    """Return the desired revision from the ordered history, renumbered if it is not the newest, or a new one.

    `get_revision` returns the ControllerRevision of a name, whatever its owner: names may collide, because hashes do.
    """
    equal_revisions = [revision for revision in history if _is_equal(revision.get("data"), desired.data)]
    if equal_revisions and equal_revisions[-1] is history[-1]:
        return SyncedRevision(revision=equal_revisions[-1], collision_count=collision_count)
    next_number = number(history[-1]) + 1 if history else 1
    if equal_revisions:
        renumbered = {**equal_revisions[-1], "revision": next_number}
        update = Update(resource=kinds.CONTROLLER_REVISIONS, body=renumbered)
        return SyncedRevision(revision=renumbered, collision_count=collision_count, actions=(update,))
    if history and desired.compares_semantically and _is_template_equal(history[-1], desired):
        return SyncedRevision(revision=history[-1], collision_count=collision_count)
    return _new_or_equal_revision(desired, next_number, collision_count, get_revision)


def _new_or_equal_revision(
    desired: DesiredRevision,
    next_number: int,
    collision_count: int,
    get_revision: Callable[[str], ReadOnlyTree | None],
) -> SyncedRevision:
    while True:
        revision = _new_revision(desired, next_number, collision_count)
        existing = get_revision(meta.name(revision))
        if existing is None:
            create = Create(resource=kinds.CONTROLLER_REVISIONS, bodies=(revision,))
            return SyncedRevision(revision=revision, collision_count=collision_count, actions=(create,))
        if _is_equal(existing.get("data"), desired.data):
            return SyncedRevision(revision=existing, collision_count=collision_count)
        collision_count += 1


def _new_revision(desired: DesiredRevision, next_number: int, collision_count: int) -> dict[str, Any]:
    hash_text = hash_of(desired.data, collision_count)
    metadata = {
        "name": f"{meta.name(desired.owner)[:_MAX_PREFIX_LENGTH]}-{hash_text}",
        "namespace": meta.namespace(desired.owner),
        "labels": {**desired.labels, LABEL_HASH: hash_text},
        "annotations": dict(desired.annotations),
        "ownerReferences": [meta.controller_reference(desired.owner)],
    }
    return {
        "kind": kinds.CONTROLLER_REVISIONS.kind,
        "apiVersion": kinds.CONTROLLER_REVISIONS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "data": sorted_keys(desired.data),
        "revision": next_number,
    }


def hash_of(data: ReadOnlyTree, collision_count: int) -> str:
    """Return the 32-bit FNV-1 hash of Go's JSON of the data and of the count, encoded without vowels."""
    text = escape_html(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
    return safe_encode(str(fnv1(text + str(collision_count).encode(), 32)))


def _is_equal(value: Any, other: Any) -> bool:
    # Older managers recorded `creationTimestamp: null`, which newer ones omit.
    return equal(value, other) or equal(without_nulls(value), without_nulls(other))


def _is_template_equal(revision: ReadOnlyTree, desired: DesiredRevision) -> bool:
    try:
        recorded = canonical_template(revision["data"]["spec"]["template"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return False  # a user changed the data, which may be any JSON
    return bool(recorded == canonical_template(desired.data["spec"]["template"]))


def truncate_history(
    history: Sequence[ReadOnlyTree], live: Collection[str], limit: int
) -> tuple[Action, ...]:
    """Return the deletion of the oldest revisions that no pod has, beyond the limit; a negative limit keeps all."""
    past = [revision for revision in history if meta.name(revision) not in live]
    surplus = past[: max(len(past) - limit, 0)] if limit >= 0 else []
    if not surplus:
        return ()
    refs = tuple(object_ref(kinds.CONTROLLER_REVISIONS, revision) for revision in surplus)
    return (Delete(resource=kinds.CONTROLLER_REVISIONS, objects=refs),)
