"""Scale a set: fill the slots, delete the condemned pods, each in its order.

In order, a pod is changed only while all before it run and are available; in parallel nothing waits. Either step may
end the round before the next, and before outdated pods are updated.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client import kinds
from mockube.controller_manager.client.podview import PENDING, PodView
from mockube.controller_manager.control.actions import Action, RecordEvent, Update
from mockube.controller_manager.workloads.stateful import identity, status, storage
from mockube.controller_manager.workloads.stateful.state import Slot, StatefulSetState


class ScalingResult(NamedTuple):
    actions: tuple[Action, ...]
    ended: bool
    """No further pod is created or deleted in this round,"""
    halted: bool
    """nor is one updated."""


class _Step(NamedTuple):
    """The actions for one pod. A step that halts ends the round, if pods are processed in order."""

    halts: bool
    before: tuple[Action, ...] = ()
    """About its claims, or about itself."""
    created: ReadOnlyTree | None = None
    deleted: PodView | None = None
    blocks: bool = False
    """The round ends with it in parallel, too."""
    updates: bool = False
    """But pods may be updated, since that is what this one waits for."""


def scale(state: StatefulSetState) -> ScalingResult:
    filled = _walk(state, (_slot_step(state, slot) for slot in state.slots), state.owner.scale_limit)
    if filled.ended:
        return filled
    cleared = _walk(state, _condemned_steps(state), None)
    return cleared._replace(actions=(*filled.actions, *cleared.actions))


def _walk(state: StatefulSetState, steps: Iterable[_Step], budget: int | None) -> ScalingResult:
    """The actions of the steps up to the first that ends the round, or until `budget` pods are unavailable."""
    walked: list[_Step] = []
    ended = halted = False
    for step in steps:
        walked.append(step)
        ended = step.halts and (step.blocks or not state.owner.parallel)
        halted = ended and not step.updates
        budget = budget - 1 if budget is not None and step.halts else budget
        if ended or budget == 0:
            break
    before = [action for step in walked for action in step.before]
    deleted = [step.deleted for step in walked if step.deleted is not None]
    created = [step.created for step in walked if step.created is not None]
    actions = (*before, *status.deletion(state.owner, deleted), *status.creation(state.owner, created))
    return ScalingResult(actions, ended, halted)


def _delete_step(state: StatefulSetState, pod: PodView, *, blocks: bool = False) -> _Step:
    """Delete the pod, unless a hook holds it: then mark it for the hook's owner."""
    patches = state.pod_handling.hold_patches(pod)
    if patches is None:
        return _Step(halts=True, deleted=pod, blocks=blocks)
    return _Step(halts=True, before=patches, blocks=blocks)


# --- filling the slots


def _slot_step(state: StatefulSetState, slot: Slot) -> _Step:
    pod = slot.pod
    if pod is None:
        return _creation(state, slot.ordinal)
    if pod.is_terminal:
        # A pod that ended is replaced whatever its exit code; the new one is created once this one is deleted.
        blocks = state.owner.waits_for_ended
        return _Step(halts=True, blocks=blocks) if pod.deleting else _delete_step(state, pod, blocks=blocks)
    halts = state.is_unavailable(pod)
    stored = _storage_actions(state, slot.ordinal, pod)
    waiting = pod.deleting or (halts and not state.owner.parallel)
    before = stored if waiting else (*stored, *_restoration(state, slot.ordinal, pod))
    updates = state.is_outdated(pod) and state.pod_handling.is_prepared(pod)
    return _Step(halts=halts, before=before, updates=updates)


def _creation(state: StatefulSetState, ordinal: int) -> _Step:
    owner = state.owner
    blocks = owner.waits_for_ended
    if storage.is_stale(owner, ordinal, state.claims):
        return _Step(halts=True, blocks=blocks)
    ending = storage.ending(owner, ordinal, state.claims)
    if ending:
        name = identity.pod_name(owner, ordinal)
        create, set_name = owner.event_verb("create"), owner.key.name
        problem = f"{create} Pod {name} in StatefulSet {set_name} failed error: pvc {ending} is being deleted"
        failed = RecordEvent(about=owner.object, type="Warning", reason="FailedCreate", message=problem)
        return _Step(halts=True, before=(failed,), blocks=blocks)
    pod = state.pod_handling.new_pod_body(identity.new_pod(owner, ordinal, state.revision_for(ordinal)))
    return _Step(halts=True, before=storage.create_missing(owner, ordinal, state.claims), created=pod)


def _storage_actions(state: StatefulSetState, ordinal: int, pod: PodView) -> tuple[Action, ...]:
    wanting = pod.phase == PENDING and not pod.deleting
    missing = storage.create_missing(state.owner, ordinal, state.claims) if wanting else ()
    return (*missing, *storage.retention(state.owner, pod, ordinal, state.claims))


def _restoration(state: StatefulSetState, ordinal: int, pod: PodView) -> tuple[Action, ...]:
    owner = state.owner
    if identity.matches(owner, pod, ordinal):
        return ()
    missing = storage.create_missing(owner, ordinal, state.claims)
    body = identity.restore_identity(owner, pod, ordinal)
    return (*missing, Update(resource=kinds.PODS, body=body, event=status.event_template(owner, "update")))


# --- taking away the condemned


def _condemned_steps(state: StatefulSetState) -> Iterator[_Step]:
    """Claims first, so that they are sure to go with their pods; then the pods, the highest ordinal first."""
    for pod in state.condemned:
        claims = storage.retention(state.owner, pod, _ordinal(state, pod), state.claims)
        yield _Step(halts=False, before=claims)
    first = _first_unavailable(state)
    for pod in state.condemned:
        waits = not state.owner.parallel and state.is_unavailable(pod) and pod is not first
        yield _Step(halts=True) if pod.deleting or waits else _delete_step(state, pod)


def _first_unavailable(state: StatefulSetState) -> PodView | None:
    """The pod that the others wait for: only it may go while it is not available."""
    ordered = (*(slot.pod for slot in state.slots), *reversed(state.condemned))
    return next((pod for pod in ordered if state.is_unavailable(pod)), None)


def _ordinal(state: StatefulSetState, pod: PodView) -> int:
    ordinal = identity.ordinal_in(state.owner, pod.key.name)
    assert ordinal is not None  # the state has no pods of other names
    return ordinal
