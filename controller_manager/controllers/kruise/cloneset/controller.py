"""The controller of CloneSets: what it watches, and how one reconciliation is put together."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from mockube.apimachinery import conditions, labels, meta
from mockube.apimachinery.labels import Selector, SelectorError
from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import (
    CLONE_SETS,
    CONTROLLER_REVISIONS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
)
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.controllers.kruise.cloneset import (
    identity,
    scaling,
    state,
    status,
    storage,
    updating,
)
from mockube.controller_manager.controllers.kruise.cloneset.order import NOTHING_TO_DO, Decision, earliest
from mockube.controller_manager.controllers.kruise.cloneset.spec import SetView
from mockube.controller_manager.controllers.kruise.cloneset.state import CloneSetState
from mockube.controller_manager.controllers.kruise.cloneset.status import Failure
from mockube.controller_manager.workloads import indexes as primary
from mockube.controller_manager.workloads import revisions
from mockube.controller_manager.workloads.ownership import (
    BY_OWNER,
    adoption_and_release_actions,
    keys_of_owners,
    owner_of,
    owner_of_pod,
)
from mockube.controller_manager.workloads.revisions import DesiredRevision, SyncedRevision


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    tree = caches.of(CLONE_SETS).get(*key)
    if tree is None:
        return EMPTY_PLAN
    try:
        owner = SetView.of(tree)
    except SelectorError:
        return EMPTY_PLAN  # no server accepts such a set, and trying again would not mend it
    pods = state.pods(caches, owner)
    # Releases are a plan of their own: the changes of the pods requeue the key, and the pods are counted afterwards.
    if first := adoption_and_release_actions(pods, PODS, owner.object, CLONE_SETS):
        return Plan(actions=first)
    history = state.history(caches, owner)
    recorded = _sync_revision(caches, owner, history)
    snapshot = _state_of(caches, owner, pods.owned, history, recorded, now)
    if owner.deleting:
        return (
            EMPTY_PLAN
            if recorded.actions
            else Plan(last=partial(_final_actions, snapshot, recorded, NOTHING_TO_DO, ""))
        )
    cleaned = () if owner.reuses_claims else storage.cleanup(owner, pods.owned, state.claims(caches, owner))
    scaled = scaling.plan(snapshot)
    updated = NOTHING_TO_DO if scaled.changes_pods else updating.plan(snapshot)
    failing = "FailedScale" if scaled.changes_pods else "FailedUpdate"
    return Plan(
        actions=(*cleaned, *recorded.actions, *scaled.actions, *updated.actions),
        last=partial(_final_actions, snapshot, recorded, updated, failing),
        again_after=earliest(updated.again_after, _next_availability(snapshot), _deadline(snapshot)),
    )


def _sync_revision(caches: Caches, owner: SetView, history: Sequence[ReadOnlyTree]) -> SyncedRevision:
    annotations = {
        **meta.annotations(owner.object),
        storage.ANNOTATION_CLAIMS_HASH: storage.claims_hash(owner),
    }
    desired = DesiredRevision(
        owner=owner.object,
        data=identity.data_of(owner),
        labels=meta.labels(owner.template),
        annotations=annotations,
    )
    named = partial(caches.of(CONTROLLER_REVISIONS).get, owner.key.namespace)
    return revisions.sync_revision(desired, history, owner.status.get("collisionCount") or 0, named)


def _state_of(
    caches: Caches,
    owner: SetView,
    pods: Sequence[PodView],
    history: Sequence[ReadOnlyTree],
    recorded: SyncedRevision,
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
        current=next((revision for revision in history if meta.name(revision) == name), recorded.revision),
        update=recorded.revision,
        node_labels=partial(state.node_labels, caches),
        now=now,
    )


# --- the last actions


def _final_actions(
    snapshot: CloneSetState, recorded: SyncedRevision, updated: Decision, failing: str, error: ApiError | None
) -> tuple[Action, ...]:
    """The status, also of a round that failed, unless its revision may not exist; then the deletion of old revisions."""
    if error is not None and recorded.actions:
        return ()
    failure = _failure(failing, updated, error)
    status_actions = status.status_update(snapshot, status.of(snapshot, recorded.collision_count, failure))
    live = {snapshot.current_name, snapshot.update_name}
    live |= {
        meta.name(revision)
        for revision in snapshot.history
        if any(_has_revision(pod, revision) for pod in snapshot.pods)
    }
    deletions = revisions.truncate_history(snapshot.history, live, snapshot.owner.revision_history_limit)
    # Both write the set, and the second would conflict: it follows in the next round.
    return (*(status_actions or _without_names_of_the_gone(snapshot)), *deletions)


def _failure(failing: str, updated: Decision, error: ApiError | None) -> Failure | None:
    """A conflict is no failure: the next round starts from the other writer's version."""
    if isinstance(error, Conflict):
        return None
    message = updated.problem if error is None else str(error)
    return Failure(failing, message) if message else None


