"""The in-place resize of a running pod: whether the node has enough resources, and the resulting statuses.

Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta, quantity
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.container import restart_container
from mockube.controller_manager.kubelet.pod_lifecycle.container_status import (
    Container,
    assigned_resources,
    running_since,
)

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
RETRY_PERIOD: Final = timedelta(seconds=30)
"""The delay after which a deferred resize is retried."""

Amounts = Mapping[str, Quantity]
_SCALES: Final[Mapping[str, int]] = {"cpu": quantity.MILLI}
"""The units of the amounts in upstream's messages; other resources have the unit 1."""


class NodeResources(Struct, frozen=True, kw_only=True):
    """A node's allocatable amounts and the requests of its other pods, computed only when a pod is resized."""

    allocatable: Callable[[], Amounts]
    used: Callable[[], Amounts]


class ResizeResult(Struct, frozen=True, kw_only=True):
    statuses: Sequence[ReadOnlyTree]
    conditions: Sequence[ReadOnlyTree]
    due: datetime | None = None


def resize(
    pod: ReadOnlyTree,
    containers: Sequence[Container],
    statuses: Sequence[ReadOnlyTree],
    resources: NodeResources,
    now: datetime,
) -> ResizeResult:
    """Resize the containers if the node has enough resources; return their statuses and the pod's conditions."""
    others = [
        condition for condition in conditions.of(pod) if condition["type"] not in (PENDING, IN_PROGRESS)
    ]
    resized = [
        _has_other_resources(container, status)
        for container, status in zip(containers, statuses, strict=True)
    ]
    if not any(resized):
        return ResizeResult(statuses=statuses, conditions=others)
    refusal = _refusal(pod, resources)
    if refusal:
        resize_conditions = conditions.set_condition(
            _present_conditions(pod, PENDING), _resize_condition(pod, PENDING, refusal), now
        )
        due = now + RETRY_PERIOD if refusal["reason"] == "Deferred" else None
        return ResizeResult(statuses=statuses, conditions=[*others, *resize_conditions], due=due)
    resize_conditions = conditions.set_condition(
        _present_conditions(pod, IN_PROGRESS), _resize_condition(pod, IN_PROGRESS, {}), now
    )
    due = after(
        parse_time(resize_conditions[0]["lastTransitionTime"]), span_of(containers[0].script.resize_after)
    )
    if due > now and containers[0].script.resize_after:
        return ResizeResult(statuses=statuses, conditions=[*others, *resize_conditions], due=due)
    new = [
        _apply(container, status, now) if is_resized else status
        for container, status, is_resized in zip(containers, statuses, resized, strict=True)
    ]
    return ResizeResult(statuses=new, conditions=others)


def total_requests(pods: Iterable[ReadOnlyTree]) -> dict[str, Quantity]:
    """Return the sum of the requests of all main containers of the pods."""
    total: dict[str, Quantity] = {}
    for pod in pods:
        for container in pod["spec"]["containers"]:
            requests = (container.get("resources") or {}).get("requests") or {}
            for name, amount in requests.items():
                total[name] = total.get(name, quantity.ZERO) + quantity.from_json(amount)
    return total


def _has_other_resources(container: Container, status: ReadOnlyTree) -> bool:
    if running_since(status) is None:
        return False
    return bool(assigned_resources(container.spec)["resources"] != (status.get("resources") or {}))


def _present_conditions(pod: ReadOnlyTree, condition_type: str) -> list[ReadOnlyTree]:
    present = conditions.get(pod, condition_type)
    return [present] if present else []


def _resize_condition(pod: ReadOnlyTree, condition_type: str, details: Mapping[str, str]) -> dict[str, Any]:
    return {"type": condition_type, "status": "True", "observedGeneration": meta.generation(pod), **details}


def _refusal(pod: ReadOnlyTree, resources: NodeResources) -> Mapping[str, str]:
    """Return the condition's reason and message if the node cannot resize the pod: Infeasible or Deferred; else empty."""
    requested, allocatable = total_requests([pod]), resources.allocatable()
    for name, amount in requested.items():
        capacity = allocatable.get(name, quantity.ZERO)
        if amount > capacity:
            counts = f"requested: {_count(name, amount)}, capacity: {_count(name, capacity)}"
            return {
                "reason": "Infeasible",
                "message": f"Node didn't have enough capacity: {name}, {counts}",
            }
    used = resources.used()
    for name, amount in requested.items():
        used_amount, capacity = used.get(name, quantity.ZERO), allocatable.get(name, quantity.ZERO)
        if amount + used_amount > capacity:
            counts = f"requested: {_count(name, amount)}, used: {_count(name, used_amount)}, capacity: {_count(name, capacity)}"
            return {"reason": "Deferred", "message": f"Node didn't have enough resource: {name}, {counts}"}
    return {}


def _count(name: str, amount: Quantity) -> int:
    return amount.scaled_value(_SCALES.get(name, 0))


def _apply(container: Container, status: ReadOnlyTree, now: datetime) -> ReadOnlyTree:
    assigned = assigned_resources(container.spec)
    changed_names = _changed_names(assigned["resources"], status.get("resources") or {})
    policies = {
        policy["resourceName"]: policy["restartPolicy"] for policy in container.spec.get("resizePolicy") or ()
    }
    if any(policies.get(name) == "RestartContainer" for name in changed_names):
        return restart_container(container, status, now)
    others = {
        field: value for field, value in status.items() if field not in ("allocatedResources", "resources")
    }
    return {**others, **assigned}


def _changed_names(desired: ReadOnlyTree, present: ReadOnlyTree) -> set[str]:
    fields = {*desired, *present}
    pairs = [(desired.get(field) or {}, present.get(field) or {}) for field in fields]
    return {name for new, old in pairs for name in {*new, *old} if new.get(name) != old.get(name)}
