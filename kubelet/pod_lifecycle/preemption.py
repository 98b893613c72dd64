"""The pods that a kubelet preempts for a critical pod, and their status.

Pure. Upstream: pkg/kubelet/preemption.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.pod_requests import CPU, MEMORY, PODS, Amounts

from .containers import grace_seconds

PREEMPTING: Final = "Preempting"
PREEMPTED_MESSAGE: Final = "Preempted in order to admit critical pod"
_DISRUPTION_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "TerminationByKubelet",
    "message": "Pod was preempted by Kubelet to accommodate a critical pod.",
}
_CRITICAL_PRIORITY: Final = 2_000_000_000
_MIRROR: Final = "kubernetes.io/config.mirror"
_MIN_KILL_SECONDS: Final = 10.0

Shortage = Mapping[str, int]
"""Missing amounts by resource."""


class PreemptiblePod(NamedTuple):
    """A pod that may be preempted."""

    uid: str
    qos_class: str
    requested: Amounts

    def amount(self, name: str) -> int:
        return 1 if name == PODS else self.requested[name]


class NothingToPreempt(Exception):
    """The pods that may be preempted do not cover the shortage."""


def is_critical(pod: ReadOnlyTree) -> bool:
    return (pod["spec"].get("priority") or 0) >= _CRITICAL_PRIORITY or _MIRROR in meta.annotations(pod)


def is_preemptable(preemptor: ReadOnlyTree, pod: ReadOnlyTree) -> bool:
    if is_critical(preemptor) and not is_critical(pod):
        return True
    preemptor_priority, pod_priority = (tree["spec"].get("priority") for tree in (preemptor, pod))
    return preemptor_priority is not None and pod_priority is not None and preemptor_priority > pod_priority


def pods_to_preempt(candidates: Sequence[PreemptiblePod], shortage: Shortage) -> list[PreemptiblePod]:
    """Return the fewest pods that cover a shortage, by QoS class: BestEffort pods first."""
    best_effort, burstable, guaranteed = (
        [candidate for candidate in candidates if candidate.qos_class == qos_class]
        for qos_class in ("BestEffort", "Burstable", "Guaranteed")
    )
    remaining = _reduce_shortage(shortage, [*best_effort, *burstable, *guaranteed])
    if remaining:
        raise NothingToPreempt(_shortage_message(remaining))
    from_guaranteed = _choose_nearest(guaranteed, _reduce_shortage(shortage, [*best_effort, *burstable]))
    from_burstable = _choose_nearest(burstable, _reduce_shortage(shortage, [*best_effort, *from_guaranteed]))
    from_best_effort = _choose_nearest(
        best_effort, _reduce_shortage(shortage, [*from_burstable, *from_guaranteed])
    )
    return [*from_best_effort, *from_burstable, *from_guaranteed]


def _choose_nearest(candidates: list[PreemptiblePod], shortage: Shortage) -> list[PreemptiblePod]:
    """Choose pods until the shortage is covered: each time the pod that leaves the smallest part of it."""
    remaining, selected = list(candidates), []
    while shortage:
        best = min(
            remaining,
            key=lambda candidate: (
                _distance(candidate, shortage),
                candidate.amount(MEMORY),
                candidate.amount(CPU),
            ),
        )
        selected.append(best)
        remaining.remove(best)
        shortage = _reduce_shortage(shortage, [best])
    return selected


def _distance(candidate: PreemptiblePod, shortage: Shortage) -> float:
    parts = ((amount - candidate.amount(name)) / amount for name, amount in shortage.items())
    return sum(part * part for part in parts if part > 0)


def _reduce_shortage(shortage: Shortage, victims: Sequence[PreemptiblePod]) -> Shortage:
    remaining = {
        name: amount - sum(candidate.amount(name) for candidate in victims)
        for name, amount in shortage.items()
    }
    return {name: amount for name, amount in remaining.items() if amount > 0}


def _shortage_message(remaining: Shortage) -> str:
    amounts = "".join(f"(res: {name}, q: {amount}), " for name, amount in remaining.items())
    return f"no set of running pods found to reclaim resources: [{amounts}]"


def preempted_status(pod: ReadOnlyTree, status: ReadOnlyTree, now: datetime) -> dict[str, Any]:
    """Return the status of a stopped pod with the condition and the reason of its preemption."""
    target = {**_DISRUPTION_TARGET, "observedGeneration": meta.generation(pod)}
    new_conditions = conditions.set_condition(list(status["conditions"]), target, now)
    return {**status, "conditions": new_conditions, "reason": PREEMPTING, "message": PREEMPTED_MESSAGE}


def kill_timeout(pod: ReadOnlyTree) -> float:
    """Return the seconds that a kubelet waits for the end of a pod that it kills."""
    return max(grace_seconds(pod) * 1.5, _MIN_KILL_SECONDS)
