"""Which outdated pods of a StatefulSet make room for the update."""

from mockube.apimachinery import intstr
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.workloads.stateful import status
from mockube.controller_manager.workloads.stateful.reconciliation import RolloutResult
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import Slot, StatefulSetState


def roll(state: StatefulSetState) -> RolloutResult:
    if state.owner.on_delete:
        return RolloutResult()
    refs = _pods_to_update(state)
    return RolloutResult(status.deletion(state.owner, refs), tuple(refs))


def _pods_to_update(state: StatefulSetState) -> list[PodView]:
    """The pods that make room now, the highest ordinal first."""
    if state.owner.max_unavailable is None:
        return _next_outdated(state)
    candidates = [slot.pod for slot in _rolling_slots(state) if slot.pod and state.is_outdated(slot.pod)]
    budget = _most_unavailable(state.owner) - sum(state.is_unavailable(slot.pod) for slot in state.slots)
    if not state.owner.parallel:
        return candidates[: max(budget, 0)]
    # Unavailable pods are replaced at no cost; in parallel no other pod has waited for them.
    free = [pod for pod in candidates if state.is_unavailable(pod)]
    costly = [pod for pod in candidates if not state.is_unavailable(pod)]
    return free + costly[: max(budget, 0)]


def _next_outdated(state: StatefulSetState) -> list[PodView]:
    """One at a time; an updated pod that is not available holds up those below it."""
    for slot in _rolling_slots(state):
        if slot.pod is not None and state.is_outdated(slot.pod):
            return [slot.pod]
        if state.is_unavailable(slot.pod):
            break
    return []


def _rolling_slots(state: StatefulSetState) -> list[Slot]:
    """From the highest ordinal down to the partition, which counts from the first pod."""
    partition = state.owner.partition or 0
    return [*reversed(state.slots[partition:])]


def _most_unavailable(owner: SetView) -> int:
    limit = 1 if owner.max_unavailable is None else owner.max_unavailable
    return max(intstr.scaled_value(limit, owner.replicas, round_up=False), 1)
