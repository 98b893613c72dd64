"""The CloneSet controller: its watches, and its reconcile function."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads import ownership, revisions
from mockube.controller_manager.workloads.revisions import DesiredRevision, SyncedRevision
from mockube.controller_manager.workloads.watches import watches_of
from mockube.packs.kruise.kinds import CLONE_SETS

from . import identity, scaling, state, status, storage, updating
from .order import NOTHING_TO_DO, CloneSetActions, earliest
from .spec import CloneSetView
from .state import CloneSetState
from .status import FailureCondition


def reconcile(caches: Caches, key: Key, now: datetime, *, counts_prepared: bool = False) -> Plan:
    """Return the plan; `counts_prepared`: scaling counts pods that are prepared for their update as updated."""
    tree = caches.of(CLONE_SETS).get(*key)
    if tree is None:
        return EMPTY_PLAN
    try:
        owner = CloneSetView.of(tree)
    except SelectorError:
        return EMPTY_PLAN  # no server accepts such a set, and a retry would not help
    pods = state.pods(caches, owner)
    # Releases are a plan of their own: the changes of the pods requeue the key, and the pods are counted afterwards.
    if first := ownership.adoption_and_release_actions(pods, kinds.PODS, owner.object, CLONE_SETS):
        return Plan(actions=first)
    history = state.history(caches, owner)
    synced = _sync_revision(caches, owner, history)
    snapshot = replace(
        _state_of(caches, owner, pods.owned, history, synced, now), counts_prepared=counts_prepared
    )
    if owner.deleting:
        return (
            EMPTY_PLAN
            if synced.actions
            else Plan(last=partial(_final_actions, snapshot, synced, NOTHING_TO_DO, ""))
        )
    cleanup = () if owner.reuses_claims else storage.cleanup(owner, pods.owned, state.claims(caches, owner))
    scaling_decision = scaling.plan(snapshot)
    update_decision = NOTHING_TO_DO if scaling_decision.changes_pods else updating.plan(snapshot)
    failure_type = "FailedScale" if scaling_decision.changes_pods else "FailedUpdate"
    return Plan(
        actions=(*cleanup, *synced.actions, *scaling_decision.actions, *update_decision.actions),
        last=partial(_final_actions, snapshot, synced, update_decision, failure_type),
        requeue_after=earliest(
            update_decision.requeue_after, _next_availability(snapshot), _until_deadline(snapshot)
        ),
    )


def _sync_revision(caches: Caches, owner: CloneSetView, history: Sequence[ReadOnlyTree]) -> SyncedRevision:
    annotations = {
        **meta.annotations(owner.object),
        storage.ANNOTATION_CLAIMS_HASH: storage.claims_hash(owner),
    }
    desired = DesiredRevision(
        owner=owner.object,
        data=revisions.data_of(owner.template),
        labels=meta.labels(owner.template),
        annotations=annotations,
    )
    get_revision = partial(caches.of(kinds.CONTROLLER_REVISIONS).get, owner.key.namespace)
    return revisions.sync_revision(desired, history, owner.status.get("collisionCount") or 0, get_revision)


def _state_of(
    caches: Caches,
    owner: CloneSetView,
    pods: Sequence[PodView],
    history: Sequence[ReadOnlyTree],
    synced: SyncedRevision,
    now: datetime,
) -> CloneSetState:
    name = owner.status.get("currentRevision")
    claims = state.claims(caches, owner)
    return CloneSetState(
        owner=owner,
        pods=tuple(pod for pod in pods if pod.is_active),
        inactive=tuple(pod for pod in pods if not pod.is_active),
        claims=claims if owner.reuses_claims else state.in_use(claims, pods),
        history=history,
        current=next((revision for revision in history if meta.name(revision) == name), synced.revision),
        update=synced.revision,
        node_labels=partial(state.node_labels, caches),
        now=now,
        counts_prepared=False,
    )


# --- the last actions


def _final_actions(
    snapshot: CloneSetState,
    synced: SyncedRevision,
    update_decision: CloneSetActions,
    failure_type: str,
    error: ApiError | None,
) -> tuple[Action, ...]:
    """Return the update of the status and the deletion of old revisions, also after a failure.

    After a failure that may concern the revision's creation, nothing is written.
    """
    if error is not None and synced.actions:
        return ()
    failure = _failure(failure_type, update_decision, error)
    status_actions = status.status_update(snapshot, status.of(snapshot, synced.collision_count, failure))
    live = {snapshot.current_name, snapshot.update_name}
    live |= {
        meta.name(revision)
        for revision in snapshot.history
        if any(_is_of_revision(pod, revision) for pod in snapshot.pods)
    }
    deletions = revisions.truncate_history(snapshot.history, live, snapshot.owner.revision_history_limit)
    # Both write the CloneSet, and the second write would conflict: the next reconciliation does it.
    return (*(status_actions or _truncate_pods_to_delete(snapshot)), *deletions)


def _failure(
    failure_type: str, update_decision: CloneSetActions, error: ApiError | None
) -> FailureCondition | None:
    """Return the failure for the status. A conflict is none: the retry starts from the other writer's version."""
    if isinstance(error, Conflict):
        return None
    message = update_decision.problem if error is None else str(error)
    return FailureCondition(failure_type, message) if message else None


