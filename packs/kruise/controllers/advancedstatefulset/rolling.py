"""The rolling update of an Advanced StatefulSet: the pods to update now, in place or by recreation.

Pods that are specified for deletion by a label are deleted first, within the same limit.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Action, EventTemplate, Patch
from mockube.controller_manager.workloads.revisions import template_of
from mockube.controller_manager.workloads.stateful import identity, status
from mockube.controller_manager.workloads.stateful.reconciliation import RolloutResult
from mockube.controller_manager.workloads.stateful.state import StatefulSetState
from mockube.packs.kruise.inplace import lifecycle, record, update
from mockube.packs.kruise.inplace.lifecycle import Lifecycle, LifecycleState
from mockube.packs.kruise.inplace.record import TemplateChange, change_between
from mockube.packs.kruise.kinds import LABEL_SPECIFIED_DELETE
from mockube.packs.kruise.update_order import by_priority

from .strategy import PodUpdatePolicy, UpdateStrategy


class _UnavailabilityBudget:
    """The limit of unavailable pods. Pods that are unavailable already count."""

    def __init__(self, limit: int, unavailable: Iterable[str]) -> None:
        self._limit = limit
        self._unavailable = {*unavailable}

    def reserve(self, pod: PodView) -> bool:
        """Count the pod as unavailable; return False if the limit does not allow it."""
        name = pod.key.name
        if name not in self._unavailable and len(self._unavailable) >= self._limit:
            return False
        self._unavailable.add(name)
        return True


def rolling_update(state: StatefulSetState, *, counts_prepared: bool = False) -> RolloutResult:
    """Return the actions; `counts_prepared`: pods that are prepared for their update count as updated."""
    strategy = UpdateStrategy.of(state.owner.object["spec"])
    if state.owner.on_delete or strategy.paused:
        return RolloutResult()
    budget = _UnavailabilityBudget(strategy.max_unavailable, _unavailable_names(state))
    specified = [
        pod
        for pod in _pods_by_descending_ordinal(state)
        if _is_specified_for_deletion(pod) and budget.reserve(pod)
    ]
    removed = _delete_pods(state, specified)
    ordered = pods_in_update_order(state, strategy, counts_prepared=counts_prepared)
    updated = _update_pods(state, strategy, budget, ordered, specified)
    return RolloutResult((*removed.actions, *updated.actions), (*removed.replaced, *updated.replaced))


def _unavailable_names(state: StatefulSetState) -> Iterator[str]:
    for slot in state.slots:
        pod = slot.pod
        if pod is None or state.is_unavailable(pod) or not update.is_finished(pod):
            yield identity.pod_name(state.owner, slot.ordinal)


def _is_specified_for_deletion(pod: PodView) -> bool:
    return LABEL_SPECIFIED_DELETE in pod.labels and not pod.deleting


def _pods_by_descending_ordinal(state: StatefulSetState) -> list[PodView]:
    return [slot.pod for slot in reversed(state.slots) if slot.pod is not None]


# --- the order of updates


def pods_in_update_order(
    state: StatefulSetState, strategy: UpdateStrategy, *, counts_prepared: bool = False
) -> list[PodView]:
    """Return the pods beyond the partition in update order, including updated ones."""
    if not strategy.unordered:
        return [slot.pod for slot in reversed(state.slots[strategy.partition :]) if slot.pod is not None]
    pods = _pods_by_descending_ordinal(state)

    def is_updated(pod: PodView) -> bool:
        is_prepared = lifecycle.state_of(pod) == LifecycleState.PREPARING_UPDATE
        return not state.is_outdated(pod) or (counts_prepared and is_prepared)

    outdated = [pod for pod in pods if not is_updated(pod)]
    updated = [pod for pod in pods if is_updated(pod)]
    to_create = sum(slot.pod is None and slot.ordinal not in state.current_ordinals for slot in state.slots)
    count = max(len(state.slots) - strategy.partition - to_create, 0)
    return [*updated, *by_priority(outdated, strategy.priority)][:count]


# --- actions


def _update_pods(
    state: StatefulSetState,
    strategy: UpdateStrategy,
    budget: _UnavailabilityBudget,
    ordered: Sequence[PodView],
    specified: Sequence[PodView],
) -> RolloutResult:
    patches: list[Action] = []
    in_place: list[PodView] = []
    to_recreate: list[PodView] = []
    for pod in ordered:
        if not state.is_outdated(pod):
            continue
        if not budget.reserve(pod):
            break
        if pod in specified or record.has_delayed_change(pod):
            continue  # a pod that is being changed is changed again later
        pod_update = _update_step(state, strategy, pod)
        if pod_update.method is ReplacementMethod.REFUSED:
            break
        patches += pod_update.patches
        (in_place if pod_update.method is ReplacementMethod.IN_PLACE else to_recreate).append(pod)
    removed = _delete_pods(state, to_recreate)
    return RolloutResult((*patches, *removed.actions), (*in_place, *removed.replaced))


def _delete_pods(state: StatefulSetState, pods: Sequence[PodView]) -> RolloutResult:
    """Delete the pods, except those that a lifecycle hook holds: they are patched to prepare their deletion."""
    hold_patches = {pod: state.pod_handling.hold_patches(pod) for pod in pods}
    to_delete = tuple(pod for pod, patches in hold_patches.items() if patches is None)
    patches = [
        patch for pod_patches in hold_patches.values() if pod_patches is not None for patch in pod_patches
    ]
    return RolloutResult((*patches, *status.deletion(state.owner, to_delete)), to_delete)


# --- the update of one pod


class ReplacementMethod(Enum):
    IN_PLACE = auto()
    RECREATE = auto()
    REFUSED = auto()
    """The pod must be updated in place but cannot be: the rollout stops here."""


class UpdateStep(NamedTuple):
    method: ReplacementMethod
    patches: tuple[Patch, ...] = ()


def _update_step(state: StatefulSetState, strategy: UpdateStrategy, pod: PodView) -> UpdateStep:
    if strategy.policy is PodUpdatePolicy.RECREATE:
        return UpdateStep(ReplacementMethod.RECREATE)
    change = _change(state, pod)
    if change is None:
        return UpdateStep(
            ReplacementMethod.REFUSED
            if strategy.policy is PodUpdatePolicy.IN_PLACE_ONLY
            else ReplacementMethod.RECREATE
        )
    if lifecycle.state_of(pod) == LifecycleState.PREPARING_DELETE:
        return UpdateStep(ReplacementMethod.REFUSED)
    order = update.UpdateRequest(
        change=change,
        labels={LABEL_CONTROLLER_REVISION_HASH: state.update_name},
        grace_seconds=strategy.grace_seconds,
    )
    hooks = Lifecycle.of(state.owner.object["spec"])
    return UpdateStep(
        ReplacementMethod.IN_PLACE,
        update.start_or_prepare_update(pod, hooks, order, state.now, _event_template(state)),
    )


def _change(state: StatefulSetState, pod: PodView) -> TemplateChange | None:
    """Return the in-place change of the pod; None if it is impossible or the history lacks the pod's revision."""
    name = identity.revision_of(pod)
    old = next((revision for revision in state.history if meta.name(revision) == name), None)
    if old is None:
        return None
    return change_between(template_of(old), template_of(state.update), state.update_name)


def _event_template(state: StatefulSetState) -> EventTemplate:
    subject = f"update pod {{name}} in-place(revision {state.update_name})"
    return EventTemplate(
        about=state.owner.object,
        on_success=("SuccessfulUpdatePodInPlace", f"successfully {subject}"),
        on_failure=("FailedUpdatePodInPlace", f"failed to {subject}: {{error}}"),
    )
