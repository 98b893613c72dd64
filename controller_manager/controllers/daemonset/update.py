"""Updates of a DaemonSet: which old pods a rolling update replaces, and the revisions of the template. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

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
from mockube.controller_manager.controllers.daemonset.pods import actions_of
from mockube.controller_manager.controllers.daemonset.state import DaemonState
from mockube.controller_manager.workloads.revisions import in_order, number
from mockube.controller_manager.workloads.templates import template_hash


class OnNode(NamedTuple):
    """The pods of a node that are not being deleted; both None where there is none."""

    name: str
    new: PodView | None
    old: PodView | None
    is_clear: bool
    """There is at most one of each."""


def rolling_update(state: DaemonState) -> tuple[Action, ...]:
    """Empty without a rolling update strategy. Called once the nodes have the pods that they should have, new or old."""
    if (state.spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        return ()
    desired = state.desired_count
    surge, unavailable = state.max_surge(desired), state.unavailable(desired)
    if surge:
        return _with_surge(state, surge, desired)
    return _without_surge(state, max(unavailable, 1) if desired else unavailable)


def _on_nodes(state: DaemonState) -> Iterator[OnNode]:
    """All nodes that have a pod or should have one."""
    node_names = [name for name, fit in state.fits.items() if fit.should_run]
    for name in dict.fromkeys((*state.pods, *node_names)):
        active = [pod for pod in state.pods.get(name, ()) if not pod.deleting]
        new = [pod for pod in active if state.is_updated(pod)]
        old = [pod for pod in active if not state.is_updated(pod)]
        if len(new) > 1 or len(old) > 1:
            yield OnNode(name, None, None, is_clear=False)
        else:
            yield OnNode(name, next(iter(new), None), next(iter(old), None), is_clear=True)


def _without_surge(state: DaemonState, limit: int) -> tuple[Action, ...]:
    """Old pods that are not available are replaced in any case, others as long as not too many are missing."""
    missing, replaced, candidates = 0, list[PodView](), list[PodView]()
    for node in _on_nodes(state):
        if not node.is_clear or (node.old is None) == (node.new is None):
            missing += 1
        elif node.new is not None:
            missing += not state.is_available(node.new)
        elif node.old is not None and not state.is_available(node.old):
            replaced.append(node.old)
            missing += 1
        elif node.old is not None and missing < limit:
            candidates.append(node.old)
    return actions_of(state, (), [*replaced, *candidates[: max(0, limit - missing)]])


class _Surge(Struct):
    """The result of a surge, collected node by node."""

    count: int = 0
    """New pods beside old ones that are not available yet."""
    available: int = 0
    delete: list[PodView] = field(default_factory=list)
    leaving: list[PodView] = field(default_factory=list)
    """Available old pods on nodes that should have none."""
    allowed: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)


def _with_surge(state: DaemonState, limit: int, desired: int) -> tuple[Action, ...]:
    """New pods are created first: an old pod is deleted when its node has a new pod that is available."""
    surge = _Surge()
    for node in _on_nodes(state):
        _look(state, node, surge, limit)
    spare = max(0, surge.available - desired)
    nodes: Sequence[str] = [*surge.allowed, *surge.candidates[: max(0, limit - surge.count)]]
    return actions_of(state, nodes, [*surge.delete, *surge.leaving[:spare]])


def _look(state: DaemonState, node: OnNode, surge: _Surge, limit: int) -> None:
    if not node.is_clear:
        surge.count += 1
        return
    present = node.old or node.new
    surge.available += present is not None and state.is_available(present)
    if node.old is None:
        return
    if node.new is not None:
        if state.is_available(node.new):
            surge.delete.append(node.old)
        else:
            surge.count += 1
        return
    fit = state.fits.get(node.name)
    should_run = fit is not None and fit.should_run
    if state.is_available(node.old):
        if not should_run:
            surge.leaving.append(node.old)
        elif surge.count < limit:
            surge.candidates.append(node.name)
    elif should_run:
        surge.allowed.append(node.name)
    else:
        surge.delete.append(node.old)


# --- the revisions: the current one, and those to delete


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
