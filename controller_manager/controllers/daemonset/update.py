"""Updates of a DaemonSet: the old pods that a rolling update replaces, and the revisions of the template."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree, sorted_keys
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from mockube.client.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    ObjectRef,
    Patch,
    SlowStart,
    Update,
)
from mockube.controller_manager.workloads.revisions import data_of, in_order, number
from mockube.controller_manager.workloads.templates import template_hash

from .pods import pod_actions
from .state import DaemonState


class NodePods(NamedTuple):
    """The new and the old pod of a node that are not being deleted; None if absent."""

    name: str
    new: PodView | None
    old: PodView | None
    is_unambiguous: bool
    """Whether the node has at most one new and one old pod."""


def rolling_update(state: DaemonState) -> tuple[Action, ...]:
    """Return the next actions of a rolling update; none with another strategy.

    It is called when the nodes have the pods that they should have, new or old.
    """
    if (state.spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        return ()
    desired = state.desired_count
    surge, unavailable = state.max_surge(desired), state.max_unavailable(desired)
    if surge:
        return _with_surge(state, surge, desired)
    return _without_surge(state, max(unavailable, 1) if desired else unavailable)


def _pods_on_nodes(state: DaemonState) -> Iterator[NodePods]:
    """Yield the pods of all nodes that have a pod or should have one."""
    node_names = [name for name, fit in state.fits.items() if fit.should_run]
    for name in dict.fromkeys((*state.pods, *node_names)):
        active = [pod for pod in state.pods.get(name, ()) if not pod.deleting]
        new = [pod for pod in active if state.is_updated(pod)]
        old = [pod for pod in active if not state.is_updated(pod)]
        if len(new) > 1 or len(old) > 1:
            yield NodePods(name, None, None, is_unambiguous=False)
        else:
            yield NodePods(name, next(iter(new), None), next(iter(old), None), is_unambiguous=True)


def _without_surge(state: DaemonState, limit: int) -> tuple[Action, ...]:
    """Replace old pods: unavailable ones in any case, others within the limit of unavailable pods."""
    missing, unavailable_pods, candidates = 0, list[PodView](), list[PodView]()
    for node in _pods_on_nodes(state):
        if not node.is_unambiguous or (node.old is None) == (node.new is None):
            missing += 1
        elif node.new is not None:
            missing += not state.is_available(node.new)
        elif node.old is not None and not state.is_available(node.old):
            unavailable_pods.append(node.old)
            missing += 1
        elif node.old is not None and missing < limit:
            candidates.append(node.old)
    return pod_actions(state, (), [*unavailable_pods, *candidates[: max(0, limit - missing)]])


class _SurgeState(Struct):
    """The pods to create and delete in an update with surge, collected node by node."""

    count: int = 0
    """The number of nodes with an additional new pod that is not available yet."""
    available: int = 0
    delete: list[PodView] = field(default_factory=list)
    should_not_run: list[PodView] = field(default_factory=list)
    """Available old pods on nodes that should not run a pod."""
    allowed_nodes: list[str] = field(default_factory=list)
    """Nodes that get a new pod in any case: their old pod is not available."""
    candidates: list[str] = field(default_factory=list)
    """Nodes that get a new pod within the limit of the surge."""


def _with_surge(state: DaemonState, limit: int, desired: int) -> tuple[Action, ...]:
    """Create new pods first; an old pod is deleted when its node has an available new pod."""
    surge = _SurgeState()
    for node in _pods_on_nodes(state):
        _add_node(state, node, surge, limit)
    surplus = max(0, surge.available - desired)
    nodes: Sequence[str] = [*surge.allowed_nodes, *surge.candidates[: max(0, limit - surge.count)]]
    return pod_actions(state, nodes, [*surge.delete, *surge.should_not_run[:surplus]])


def _add_node(state: DaemonState, node: NodePods, surge: _SurgeState, limit: int) -> None:
    if not node.is_unambiguous:  # the other pods are deleted; until then it counts as a surge, as upstream
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
            surge.should_not_run.append(node.old)
        elif surge.count < limit:
            surge.candidates.append(node.name)
    elif should_run:
        surge.allowed_nodes.append(node.name)
    else:
        surge.delete.append(node.old)


# --- revisions


class History(Struct, frozen=True, kw_only=True):
    """The hash of the current revision, the actions that create or update it, and the earlier revisions."""

    revision_hash: str
    old: Sequence[ReadOnlyTree]
    actions: tuple[Action, ...] = ()
    is_collision: bool = False
    """Whether another revision has the new one's name: the actions increment the collision count."""


