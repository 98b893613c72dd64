"""The total requests and limits of a pod, including a resize in progress (component-helpers' PodRequests, PodLimits)."""

from collections.abc import Callable, Mapping
from typing import Any

from mockube.apimachinery.pods import container_total, is_pod_level
from mockube.apimachinery.quota.amounts import Amounts, add, maximum, read
from mockube.apimachinery.tree import ReadOnlyTree

_Effective = Callable[[ReadOnlyTree, ReadOnlyTree | None], Amounts]
"""A function from a container, and its status if that has resources, to the container's amounts."""


def pod_requests(pod: ReadOnlyTree) -> Amounts:
    infeasible = _is_resize_infeasible(pod)

    def effective(container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts:
        requests = read((container.get("resources") or {}).get("requests"))
        if status is None:
            return requests
        granted = maximum(read(status["resources"].get("requests")), read(status.get("allocatedResources")))
        return granted if infeasible else maximum(requests, granted)

    spec = pod.get("spec") or {}
    total = {**_amounts_of_containers(pod, effective), **_pod_level_amounts(spec, "requests")}
    return add(total, read(spec.get("overhead")))


def pod_limits(pod: ReadOnlyTree) -> Amounts:
    infeasible = _is_resize_infeasible(pod)

    def effective(container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts:
        limits = read((container.get("resources") or {}).get("limits"))
        if status is None:
            return limits
        actual = read(status["resources"].get("limits"))
        return actual if infeasible else maximum(limits, actual)

    spec = pod.get("spec") or {}
    total = {**_amounts_of_containers(pod, effective), **_pod_level_amounts(spec, "limits")}
    overhead = read(spec.get("overhead"))
    return add(total, {name: amount for name, amount in overhead.items() if total.get(name)})


def has_pod_level(spec: ReadOnlyTree) -> bool:
    """Return whether the pod has pod-level resources, so that its containers need none."""
    return bool(_pod_level_amounts(spec, "requests") or _pod_level_amounts(spec, "limits"))


def _pod_level_amounts(spec: ReadOnlyTree, field: str) -> Amounts:
    amounts = (spec.get("resources") or {}).get(field)
    return {name: amount for name, amount in read(amounts).items() if is_pod_level(name)}


def _amounts_of_containers(pod: ReadOnlyTree, effective: _Effective) -> Amounts:
    """Return the total of the containers. The status of an init container that ends does not count."""
    statuses = _statuses(pod)

    def amounts_of(container: ReadOnlyTree, runs_on: bool) -> Amounts:  # noqa: FBT001 - see container_total
        return effective(container, statuses.get(container.get("name", "")) if runs_on else None)

    return container_total(pod.get("spec") or {}, amounts_of)


def _statuses(pod: ReadOnlyTree) -> Mapping[str, ReadOnlyTree]:
    status: Mapping[str, Any] = pod.get("status") or {}
    container_statuses = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    return {
        container_status.get("name", ""): container_status
        for container_status in container_statuses
        if container_status.get("resources") is not None
    }


def _is_resize_infeasible(pod: ReadOnlyTree) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False
