"""Reconcile a StatefulSet of any kind: adopt and release, scale, update pods, write the status."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.intstr import IntOrStringError
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource, T
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Patch, Plan, Update
from mockube.controller_manager.workloads import revisions
from mockube.controller_manager.workloads.ownership import OwnedObjects, adoption_and_release_actions
from mockube.controller_manager.workloads.pod_steps import PodStep, patches_besides_updates
from mockube.controller_manager.workloads.revisions import DesiredRevision, SyncedRevision

from . import identity, state
from .scaling import scale
from .spec import SetView
from .state import PodHandling, Slot, StatefulSetState, by_ordinal


class RolloutResult(NamedTuple):
    """The actions of a rolling update."""

    actions: tuple[Action, ...] = ()
    replaced: tuple[PodView, ...] = ()
    """The outdated pods that are deleted or changed."""


class Preparation(NamedTuple):
    """The actions that precede scaling and updates: another reconciliation continues after them."""

    actions: tuple[Action, ...]
    reports_status: bool = True


class ReconcileResult(NamedTuple):
    """The results of a reconciliation that the status reports, in addition to the observed state."""

    collision_count: int
    actions: tuple[Action, ...] = ()
    """The actions on pods and claims."""
    replaced: tuple[PodView, ...] = ()
    error: ApiError | None = None
    """The error that ended them; None after success."""


class _ObservedObjects(NamedTuple):
    owner: SetView
    pods: Collection[PodView]
    history: Sequence[ReadOnlyTree]
    update: ReadOnlyTree
    now: datetime


def _no_preparation(_: StatefulSetState) -> None:
    return None


class StatefulSetKind(Struct, frozen=True, kw_only=True):
    """The differences between the kinds of sets."""

    resource: Resource[ReadOnlyTree]
    view: Callable[[ReadOnlyTree], SetView]
    """Returns the view of a set. Raises `SelectorError` or `IntOrStringError`."""
    pod_handling: Callable[[SetView, str, datetime], PodHandling]
    """Returns the handling of pods; takes the name of the update revision."""
    current_ordinals: Callable[[SetView, Sequence[Slot], str], Collection[int]]
    """Returns the ordinals whose new pods get the current revision; takes the name of the update revision."""
    roll: Callable[[StatefulSetState], RolloutResult]
    """Returns the rolling update; called when every slot has its pod."""
    status: Callable[[StatefulSetState, ReconcileResult], dict[str, Any]]
    """Returns the status."""
    prepare: Callable[[StatefulSetState], Preparation | None] = _no_preparation
    """Returns what precedes scaling and updates; None if nothing does."""
    semantic_comparison_gate: str = ""
    """The feature gate with which semantically equal templates have the same revision; empty for none."""
    keeps_conditions_since: str = minors.OLDER[-1]
    """The first minor release whose status updates keep the conditions of the set."""


def reconcile(kind: StatefulSetKind, caches: Caches, key: Key, now: datetime) -> Plan:
    tree = caches.of(kind.resource).get(*key)
    if tree is None:
        return EMPTY_PLAN
    try:
        owner = kind.view(tree)
    except (SelectorError, IntOrStringError):
        return EMPTY_PLAN  # no server accepts such a set, and a retry would not help
    owned_revisions, owned_pods = state.revisions(caches, owner), state.pods(caches, owner)
    # Adoption and release are a separate reconciliation: pods are counted when the caches contain them.
    revision_actions = _ownership_actions(owner, CONTROLLER_REVISIONS, owned_revisions)
    if ownership_actions := (*revision_actions, *_ownership_actions(owner, PODS, owned_pods)):
        return Plan(actions=ownership_actions)
    history = revisions.in_order(owned_revisions.owned)
    synced = _synced_revision(kind, caches, owner, history)
    snapshot = _state_of(
        kind, caches, _ObservedObjects(owner, owned_pods.owned, history, synced.revision, now)
    )
    return _plan(kind, snapshot, synced)


def _plan(kind: StatefulSetKind, snapshot: StatefulSetState, synced: SyncedRevision) -> Plan:
    if snapshot.owner.deleting:
        result = ReconcileResult(synced.collision_count)
        # The garbage collector may have deleted the revision: it is not created again.
        return Plan(last=partial(_final_actions, kind, snapshot, synced, result))
    preparation = kind.prepare(snapshot)
    if preparation is not None:
        return _preparing_plan(kind, snapshot, synced, preparation)
    steps = [snapshot.pod_handling.observe_pod(pod) for pod in snapshot.pods if not pod.deleting]
    patches = tuple(patch for step in steps for patch in step.patches)
    scaling = scale(snapshot)
    # Pods that change their lifecycle state are reconciled again afterwards.
    has_lifecycle_changes = any(not patch.subresource for patch in patches)
    waits_for_pods = scaling.halted or has_lifecycle_changes or not snapshot.has_all_slots
    rollout = RolloutResult() if waits_for_pods else kind.roll(snapshot)
    update_patches = [action for action in rollout.actions if isinstance(action, Patch)]
    actions = (*scaling.actions, *rollout.actions)
    result = ReconcileResult(synced.collision_count, actions, rollout.replaced)
    return Plan(
        actions=(*synced.actions, *patches_besides_updates(patches, update_patches), *actions),
        last=partial(_final_actions, kind, snapshot, synced, result),
        requeue_after=_next_check(snapshot, steps),
    )


def _preparing_plan(
    kind: StatefulSetKind, snapshot: StatefulSetState, synced: SyncedRevision, preparation: Preparation
) -> Plan:
    actions = (*synced.actions, *preparation.actions)
    if not preparation.reports_status:
        return Plan(actions=actions)
    result = ReconcileResult(synced.collision_count, preparation.actions)
    return Plan(actions=actions, last=partial(_final_actions, kind, snapshot, synced, result))


# --- observation


def _ownership_actions(owner: SetView, resource: Resource[T], objects: OwnedObjects[T]) -> tuple[Action, ...]:
    return adoption_and_release_actions(objects, resource, owner.object, owner.resource)


def _synced_revision(
    kind: StatefulSetKind, caches: Caches, owner: SetView, history: Sequence[ReadOnlyTree]
) -> SyncedRevision:
    desired = DesiredRevision(
        owner=owner.object,
        data=revisions.data_of(owner.object["spec"]["template"]),
        labels=meta.labels(owner.object["spec"]["template"]),
        annotations=meta.annotations(owner.object),
        compares_semantically=caches.gates.is_on(kind.semantic_comparison_gate),
    )
    get_revision = partial(caches.of(CONTROLLER_REVISIONS).get, owner.key.namespace)
    return revisions.sync_revision(desired, history, owner.status.get("collisionCount") or 0, get_revision)


def _state_of(kind: StatefulSetKind, caches: Caches, observed: _ObservedObjects) -> StatefulSetState:
    owner = observed.owner
    slots, condemned = by_ordinal(owner, observed.pods)
    condemned_ordinals = (identity.ordinal_in(owner, pod.key.name) for pod in condemned)
    ordinals = (
        *(slot.ordinal for slot in slots),
        *(ordinal for ordinal in condemned_ordinals if ordinal is not None),
    )
    current = owner.status.get("currentRevision")
    update = meta.name(observed.update)
    return StatefulSetState(
        owner=owner,
        pod_handling=kind.pod_handling(owner, update, observed.now),
        slots=slots,
        condemned=condemned,
        owned=observed.pods,
        claims=state.claims(caches, owner, ordinals),
        history=observed.history,
        current=next(
            (revision for revision in observed.history if meta.name(revision) == current), observed.update
        ),
        update=observed.update,
        current_ordinals=kind.current_ordinals(owner, slots, update),
        gates=caches.gates,
        now=observed.now,
    )


# --- the last actions


def _final_actions(
    kind: StatefulSetKind,
    snapshot: StatefulSetState,
    synced: SyncedRevision,
    result: ReconcileResult,
    error: ApiError | None,
) -> tuple[Action, ...]:
    """Return the status update and the deletion of old revisions; nothing if the revision may not exist after an error."""
    if error is not None and synced.actions:
        return ()
    live = {snapshot.current_name, snapshot.update_name, *map(identity.revision_of, snapshot.pods)}
    deletions = revisions.truncate_history(snapshot.history, live, snapshot.owner.revision_history_limit)
    new = kind.status(snapshot, result._replace(error=error))
    keeps_conditions = not snapshot.gates.is_before(kind.keeps_conditions_since)
    return (*_status_update(snapshot.owner, new, keeps_conditions=keeps_conditions), *deletions)


def _status_update(owner: SetView, new: dict[str, Any], *, keeps_conditions: bool) -> tuple[Action, ...]:
    # Zero counts and empty lists may be absent in the status.
    if all((owner.status.get(field) or None) == (value or None) for field, value in new.items()):
        return ()
    old = {field: value for field, value in owner.status.items() if keeps_conditions or field != "conditions"}
    status = {field: value for field, value in {**old, **new}.items() if value != []}
    body = {**owner.object, "status": status}
    return (Update(resource=owner.resource, body=body, subresource="status"),)


def _next_check(snapshot: StatefulSetState, steps: Sequence[PodStep]) -> timedelta | None:
    """Return the time until the next ready pod becomes available, or a delayed change is due."""
    min_ready = span_of(snapshot.owner.min_ready_seconds)
    waiting = [
        after(pod.ready_since, min_ready) - snapshot.now
        for pod in snapshot.pods
        if pod.ready_since is not None and not snapshot.is_available(pod) and not pod.deleting
    ]
    due = [step.requeue_after for step in steps if step.requeue_after is not None]
    return min((delay for delay in (*waiting, *due) if delay > timedelta()), default=None)
