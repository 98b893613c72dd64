"""The controller of StatefulSets: what it watches, in what its sets differ from others, and their rolling update."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from mockube.apimachinery import intstr
from mockube.controller_manager.client.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.workloads.ownership import BY_OWNER, owner_of, owner_of_pod
from mockube.controller_manager.workloads.stateful import identity, status
from mockube.controller_manager.workloads.stateful.reconciliation import (
    Account,
    Kind,
    RolloutResult,
    reconcile,
)
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import DefaultPodHandling, Slot, StatefulSetState


def _no_customs(*_: object) -> DefaultPodHandling:
    return DefaultPodHandling()


def _current_ordinals(owner: SetView, _: Sequence[Slot], __: str) -> range:
    if owner.partition is not None:
        count = owner.partition
    else:
        count = 0 if owner.on_delete else owner.status.get("currentReplicas") or 0
    return range(owner.start, owner.start + count)


def _status(state: StatefulSetState, account: Account) -> dict[str, Any]:
    counted = status.count_pods(state, account.collision_count, account.replaced)
    return counted if state.owner.on_delete else status.complete_update(counted, state.owner.replicas)


# --- which outdated pods make room for the update


def _roll(state: StatefulSetState) -> RolloutResult:
    if state.owner.on_delete:
        return RolloutResult()
    refs = _pods_to_update(state)
    return RolloutResult(status.deletion(state.owner, refs), tuple(refs))


def _pods_to_update(state: StatefulSetState) -> list[PodView]:
    """The pods that make room now, the highest ordinal first."""
    if state.owner.max_unavailable is None:
        return _next_outdated(state)
    candidates = [slot.pod for slot in _rolling_slots(state) if slot.pod and _makes_room(state, slot.pod)]
    budget = _most_unavailable(state.owner) - sum(state.is_unavailable(slot.pod) for slot in state.slots)
    if not state.owner.parallel:
        return candidates[: max(budget, 0)]
    # Unavailable pods are replaced at no cost; in parallel no other pod has waited for them.
    free = [pod for pod in candidates if state.is_unavailable(pod)]
    costly = [pod for pod in candidates if not state.is_unavailable(pod)]
    return free + costly[: max(budget, 0)]


def _makes_room(state: StatefulSetState, pod: PodView) -> bool:
    """A pod that has ended is deleted already, in the same reconciliation, because it has ended."""
    return state.is_outdated(pod) and not pod.is_terminal


def _next_outdated(state: StatefulSetState) -> list[PodView]:
    """One at a time; an updated pod that is not available holds up those below it."""
    for slot in _rolling_slots(state):
        if slot.pod is not None and _makes_room(state, slot.pod):
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


_KIND: Final = Kind(
    resource=STATEFUL_SETS,
    view=partial(SetView.of, STATEFUL_SETS),
    pod_handling=_no_customs,
    current_ordinals=_current_ordinals,
    roll=_roll,
    status=_status,
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
    reconcile=partial(reconcile, _KIND),
    workers=5,
)
