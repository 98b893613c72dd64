"""Scale a set: create the pods of its slots, and delete the condemned pods, in order or in parallel.

With an ordered pod management policy, a pod is only created or deleted while all pods before it are available; in parallel
no pod waits for another. Each step may end the reconciliation before further steps and before the rolling update.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.podview import PENDING, PodView
from mockube.controller_manager.control.actions import Action, RecordEvent, Update

from . import identity, status, storage
from .state import Slot, StatefulSetState


class ScalingResult(NamedTuple):
    """The actions of scaling."""

    actions: tuple[Action, ...]
    ended: bool
    """Whether no further pod is created or deleted in this reconciliation."""
    halted: bool
    """Whether no pod is updated in this reconciliation, either."""


class _Step(NamedTuple):
    """The actions for one pod. A step that halts ends the reconciliation if pods are processed in order."""

    halts: bool
    prior_actions: tuple[Action, ...] = ()
    """The actions on its claims, and updates of the pod."""
    created: ReadOnlyTree | None = None
    deleted: PodView | None = None
    blocks: bool = False
    """Whether a step that halts ends the reconciliation in parallel, too."""
    updates: bool = False
    """Whether pods may be updated after it, because its pod waits for an update."""


def scale(state: StatefulSetState) -> ScalingResult:
    slots_result = _run_steps(
        state, (_slot_step(state, slot) for slot in state.slots), state.owner.scale_limit
    )
    if slots_result.ended:
        return slots_result
    condemned_result = _run_steps(state, _condemned_steps(state), None)
    return condemned_result._replace(actions=(*slots_result.actions, *condemned_result.actions))


def _run_steps(state: StatefulSetState, steps: Iterable[_Step], budget: int | None) -> ScalingResult:
    """Return the actions of the steps, up to one that ends the reconciliation, or until `budget` pods are unavailable."""
    steps_run: list[_Step] = []
    ended = halted = False
    for step in steps:
        steps_run.append(step)
        ended = step.halts and (step.blocks or not state.owner.parallel)
        halted = ended and not step.updates
        budget = budget - 1 if budget is not None and step.halts else budget
        if ended or budget == 0:
            break
    prior_actions = [action for step in steps_run for action in step.prior_actions]
    deleted = [step.deleted for step in steps_run if step.deleted is not None]
    created = [step.created for step in steps_run if step.created is not None]
    actions = (*prior_actions, *status.deletion(state.owner, deleted), *status.creation(state.owner, created))
    return ScalingResult(actions, ended, halted)


def _delete_step(state: StatefulSetState, pod: PodView, *, blocks: bool = False) -> _Step:
    """Return the step that deletes a pod, or prepares a pod with a hook for its deletion."""
    patches = state.pod_handling.hold_patches(pod)
    if patches is None:
        return _Step(halts=True, deleted=pod, blocks=blocks)
    return _Step(halts=True, prior_actions=patches, blocks=blocks)


# --- the slots


def _slot_step(state: StatefulSetState, slot: Slot) -> _Step:
    pod = slot.pod
    if pod is None:
        return _create_step(state, slot.ordinal)
    if pod.is_terminal:
        # A pod that ended is replaced whatever its exit code; the new one is created once this one is deleted.
        blocks = state.owner.blocks_on_terminal_pods
        return _Step(halts=True, blocks=blocks) if pod.deleting else _delete_step(state, pod, blocks=blocks)
    halts = state.is_unavailable(pod)
    storage_actions = _storage_actions(state, slot.ordinal, pod)
    is_waiting = pod.deleting or (halts and not state.owner.parallel)
    prior_actions = (
        storage_actions if is_waiting else (*storage_actions, *_identity_actions(state, slot.ordinal, pod))
    )
    updates = state.is_outdated(pod) and state.pod_handling.is_prepared(pod)
    return _Step(halts=halts, prior_actions=prior_actions, updates=updates)


def _create_step(state: StatefulSetState, ordinal: int) -> _Step:
    owner = state.owner
    blocks = owner.blocks_on_terminal_pods
    if storage.is_stale(owner, ordinal, state.claims):
        return _Step(halts=True, blocks=blocks)
    terminating_claim = storage.terminating_claim(owner, ordinal, state.claims)
    if terminating_claim:
        name = identity.pod_name(owner, ordinal)
        create, set_name = owner.event_verb("create"), owner.key.name
        problem = f"{create} Pod {name} in StatefulSet {set_name} failed error: pvc {terminating_claim} is being deleted"
        failed = RecordEvent(about=owner.object, type="Warning", reason="FailedCreate", message=problem)
        return _Step(halts=True, prior_actions=(failed,), blocks=blocks)
    pod = state.pod_handling.new_pod_body(identity.new_pod(owner, ordinal, state.revision_for(ordinal)))
    return _Step(halts=True, prior_actions=storage.create_missing(owner, ordinal, state.claims), created=pod)


def _storage_actions(state: StatefulSetState, ordinal: int, pod: PodView) -> tuple[Action, ...]:
    needs_claims = pod.phase == PENDING and not pod.deleting
    missing = storage.create_missing(state.owner, ordinal, state.claims) if needs_claims else ()
    return (*missing, *storage.retention_actions(state.owner, pod, ordinal, state.claims))


def _identity_actions(state: StatefulSetState, ordinal: int, pod: PodView) -> tuple[Action, ...]:
    owner = state.owner
    if identity.matches(owner, pod, ordinal):
        return ()
    missing = storage.create_missing(owner, ordinal, state.claims)
    body = identity.restore_identity(owner, pod, ordinal)
    return (*missing, Update(resource=kinds.PODS, body=body, event=status.event_template(owner, "update")))


# --- the condemned pods


def _condemned_steps(state: StatefulSetState) -> Iterator[_Step]:
    """Yield the steps of condemned pods: first their claims' owners, then the deletions, the highest ordinal first."""
    for pod in state.condemned:
        claims = storage.retention_actions(state.owner, pod, _ordinal(state, pod), state.claims)
        yield _Step(halts=False, prior_actions=claims)
    first = _first_unavailable(state)
    for pod in state.condemned:
        waits = not state.owner.parallel and state.is_unavailable(pod) and pod is not first
        yield _Step(halts=True) if pod.deleting or waits else _delete_step(state, pod)


def _first_unavailable(state: StatefulSetState) -> PodView | None:
    """Return the first unavailable pod: in order, it is the only unavailable pod that may be deleted."""
    ordered = (*(slot.pod for slot in state.slots), *reversed(state.condemned))
    return next((pod for pod in ordered if state.is_unavailable(pod)), None)


def _ordinal(state: StatefulSetState, pod: PodView) -> int:
    ordinal = identity.ordinal_in(state.owner, pod.key.name)
    assert ordinal is not None  # the state has no pods of other names
    return ordinal
