"""The in-place resize of a running pod: whether the node has enough resources, and the resulting statuses.

Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.quantity import number_or
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.pod_requests import CPU, MEMORY, Amounts, pod_requests

from .container import restart_container
from .container_status import Container, assigned_resources, running_since
from .run_ends import load_of

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
RETRY_PERIOD: Final = timedelta(seconds=30)
"""The delay after which a deferred resize is retried."""


class NodeResources(Struct, frozen=True, kw_only=True):
    """A node's allocatable amounts and the requests of its other pods, computed only when a pod is resized."""

    allocatable: Callable[[], Amounts]
    used: Callable[[], Amounts]
    limits_resizes: bool = False
    """Whether the kubelet calls a resize beyond its node's capacity infeasible; since 1.36 the API server refuses it."""


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
    """Resize the running containers if the node has enough resources; return their statuses and the pod's conditions."""
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
    problem = _decrease_problem(containers, statuses, now)
    resize_conditions = conditions.set_condition(
        _present_conditions(pod, IN_PROGRESS), _resize_condition(pod, IN_PROGRESS, problem), now
    )
    if problem:
        return ResizeResult(
            statuses=statuses, conditions=[*others, *resize_conditions], due=now + RETRY_PERIOD
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


def allocated_spec(pod: ReadOnlyTree) -> ReadOnlyTree:
    """Return a pod's spec with the containers' allocated resources in place of those that a pending resize requests."""
    status = pod.get("status") or {}
    requests = {
        container_status["name"]: container_status["allocatedResources"]
        for name in ("containerStatuses", "initContainerStatuses")
        for container_status in status.get(name) or ()
        if container_status.get("allocatedResources")
    }
    return with_requests(pod["spec"], requests) if requests else pod["spec"]


def with_requests(spec: ReadOnlyTree, requests: Mapping[str, ReadOnlyTree]) -> ReadOnlyTree:
    """Return the spec with other requests of some containers, by their names."""

    def change(container: ReadOnlyTree) -> ReadOnlyTree:
        resources = {**(container.get("resources") or {}), "requests": requests[container["name"]]}
        return {**container, "resources": resources}

    return {
        **spec,
        **{
            name: [
                change(container) if container["name"] in requests else container
                for container in spec.get(name) or ()
            ]
            for name in ("containers", "initContainers")
        },
    }


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
    requested, allocatable = pod_requests(pod["spec"]), resources.allocatable()
    for name in (MEMORY, CPU) if resources.limits_resizes else ():
        if requested[name] > allocatable[name]:
            counts = f"requested: {requested[name]}, capacity: {allocatable[name]}"
            return {
                "reason": "Infeasible",
                "message": f"Node didn't have enough capacity: {name}, {counts}",
            }
    used = resources.used()
    for name in (CPU, MEMORY):
        if requested[name] and requested[name] + used[name] > allocatable[name]:
            counts = f"requested: {requested[name]}, used: {used[name]}, capacity: {allocatable[name]}"
            return {"reason": "Deferred", "message": f"Node didn't have enough resource: {name}, {counts}"}
    return {}


def _decrease_problem(
    containers: Sequence[Container], statuses: Sequence[ReadOnlyTree], now: datetime
) -> Mapping[str, str]:
    """Return the condition's reason and message if a container uses more memory than its new limit; else empty."""
    problems = [
        f'attempting to set container "{container.name}" memory limit ({limit:.0f}) below current usage ({usage:.0f})'
        for container, status in zip(containers, statuses, strict=True)
        if (limit := _decreased_limit(container, status)) is not None
        and (usage := _memory_in_use(container, status, now)) >= limit
    ]
    if not problems:
        return {}
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return {"reason": "Error", "message": f"cannot decrease memory limits: {text}"}


def _decreased_limit(container: Container, status: ReadOnlyTree) -> float | None:
    """Return the memory limit of a running container that a resize adds or decreases; None if there is no such limit."""
    policies = {
        policy["resourceName"]: policy["restartPolicy"] for policy in container.spec.get("resizePolicy") or ()
    }
    if running_since(status) is None or policies.get("memory") == "RestartContainer":
        return None
    desired, present = (
        number_or(((resources or {}).get("limits") or {}).get("memory"), inf)
        for resources in (container.spec.get("resources"), status.get("resources"))
    )
    return desired if desired < present else None


def _memory_in_use(container: Container, status: ReadOnlyTree, now: datetime) -> float:
    started = running_since(status)
    load = load_of(container, container.program)
    return 0.0 if started is None else load.memory_at((now - started).total_seconds())


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
