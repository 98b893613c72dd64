"""One reconciliation of a set, whatever its kind: observe, scale and roll, write the status."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.intstr import IntOrStringError
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import CONTROLLER_REVISIONS, PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key, Resource, T
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Patch, Plan, Update
from mockube.controller_manager.workloads import revisions
from mockube.controller_manager.workloads.inplace.update import Step, patches_without_gates
from mockube.controller_manager.workloads.ownership import OwnedObjects
from mockube.controller_manager.workloads.ownership import adoption_and_release_actions as claimed
from mockube.controller_manager.workloads.revisions import DesiredRevision, SyncedRevision
from mockube.controller_manager.workloads.stateful import identity, state
from mockube.controller_manager.workloads.stateful.scaling import scale
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import (
    PodHandling,
    Slot,
    StatefulSetState,
    by_ordinal,
)


class RolloutResult(NamedTuple):
    """What is done about outdated pods."""

    actions: tuple[Action, ...] = ()
    replaced: tuple[PodView, ...] = ()
    """Those that go or change because they are outdated."""


class Account(NamedTuple):
    """What a status reports beside the observed state."""

    collision_count: int
    actions: tuple[Action, ...] = ()
    """What was to be done with pods and claims."""
    replaced: tuple[PodView, ...] = ()
    error: ApiError | None = None
    """What ended it."""


class _OwnedObjects(NamedTuple):
    owner: SetView
    pods: Collection[PodView]
    history: Sequence[ReadOnlyTree]
    update: ReadOnlyTree
    now: datetime


class Kind(Struct, frozen=True, kw_only=True):
    """The differences between the kinds of sets."""

    resource: Resource[ReadOnlyTree]
    view: Callable[[ReadOnlyTree], SetView]
    """Or `SelectorError`, or `IntOrStringError`."""
    pod_handling: Callable[[SetView, str, datetime], PodHandling]
    """By the name of the newest revision."""
    current_ordinals: Callable[[SetView, Sequence[Slot], str], Collection[int]]
    """The ordinals whose new pods get the current revision; takes the name of the newest."""
    roll: Callable[[StatefulSetState], RolloutResult]
    """Called once every slot has its pod."""
    status: Callable[[StatefulSetState, Account], dict[str, Any]]


def reconcile(kind: Kind, caches: Caches, key: Key, now: datetime) -> Plan:
    tree = caches.of(kind.resource).get(*key)
    if tree is None:
        return EMPTY_PLAN
    try:
        owner = kind.view(tree)
    except (SelectorError, IntOrStringError):
        return EMPTY_PLAN  # no server accepts such a set, and trying again would not mend it
    recorded, pods = state.revisions(caches, owner), state.pods(caches, owner)
    # Adoption and release are a reconciliation of their own: pods are counted after the caches show them.
    if first := (*_claim_actions(owner, CONTROLLER_REVISIONS, recorded), *_claim_actions(owner, PODS, pods)):
        return Plan(actions=first)
    history = revisions.in_order(recorded.owned)
    synced = _synced_revision(caches, owner, history)
    snapshot = _state_of(kind, caches, _OwnedObjects(owner, pods.owned, history, synced.revision, now))
    return _plan(kind, snapshot, synced)


def _plan(kind: Kind, snapshot: StatefulSetState, synced: SyncedRevision) -> Plan:
    if snapshot.owner.deleting:
        account = Account(synced.collision_count)
        # A revision that the garbage collector has deleted is not created again.
        return Plan(last=partial(_final_actions, kind, snapshot, synced, account))
    steps = [snapshot.pod_handling.observe_pod(pod) for pod in snapshot.pods if not pod.deleting]
    patches = tuple(patch for step in steps for patch in step.patches)
    scaling = scale(snapshot)
    # Pods that change their lifecycle state are reconciled again afterwards.
    is_moving = any(not patch.subresource for patch in patches)
    is_waiting = scaling.halted or is_moving or not snapshot.has_all_slots
    rolled = RolloutResult() if is_waiting else kind.roll(snapshot)
    update_patches = [action for action in rolled.actions if isinstance(action, Patch)]
    actions = (*scaling.actions, *rolled.actions)
    account = Account(synced.collision_count, actions, rolled.replaced)
    return Plan(
        actions=(*synced.actions, *patches_without_gates(patches, update_patches), *actions),
        last=partial(_final_actions, kind, snapshot, synced, account),
        again_after=_next_check(snapshot, steps),
    )


# --- what is seen


def _claim_actions(owner: SetView, resource: Resource[T], claims: OwnedObjects[T]) -> tuple[Action, ...]:
    return claimed(claims, resource, owner.object, owner.resource)


def _synced_revision(caches: Caches, owner: SetView, history: Sequence[ReadOnlyTree]) -> SyncedRevision:
    desired = DesiredRevision(
        owner=owner.object,
        data=identity.data_of(owner),
        labels=meta.labels(owner.object["spec"]["template"]),
        annotations=meta.annotations(owner.object),
    )
    named = partial(caches.of(CONTROLLER_REVISIONS).get, owner.key.namespace)
    return revisions.sync_revision(desired, history, owner.status.get("collisionCount") or 0, named)


def _state_of(kind: Kind, caches: Caches, seen: _OwnedObjects) -> StatefulSetState:
    owner = seen.owner
    slots, condemned = by_ordinal(owner, seen.pods)
    beyond = (identity.ordinal_in(owner, pod.key.name) for pod in condemned)
    ordinals = (*(slot.ordinal for slot in slots), *(ordinal for ordinal in beyond if ordinal is not None))
    current = owner.status.get("currentRevision")
    update = meta.name(seen.update)
    return StatefulSetState(
        owner=owner,
        pod_handling=kind.pod_handling(owner, update, seen.now),
        slots=slots,
        condemned=condemned,
        claims=state.claims(caches, owner, ordinals),
        history=seen.history,
        current=next((revision for revision in seen.history if meta.name(revision) == current), seen.update),
        update=seen.update,
        current_ordinals=kind.current_ordinals(owner, slots, update),
        now=seen.now,
    )


# --- the last actions


def _final_actions(
    kind: Kind, snapshot: StatefulSetState, synced: SyncedRevision, account: Account, error: ApiError | None
) -> tuple[Action, ...]:
    """The status, also of a round that failed, unless its revision may not exist; then the deletion of old revisions."""
    if error is not None and synced.actions:
        return ()
    live = {snapshot.current_name, snapshot.update_name, *map(identity.revision_of, snapshot.pods)}
    deletions = revisions.truncate_history(snapshot.history, live, snapshot.owner.revision_history_limit)
    return (*_status_update(snapshot.owner, kind.status(snapshot, account._replace(error=error))), *deletions)


def _status_update(owner: SetView, new: dict[str, Any]) -> tuple[Action, ...]:
    # What counts 0 or lists nothing may be left out, and the same goes for no collisions.
    if all((owner.status.get(field) or None) == (value or None) for field, value in new.items()):
        return ()
    status = {field: value for field, value in {**owner.status, **new}.items() if value != []}
    body = {**owner.object, "status": status}
    return (Update(resource=owner.resource, body=body, subresource="status"),)


def _next_check(snapshot: StatefulSetState, steps: Sequence[Step]) -> timedelta | None:
    """When the next pod that is ready will have been so for long enough, or what waits falls due."""
    enough = span_of(snapshot.owner.min_ready_seconds)
    waiting = [
        after(pod.ready_since, enough) - snapshot.now
        for pod in snapshot.pods
        if pod.ready_since is not None and not snapshot.is_available(pod) and not pod.deleting
    ]
    due = [step.again_after for step in steps if step.again_after is not None]
    return min((delay for delay in (*waiting, *due) if delay > timedelta()), default=None)