def _is_of_revision(pod: PodView, revision: ReadOnlyTree) -> bool:
    return identity.has_revision(pod, meta.name(revision))


def _truncate_pods_to_delete(snapshot: CloneSetState) -> tuple[Update, ...]:
    """Remove the names of pods that no longer exist from podsToDelete."""
    owner = snapshot.owner
    present = {pod.key.name for pod in snapshot.pods}
    if owner.deleting or owner.pods_to_delete <= present:
        return ()
    path = ("spec", "scaleStrategy", "podsToDelete")
    remaining = [name for name in owner.object["spec"]["scaleStrategy"]["podsToDelete"] if name in present]
    return (Update(resource=CLONE_SETS, body=meta.with_value(owner.object, path, remaining)),)


def _next_availability(snapshot: CloneSetState) -> timedelta | None:
    """Return the time until the next ready pod becomes available."""
    min_ready = span_of(snapshot.owner.min_ready_seconds)
    delays = [
        after(pod.ready_since, min_ready) - snapshot.now
        for pod in snapshot.pods
        if pod.ready_since is not None
    ]
    return min((delay for delay in delays if delay > timedelta()), default=None)


def _until_deadline(snapshot: CloneSetState) -> timedelta | None:
    """Return the time until a rollout without progress exceeds its deadline."""
    progressing = conditions.get(snapshot.owner.object, status.PROGRESSING)
    due = status.progress_deadline(snapshot.owner, progressing)
    return None if due is None or due <= snapshot.now else due - snapshot.now


# --- watches


def _no_keys(_caches: Caches, _change: Change) -> Iterable[Key]:
    """Return no keys: nodes are only read, when pods to delete are chosen."""
    return ()


_BATCH_DELAY: Final = timedelta(milliseconds=50)
"""The delay of a reconciliation after a change of a pod: many pods become ready at once, and each reconciliation counts
all.
"""

CLONE_SET: Final = Controller(
    name="cloneset-controller",
    queue="cloneset",
    service_account="",
    event_component="cloneset-controller",
    metrics_name="cloneset-controller",
    needs=(CLONE_SETS,),
    watches=(
        *watches_of(CLONE_SETS, delay=_BATCH_DELAY),
        Watch(
            resource=kinds.PODS,
            keys=ownership.keys_of_owners(kinds.PODS, CLONE_SETS, ownership.selector_of),
            delay=_BATCH_DELAY,
        ),
        Watch(
            resource=kinds.PERSISTENT_VOLUME_CLAIMS,
            keys=ownership.keys_of_owners(kinds.PERSISTENT_VOLUME_CLAIMS, CLONE_SETS, ownership.selector_of),
        ),
        Watch(
            resource=kinds.CONTROLLER_REVISIONS,
            keys=ownership.keys_of_owners(kinds.CONTROLLER_REVISIONS, CLONE_SETS, ownership.selector_of),
        ),
        Watch(resource=kinds.NODES, keys=_no_keys),
    ),
    indexes={
        kinds.PODS: {ownership.BY_OWNER: ownership.owner_of_pod},
        kinds.PERSISTENT_VOLUME_CLAIMS: {ownership.BY_OWNER: ownership.owner_of},
        kinds.CONTROLLER_REVISIONS: {ownership.BY_OWNER: ownership.owner_of},
    },
    reconcile=reconcile,
    workers=3,
)

CLONE_SET_COUNTING_PREPARED: Final = replace(CLONE_SET, reconcile=partial(reconcile, counts_prepared=True))
"""The controller with the feature gate PreparingUpdateAsUpdate."""
