"""What a PodDisruptionBudget allows: counts of pods, pure, from its spec and the pods that it selects."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, intstr, meta
from mockube.apimachinery.timestamps import after, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.controllers.disruption import scale
from mockube.controller_manager.controllers.disruption.scale import ExpectedScale

DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""For so long an evicted pod counts as deleted, though its deletion has not been seen."""

CONDITION: Final = "DisruptionAllowed"


class DisruptedPods(NamedTuple):
    """Pods that were evicted and are not deleting yet, by name and since when."""

    expected: Mapping[str, str]
    overdue: tuple[PodView, ...]
    """They were not deleted in time, and count again."""
    next_check: datetime | None


def disrupted_pods(budget: ReadOnlyTree, pods: Collection[PodView], now: datetime) -> DisruptedPods:
    evicted = (budget.get("status") or {}).get("disruptedPods") or {}
    staying = {pod.key.name: pod for pod in pods if not pod.deleting}
    waiting = {
        name: after(parse_time(evicted[name]), DELETION_TIMEOUT) for name in evicted if name in staying
    }
    overdue = tuple(staying[name] for name, until in waiting.items() if until <= now)
    expected = {name: evicted[name] for name, until in waiting.items() if until > now}
    return DisruptedPods(expected, overdue, min((waiting[name] for name in expected), default=None))


class DesiredHealthy(NamedTuple):
    expected_pods: int
    desired_healthy: int
    unmanaged: bool


def desired_healthy(caches: Caches, budget: ReadOnlyTree, pods: Collection[PodView]) -> DesiredHealthy:
    """How many there should be, and how many of them must be healthy; or `UnknownScaleError`."""
    most_missing = budget["spec"].get("maxUnavailable")
    minimum = budget["spec"].get("minAvailable")
    if most_missing is not None:
        expected_scale = scale.expected_scale(caches, pods)
        missing = intstr.scaled_value(most_missing, expected_scale.replicas, round_up=True)
        return DesiredHealthy(
            expected_scale.replicas, max(expected_scale.replicas - missing, 0), expected_scale.unmanaged
        )
    if isinstance(minimum, int):
        return DesiredHealthy(len(pods), minimum, unmanaged=False)
    expected_scale = (
        ExpectedScale(0, unmanaged=False) if minimum is None else scale.expected_scale(caches, pods)
    )
    desired = intstr.scaled_value(minimum or 0, expected_scale.replicas, round_up=True)
    return DesiredHealthy(expected_scale.replicas, desired, expected_scale.unmanaged)


def status(
    budget: ReadOnlyTree,
    pods: Collection[PodView],
    counts: DesiredHealthy,
    evicted: Mapping[str, str],
    now: datetime,
) -> dict[str, Any]:
    healthy = sum(pod.is_ready and not pod.deleting and pod.key.name not in evicted for pod in pods)
    # A budget that selects no pod yet allows no disruption: its first pods may be created before it is counted again.
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
    """Without a count no disruption is allowed; the other fields stay."""
    old = budget.get("status") or {}
    condition = _Condition("False", "SyncFailed", problem)
    budget_status = _conditions(budget, condition, old.get("observedGeneration") or 0, now)
    return {**old, "disruptionsAllowed": 0, "conditions": budget_status}


class _Condition(NamedTuple):
    status: str
    reason: str
    message: str = ""


_SUFFICIENT: Final = _Condition("True", "SufficientPods")
_INSUFFICIENT: Final = _Condition("False", "InsufficientPods")


def _conditions(
    budget: ReadOnlyTree, condition: _Condition, generation: int, now: datetime
) -> list[ReadOnlyTree]:
    budget_status = {"type": CONDITION, "observedGeneration": generation, **condition._asdict()}
    return conditions.set_condition(conditions.of(budget), budget_status, now)
