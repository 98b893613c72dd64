"""The pods that a kubelet preempts for a critical one, and their status.

Pure. Upstream: pkg/kubelet/preemption.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.order import grace_seconds
from mockube.controller_manager.workloads.pod_requests import CPU, MEMORY, PODS, Amounts

PREEMPTING: Final = "Preempting"
MESSAGE: Final = "Preempted in order to admit critical pod"
_TARGET: Final = {
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


class Candidate(NamedTuple):
    uid: str
    qos_class: str
    """Its QoS class."""
    requested: Amounts

    def amount(self, name: str) -> int:
        return 1 if name == PODS else self.requested[name]


class NothingToPreempt(Exception):
    pass


def is_critical(pod: ReadOnlyTree) -> bool:
    return (pod["spec"].get("priority") or 0) >= _CRITICAL_PRIORITY or _MIRROR in meta.annotations(pod)


def is_preemptable(preemptor: ReadOnlyTree, pod: ReadOnlyTree) -> bool:
    if is_critical(preemptor) and not is_critical(pod):
        return True
    own, other = (tree["spec"].get("priority") for tree in (preemptor, pod))
    return own is not None and other is not None and own > other


def pods_to_preempt(candidates: Sequence[Candidate], shortage: Shortage) -> list[Candidate]:
    """Return the fewest pods that cover a shortage, by QoS class: BestEffort pods first."""
    best_effort, burstable, guaranteed = (
        [candidate for candidate in candidates if candidate.qos_class == qos_class]
        for qos_class in ("BestEffort", "Burstable", "Guaranteed")
    )
    lacking = _reduce_shortage(shortage, [*best_effort, *burstable, *guaranteed])
    if lacking:
        raise NothingToPreempt(_shortage_message(lacking))
    from_guaranteed = _choose_nearest(guaranteed, _reduce_shortage(shortage, [*best_effort, *burstable]))
    from_burstable = _choose_nearest(burstable, _reduce_shortage(shortage, [*best_effort, *from_guaranteed]))
    from_best_effort = _choose_nearest(
        best_effort, _reduce_shortage(shortage, [*from_burstable, *from_guaranteed])
    )
    return [*from_best_effort, *from_burstable, *from_guaranteed]


def _choose_nearest(candidates: list[Candidate], shortage: Shortage) -> list[Candidate]:
    """Choose the pod that leaves least of the shortage, again and again until it is covered."""
    remaining, chosen = list(candidates), []
    while shortage:
        best = min(
            remaining,
            key=lambda candidate: (
                _distance(candidate, shortage),
                candidate.amount(MEMORY),
                candidate.amount(CPU),
            ),
        )
        chosen.append(best)
        remaining.remove(best)
        shortage = _reduce_shortage(shortage, [best])
    return chosen


def _distance(candidate: Candidate, shortage: Shortage) -> float:
    parts = ((amount - candidate.amount(name)) / amount for name, amount in shortage.items())
    return sum(part * part for part in parts if part > 0)


def _reduce_shortage(shortage: Shortage, freed: Sequence[Candidate]) -> Shortage:
    remaining = {
        name: amount - sum(candidate.amount(name) for candidate in freed) for name, amount in shortage.items()
    }
    return {name: amount for name, amount in remaining.items() if amount > 0}


def _shortage_message(lacking: Shortage) -> str:
    amounts = "".join(f"(res: {name}, q: {amount}), " for name, amount in lacking.items())
    return f"no set of running pods found to reclaim resources: [{amounts}]"


def preempted_status(pod: ReadOnlyTree, status: ReadOnlyTree, now: datetime) -> dict[str, Any]:
    """The status of a pod that was ended, with the reason."""
    target = {**_TARGET, "observedGeneration": meta.generation(pod)}
    updated = conditions.set_condition(list(status["conditions"]), target, now)
    return {**status, "conditions": updated, "reason": PREEMPTING, "message": MESSAGE}


def kill_timeout(pod: ReadOnlyTree) -> float:
    """For how many seconds a kubelet waits until a pod is killed."""
    return max(grace_seconds(pod) * 1.5, _MIN_KILL_SECONDS)