def history_of(
    daemon_set: ReadOnlyTree,
    revisions: Iterable[ReadOnlyTree],
    pods: Sequence[PodView],
    get_revision: Callable[[str], ReadOnlyTree | None],
    minor: str,
) -> History:
    """Return the history; `get_revision` returns the ControllerRevision of a name, whatever its owner."""
    data = data_of(daemon_set["spec"]["template"])
    ordered = in_order(revisions)
    current = [revision for revision in ordered if equal(revision.get("data"), data)]
    old = [revision for revision in ordered if revision not in current]
    newest = max(map(number, old), default=0) + 1
    if not current:
        return _create_revision(daemon_set, data, newest, old, get_revision, minor)
    newest_revision = current[-1]
    actions = _merge_duplicates(newest_revision, current[:-1], pods)
    if number(newest_revision) < newest:
        actions += (Update(resource=CONTROLLER_REVISIONS, body={**newest_revision, "revision": newest}),)
    return History(revision_hash=hash_of(newest_revision), old=old, actions=actions)


def hash_of(revision: ReadOnlyTree) -> str:
    return meta.labels(revision).get(LABEL_CONTROLLER_REVISION_HASH) or meta.name(revision)


def revisions_to_delete(
    daemon_set: ReadOnlyTree, old: Sequence[ReadOnlyTree], pods: Iterable[PodView]
) -> tuple[Action, ...]:
    """Return the deletion of the oldest revisions beyond the history limit, except those that pods have."""
    limit = daemon_set["spec"].get("revisionHistoryLimit")
    surplus = len(old) - (10 if limit is None else limit)
    if surplus <= 0:
        return ()
    used_hashes = {pod.labels.get(LABEL_CONTROLLER_REVISION_HASH) for pod in pods}
    unused = [revision for revision in old if hash_of(revision) not in used_hashes][:surplus]
    refs = tuple(map(ObjectRef.of, unused))
    return (Delete(resource=CONTROLLER_REVISIONS, objects=refs),) if refs else ()


def _create_revision(
    daemon_set: ReadOnlyTree,
    data: ReadOnlyTree,
    newest: int,
    old: Sequence[ReadOnlyTree],
    get_revision: Callable[[str], ReadOnlyTree | None],
    minor: str,
) -> History:
    status = daemon_set.get("status") or {}
    template = daemon_set["spec"]["template"]
    new_hash = template_hash(template, status.get("collisionCount"), minor)
    name = f"{meta.name(daemon_set)}-{new_hash}"
    if get_revision(name) is not None:  # it has other data: the count changes the hash of the next attempt
        new_status = {**status, "collisionCount": (status.get("collisionCount") or 0) + 1}
        update = Update(resource=DAEMON_SETS, body={**daemon_set, "status": new_status}, subresource="status")
        return History(revision_hash="", old=old, actions=(update,), is_collision=True)
    metadata = {
        "name": name,
        "namespace": meta.namespace(daemon_set),
        "labels": {**meta.labels(template), LABEL_CONTROLLER_REVISION_HASH: new_hash},
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
    return History(revision_hash=new_hash, old=old, actions=(create,))


def _merge_duplicates(
    revision: ReadOnlyTree, duplicates: Sequence[ReadOnlyTree], pods: Sequence[PodView]
) -> tuple[Action, ...]:
    """Label all pods with the revision, and delete its duplicates, which have the same template."""
    if not duplicates:
        return ()
    labels = {"metadata": {"labels": {LABEL_CONTROLLER_REVISION_HASH: hash_of(revision)}}}
    others = [pod for pod in pods if pod.labels.get(LABEL_CONTROLLER_REVISION_HASH) != hash_of(revision)]
    patches = tuple(Patch(resource=PODS, key=pod.key, body=labels) for pod in others)
    relabel = (SlowStart(effects=patches),) if patches else ()
    return (*relabel, Delete(resource=CONTROLLER_REVISIONS, objects=tuple(map(ObjectRef.of, duplicates))))
