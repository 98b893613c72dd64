"""The StatefulSet controller: its watches, its rolling update, and its differences from the Advanced StatefulSet."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from mockube.apimachinery import intstr
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from mockube.client.podview import PodView
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of, owner_of_pod
from mockube.controller_manager.workloads.stateful import identity, status
from mockube.controller_manager.workloads.stateful.reconciliation import (
    ReconcileResult,
    RolloutResult,
    StatefulSetKind,
    reconcile,
)
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import DefaultPodHandling, Slot, StatefulSetState

from . import recreation

_MAX_UNAVAILABLE: Final = "MaxUnavailableStatefulSet"
_COMPLETES_EVERY_UPDATE: Final = "1.37"
"""The minor release since which updates with OnDelete end, too."""
_KEEPS_CONDITIONS: Final = "1.37"
_REPLACES_UNAVAILABLE_PODS_FIRST: Final = "1.37"


def _default_pod_handling(*_: object) -> DefaultPodHandling:
    return DefaultPodHandling()


def _current_ordinals(owner: SetView, _: Sequence[Slot], __: str) -> range:
    if owner.partition is not None:
        count = owner.partition
    else:
        is_rolling = not owner.on_delete and not owner.recreates
        count = (owner.status.get("currentReplicas") or 0) if is_rolling else 0
    return range(owner.start, owner.start + count)


def _status(state: StatefulSetState, result: ReconcileResult) -> dict[str, Any]:
    counts = status.count_pods(state, result.collision_count, result.replaced)
    if state.owner.on_delete and state.gates.is_before(_COMPLETES_EVERY_UPDATE):
        return counts
    completed = status.complete_update(counts, state.owner.replicas)
    return recreation.with_progress(state, completed, result.error)


# --- rolling update: outdated pods to delete


def _rolling_update(state: StatefulSetState) -> RolloutResult:
    if state.owner.on_delete or recreation.is_used(state):
        return RolloutResult()
    pods = _pods_to_update(state)
    return RolloutResult(status.deletion(state.owner, pods), tuple(pods))


def _pods_to_update(state: StatefulSetState) -> list[PodView]:
    """Return the outdated pods to delete now, the highest ordinal first."""
    if not state.gates.is_on(_MAX_UNAVAILABLE):
        return _next_outdated(state)
    candidates = [slot.pod for slot in _rolling_slots(state) if slot.pod and _is_replaceable(state, slot.pod)]
    budget = _max_unavailable(state.owner) - sum(state.is_unavailable(slot.pod) for slot in state.slots)
    if not state.owner.parallel or state.gates.is_before(_REPLACES_UNAVAILABLE_PODS_FIRST):
        return candidates[: max(budget, 0)]
    # Replacing an unavailable pod does not reduce availability; a parallel set does not wait for an order.
    unavailable = [pod for pod in candidates if state.is_unavailable(pod)]
    available = [pod for pod in candidates if not state.is_unavailable(pod)]
    return unavailable + available[: max(budget, 0)]


def _is_replaceable(state: StatefulSetState, pod: PodView) -> bool:
    """Return whether the rolling update deletes the pod: an ended pod is deleted by the same reconciliation anyway."""
    return state.is_outdated(pod) and not pod.is_terminal


def _next_outdated(state: StatefulSetState) -> list[PodView]:
    """Return at most one pod, the next outdated one. An unavailable updated pod blocks those with lower ordinals."""
    for slot in _rolling_slots(state):
        if slot.pod is not None and _is_replaceable(state, slot.pod):
            return [slot.pod]
        if state.is_unavailable(slot.pod):
            break
    return []


def _rolling_slots(state: StatefulSetState) -> list[Slot]:
    """Return the slots from the highest ordinal down to the partition, which counts from the first pod."""
    partition = state.owner.partition or 0
    return [*reversed(state.slots[partition:])]


def _max_unavailable(owner: SetView) -> int:
    limit = 1 if owner.max_unavailable is None else owner.max_unavailable
    return max(intstr.scaled_value(limit, owner.replicas, round_up=False), 1)


_STATEFUL_SET_KIND: Final = StatefulSetKind(
    resource=STATEFUL_SETS,
    view=partial(SetView.of, STATEFUL_SETS),
    pod_handling=_default_pod_handling,
    current_ordinals=_current_ordinals,
    roll=_rolling_update,
    status=_status,
    prepare=recreation.prepare,
    semantic_comparison_gate="StatefulSetSemanticRevisionComparison",
    keeps_conditions_since=_KEEPS_CONDITIONS,
)

STATEFUL_SET: Final = Controller(
    name="statefulset-controller",
    queue="statefulset",
    service_account="statefulset-controller",
    watches=identity.watches_of(STATEFUL_SETS),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
    },
    reconcile=partial(reconcile, _STATEFUL_SET_KIND),
    workers=5,
)
