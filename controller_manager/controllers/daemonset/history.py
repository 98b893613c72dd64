"""The revisions of a DaemonSet's template: the present one, and those to delete. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree, sorted_keys
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from mockube.controller_manager.client.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    ObjectRef,
    Patch,
    SlowStart,
    Update,
)
from mockube.controller_manager.workloads.revisions import in_order, number
from mockube.controller_manager.workloads.templates import template_hash


class History(Struct, frozen=True, kw_only=True):
    """The hash of the current revision, what makes it so, and the revisions before it."""

    revision_hash: str
    old: Sequence[ReadOnlyTree]
    actions: tuple[Action, ...] = ()
    is_collision: bool = False
    """Another revision has the name of the new one: the actions count that, and nothing else can be done."""


def history_of(
    daemon_set: ReadOnlyTree,
    revisions: Iterable[ReadOnlyTree],
    pods: Sequence[PodView],
    named: Callable[[str], ReadOnlyTree | None],
) -> History:
    """`named` returns the ControllerRevision of a name, whatever its owner."""
    data = _data(daemon_set)
    ordered = in_order(revisions)
    current = [revision for revision in ordered if equal(revision.get("data"), data)]
    old = [revision for revision in ordered if revision not in current]
    newest = max(map(number, old), default=0) + 1
    if not current:
        return _create_revision(daemon_set, data, newest, old, named)
    newest_revision = current[-1]
    actions = _without_duplicates(newest_revision, current[:-1], pods)
    if number(newest_revision) < newest:
        actions += (Update(resource=CONTROLLER_REVISIONS, body={**newest_revision, "revision": newest}),)
    return History(revision_hash=hash_of(newest_revision), old=old, actions=actions)


def hash_of(revision: ReadOnlyTree) -> str:
    return meta.labels(revision).get(LABEL_CONTROLLER_REVISION_HASH) or meta.name(revision)


def revisions_to_delete(
    daemon_set: ReadOnlyTree, old: Sequence[ReadOnlyTree], pods: Iterable[PodView]
) -> tuple[Action, ...]:
    """The oldest revisions beyond the limit that no pod is of."""
    limit = daemon_set["spec"].get("revisionHistoryLimit")
    surplus = len(old) - (10 if limit is None else limit)
    if surplus <= 0:
        return ()
    live = {pod.labels.get(LABEL_CONTROLLER_REVISION_HASH) for pod in pods}
    dead = [revision for revision in old if hash_of(revision) not in live][:surplus]
    refs = tuple(map(ObjectRef.of, dead))
    return (Delete(resource=CONTROLLER_REVISIONS, objects=refs),) if refs else ()


def _data(daemon_set: ReadOnlyTree) -> dict[str, Any]:
    return {"spec": {"template": {**daemon_set["spec"]["template"], "$patch": "replace"}}}


def _create_revision(
    daemon_set: ReadOnlyTree,
    data: ReadOnlyTree,
    newest: int,
    old: Sequence[ReadOnlyTree],
    named: Callable[[str], ReadOnlyTree | None],
) -> History:
    status = daemon_set.get("status") or {}
    template = daemon_set["spec"]["template"]
    hashed = template_hash(template, status.get("collisionCount"))
    name = f"{meta.name(daemon_set)}-{hashed}"
    if named(name) is not None:
        counted = {**status, "collisionCount": (status.get("collisionCount") or 0) + 1}
        update = Update(resource=DAEMON_SETS, body={**daemon_set, "status": counted}, subresource="status")
        return History(revision_hash="", old=old, actions=(update,), is_collision=True)
    metadata = {
        "name": name,
        "namespace": meta.namespace(daemon_set),
        "labels": {**meta.labels(template), LABEL_CONTROLLER_REVISION_HASH: hashed},
        "annotations": dict(meta.annotations(daemon_set)),
        "ownerReferences": [meta.controller_reference(daemon_set)],
    }
    revision = {
        "kind": CONTROLLER_REVISIONS.kind,
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "data": sorted_keys(data),
        "revision": newest,
    }
    create = Create(resource=CONTROLLER_REVISIONS, bodies=(revision,))
    return History(revision_hash=hashed, old=old, actions=(create,))


def _without_duplicates(
    revision: ReadOnlyTree, duplicates: Sequence[ReadOnlyTree], pods: Sequence[PodView]
) -> tuple[Action, ...]:
    """Relabel all pods with the revision, and delete the duplicates of the same template."""
    if not duplicates:
        return ()
    labels = {"metadata": {"labels": {LABEL_CONTROLLER_REVISION_HASH: hash_of(revision)}}}
    others = [pod for pod in pods if pod.labels.get(LABEL_CONTROLLER_REVISION_HASH) != hash_of(revision)]
    patches = tuple(Patch(resource=PODS, key=pod.key, body=labels) for pod in others)
    relabel = (SlowStart(effects=patches),) if patches else ()
    return (*relabel, Delete(resource=CONTROLLER_REVISIONS, objects=tuple(map(ObjectRef.of, duplicates))))
