"""The status of a PodDisruptionBudget, from its spec and the pods that it selects."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, intstr, meta
from mockube.apimachinery.timestamps import after, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.podview import PodView

from . import scale
from .scale import ExpectedScale

DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""The time for which an evicted pod counts as deleted, although it is not being deleted yet."""

CONDITION: Final = "DisruptionAllowed"


class DisruptedPods(NamedTuple):
    """The pods that were evicted and are not being deleted yet."""

    expected: Mapping[str, str]
    """The times of eviction by the names of pods whose deletion is expected."""
    overdue: tuple[PodView, ...]
    """The pods that were not deleted in time; they count as healthy again."""
    next_check: datetime | None


def disrupted_pods(budget: ReadOnlyTree, pods: Collection[PodView], now: datetime) -> DisruptedPods:
    evicted = (budget.get("status") or {}).get("disruptedPods") or {}
    remaining_pods = {pod.key.name: pod for pod in pods if not pod.deleting}
    deadlines = {
        name: after(parse_time(evicted[name]), DELETION_TIMEOUT) for name in evicted if name in remaining_pods
    }
    overdue = tuple(remaining_pods[name] for name, deadline in deadlines.items() if deadline <= now)
    expected = {name: evicted[name] for name, deadline in deadlines.items() if deadline > now}
    return DisruptedPods(expected, overdue, min((deadlines[name] for name in expected), default=None))


class DesiredHealthy(NamedTuple):
    expected_pods: int
    desired_healthy: int
    unmanaged: bool


def desired_healthy(caches: Caches, budget: ReadOnlyTree, pods: Collection[PodView]) -> DesiredHealthy:
    """Return the expected number of pods, and how many must be healthy; raise `UnknownScaleError`."""
    max_unavailable = budget["spec"].get("maxUnavailable")
    min_available = budget["spec"].get("minAvailable")
    if max_unavailable is not None:
        expected_scale = scale.expected_scale(caches, pods)
        unavailable = intstr.scaled_value(max_unavailable, expected_scale.replicas, round_up=True)
        return DesiredHealthy(
            expected_scale.replicas, max(expected_scale.replicas - unavailable, 0), expected_scale.unmanaged
        )
    if isinstance(min_available, int):
        return DesiredHealthy(len(pods), min_available, unmanaged=False)
    expected_scale = (
        ExpectedScale(0, unmanaged=False) if min_available is None else scale.expected_scale(caches, pods)
    )
    desired = intstr.scaled_value(min_available or 0, expected_scale.replicas, round_up=True)
    return DesiredHealthy(expected_scale.replicas, desired, expected_scale.unmanaged)


def status(
    budget: ReadOnlyTree,
    pods: Collection[PodView],
    counts: DesiredHealthy,
    evicted: Mapping[str, str],
    now: datetime,
) -> dict[str, Any]:
    healthy = sum(pod.is_ready and not pod.deleting and pod.key.name not in evicted for pod in pods)
    # A budget without pods allows no disruption: its first pods may exist before they are counted.
    allowed = max(healthy - counts.desired_healthy, 0) if counts.expected_pods > 0 else 0
    generation = meta.generation(budget)
    budget_status = {
        "observedGeneration": generation,
        **({"disruptedPods": dict(evicted)} if evicted else {}),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": counts.desired_healthy,
        "expectedPods": counts.expected_pods,
    }
    condition = _SUFFICIENT if allowed else _INSUFFICIENT
    return budget_status | {"conditions": _conditions(budget, condition, generation, now)}


def failed_status(budget: ReadOnlyTree, problem: str, now: datetime) -> dict[str, Any]:
    """Return the status after a failure: no disruption is allowed, and the other fields do not change."""
    old = budget.get("status") or {}
    condition = _Condition("False", "SyncFailed", problem)
    new_conditions = _conditions(budget, condition, old.get("observedGeneration") or 0, now)
    return {**old, "disruptionsAllowed": 0, "conditions": new_conditions}


class _Condition(NamedTuple):
    status: str
    reason: str
    message: str = ""


_SUFFICIENT: Final = _Condition("True", "SufficientPods")
_INSUFFICIENT: Final = _Condition("False", "InsufficientPods")


def _conditions(
    budget: ReadOnlyTree, condition: _Condition, generation: int, now: datetime
) -> list[ReadOnlyTree]:
    new_condition = {"type": CONDITION, "observedGeneration": generation, **condition._asdict()}
    return conditions.set_condition(conditions.of(budget), new_condition, now)
