"""Which pods of an advanced set get the newest revision now, and how: in place, or by being recreated.

Pods with the label for deletion are deleted first, within the same limit.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH, LABEL_SPECIFIED_DELETE
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Action, EventTemplate, Patch
from mockube.controller_manager.controllers.kruise.advancedstatefulset.strategy import Policy, Strategy
from mockube.controller_manager.workloads.inplace import lifecycle, record, update
from mockube.controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from mockube.controller_manager.workloads.inplace.record import Change, change_between
from mockube.controller_manager.workloads.stateful import identity, status
from mockube.controller_manager.workloads.stateful.reconciliation import RolloutResult
from mockube.controller_manager.workloads.stateful.state import StatefulSetState
from mockube.controller_manager.workloads.update_order import by_priority


class _Budget:
    """The pods that may be unavailable. Those that are unavailable already count first."""

    def __init__(self, limit: int, down: Iterable[str]) -> None:
        self._limit = limit
        self._down = {*down}

    def admits(self, pod: PodView) -> bool:
        name = pod.key.name
        if name not in self._down and len(self._down) >= self._limit:
            return False
        self._down.add(name)
        return True


def roll(state: StatefulSetState) -> RolloutResult:
    strategy = Strategy.of(state.owner.object["spec"])
    if state.owner.on_delete or strategy.paused:
        return RolloutResult()
    budget = _Budget(strategy.max_unavailable, _down(state))
    named = [pod for pod in _descending(state) if _is_named(pod) and budget.admits(pod)]
    removed = _delete_pods(state, named)
    updated = _update_pods(state, strategy, budget, named)
    return RolloutResult((*removed.actions, *updated.actions), (*removed.replaced, *updated.replaced))


def _down(state: StatefulSetState) -> Iterator[str]:
    for slot in state.slots:
        pod = slot.pod
        if pod is None or state.is_unavailable(pod) or not update.is_finished(pod):
            yield identity.pod_name(state.owner, slot.ordinal)


def _is_named(pod: PodView) -> bool:
    return LABEL_SPECIFIED_DELETE in pod.labels and not pod.deleting


def _descending(state: StatefulSetState) -> list[PodView]:
    return [slot.pod for slot in reversed(state.slots) if slot.pod is not None]


# --- in which order


def in_order(state: StatefulSetState, strategy: Strategy) -> list[PodView]:
    """The pods that the partition leaves to the update, those already updated among them."""
    if not strategy.unordered:
        return [slot.pod for slot in reversed(state.slots[strategy.partition :]) if slot.pod is not None]
    pods = _descending(state)
    waiting = [pod for pod in pods if state.is_outdated(pod)]
    others = [pod for pod in pods if not state.is_outdated(pod)]
    coming = sum(slot.pod is None and slot.ordinal not in state.current_ordinals for slot in state.slots)
    count = max(len(state.slots) - strategy.partition - coming, 0)
    return [*others, *by_priority(waiting, strategy.priority)][:count]


# --- what is done


def _update_pods(
    state: StatefulSetState, strategy: Strategy, budget: _Budget, named: Sequence[PodView]
) -> RolloutResult:
    patches: list[Action] = []
    in_place: list[PodView] = []
    anew: list[PodView] = []
    for pod in in_order(state, strategy):
        if not state.is_outdated(pod):
            continue
        if not budget.admits(pod):
            break
        if pod in named or record.is_waiting(pod):
            continue  # what is about to change is changed again when it has
        pod_update = _update_step(state, strategy, pod)
        if pod_update.way is ReplacementMethod.REFUSED:
            break
        patches += pod_update.patches
        (in_place if pod_update.way is ReplacementMethod.IN_PLACE else anew).append(pod)
    removed = _delete_pods(state, anew)
    return RolloutResult((*patches, *removed.actions), (*in_place, *removed.replaced))


def _delete_pods(state: StatefulSetState, pods: Sequence[PodView]) -> RolloutResult:
    """Delete the pods, and mark those that a hook holds for its owner."""
    hold_patches = {pod: state.pod_handling.hold_patches(pod) for pod in pods}
    going = tuple(pod for pod, patches in hold_patches.items() if patches is None)
    patches = [
        patch for pod_patches in hold_patches.values() if pod_patches is not None for patch in pod_patches
    ]
    return RolloutResult((*patches, *status.deletion(state.owner, going)), going)


# --- the update of one pod


class ReplacementMethod(Enum):
    IN_PLACE = auto()
    ANEW = auto()
    REFUSED = auto()
    """The pod must be updated in place, and cannot be: the rollout stops here."""


class UpdateStep(NamedTuple):
    way: ReplacementMethod
    patches: tuple[Patch, ...] = ()


def _update_step(state: StatefulSetState, strategy: Strategy, pod: PodView) -> UpdateStep:
    if strategy.policy is Policy.RECREATE:
        return UpdateStep(ReplacementMethod.ANEW)
    change = _change(state, pod)
    if change is None:
        return UpdateStep(
            ReplacementMethod.REFUSED if strategy.policy is Policy.IN_PLACE_ONLY else ReplacementMethod.ANEW
        )
    if lifecycle.state_of(pod) == State.PREPARING_DELETE:
        return UpdateStep(ReplacementMethod.REFUSED)
    order = update.Order(
        change=change,
        labels={LABEL_CONTROLLER_REVISION_HASH: state.update_name},
        grace_seconds=strategy.grace_seconds,
    )
    hooks = Lifecycle.of(state.owner.object["spec"])
    return UpdateStep(
        ReplacementMethod.IN_PLACE, update.change_pod(pod, hooks, order, state.now, _event_template(state))
    )


def _change(state: StatefulSetState, pod: PodView) -> Change | None:
    """None also if the pod's revision is no longer in the history."""
    name = identity.revision_of(pod)
    old = next((revision for revision in state.history if meta.name(revision) == name), None)
    if old is None:
        return None
    return change_between(identity.template_of(old), identity.template_of(state.update), state.update_name)


def _event_template(state: StatefulSetState) -> EventTemplate:
    subject = f"update pod {{name}} in-place(revision {state.update_name})"
    return EventTemplate(
        about=state.owner.object,
        done=("SuccessfulUpdatePodInPlace", f"successfully {subject}"),
        failed=("FailedUpdatePodInPlace", f"failed to {subject}: {{error}}"),
    )