def _has_revision(pod: PodView, revision: ReadOnlyTree) -> bool:
    return identity.has_revision(pod, meta.name(revision))


def _without_names_of_the_gone(snapshot: CloneSetState) -> tuple[Update, ...]:
    owner = snapshot.owner
    present = {pod.key.name for pod in snapshot.pods}
    if owner.deleting or owner.pods_to_delete <= present:
        return ()
    path = ("spec", "scaleStrategy", "podsToDelete")
    named = [name for name in owner.object["spec"]["scaleStrategy"]["podsToDelete"] if name in present]
    return (Update(resource=CLONE_SETS, body=meta.with_value(owner.object, path, named)),)


def _next_availability(snapshot: CloneSetState) -> timedelta | None:
    """When the next pod that is ready will have been so for long enough."""
    enough = span_of(snapshot.owner.min_ready_seconds)
    waiting = [
        after(pod.ready_since, enough) - snapshot.now for pod in snapshot.pods if pod.ready_since is not None
    ]
    return min((delay for delay in waiting if delay > timedelta()), default=None)


def _deadline(snapshot: CloneSetState) -> timedelta | None:
    """The time until a rollout without progress exceeds its deadline."""
    progressing = conditions.get(snapshot.owner.object, status.PROGRESSING)
    due = status.progress_deadline(snapshot.owner, progressing)
    return None if due is None or due <= snapshot.now else due - snapshot.now


# --- what it watches


def _of_node(_caches: Caches, _change: Change) -> Iterable[Key]:
    """Only read, when there is a choice of pods to delete."""
    return ()


def _selector(owner: ReadOnlyTree) -> Selector:
    return labels.from_label_selector(owner["spec"].get("selector"))


_DELAY: Final = timedelta(milliseconds=50)
"""Pods become ready in swarms, and each look counts all of them."""

CLONE_SET: Final = Controller(
    name="cloneset-controller",
    queue="cloneset",
    service_account="",
    event_component="cloneset-controller",
    metrics_name="cloneset-controller",
    needs=(CLONE_SETS,),
    watches=(
        *primary.watches_of(CLONE_SETS, delay=_DELAY),
        Watch(resource=PODS, keys=keys_of_owners(PODS, CLONE_SETS, _selector), delay=_DELAY),
        Watch(
            resource=PERSISTENT_VOLUME_CLAIMS,
            keys=keys_of_owners(PERSISTENT_VOLUME_CLAIMS, CLONE_SETS, _selector),
        ),
        Watch(
            resource=CONTROLLER_REVISIONS, keys=keys_of_owners(CONTROLLER_REVISIONS, CLONE_SETS, _selector)
        ),
        Watch(resource=NODES, keys=_of_node),
    ),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        PERSISTENT_VOLUME_CLAIMS: {BY_OWNER: owner_of},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
    },
    reconcile=reconcile,
    workers=3,
)
