"""What a pod requests and is limited to in all, with its node's status of a resize in progress."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mockube.apimachinery.quota.amounts import Amounts, add, maximum, read
from mockube.apimachinery.tree import ReadOnlyTree

_POD_LEVEL: Final = frozenset({"cpu", "memory"})

_Effective = Callable[[ReadOnlyTree, ReadOnlyTree | None], Amounts]
"""Of a container and its status, if the status has resources."""


def pod_requests(pod: ReadOnlyTree) -> Amounts:
    infeasible = _is_resize_infeasible(pod)

    def effective(container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts:
        requests = read((container.get("resources") or {}).get("requests"))
        if status is None:
            return requests
        granted = maximum(read(status["resources"].get("requests")), read(status.get("allocatedResources")))
        return granted if infeasible else maximum(requests, granted)

    spec = pod.get("spec") or {}
    total = {**_of_containers(pod, effective), **_of_pod(spec, "requests")}
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
    total = {**_of_containers(pod, effective), **_of_pod(spec, "limits")}
    overhead = read(spec.get("overhead"))
    return add(total, {name: amount for name, amount in overhead.items() if total.get(name)})


def has_pod_level(spec: ReadOnlyTree) -> bool:
    """Whether the pod has requests of its own, so that its containers need none."""
    return bool(_of_pod(spec, "requests") or _of_pod(spec, "limits"))


def _of_pod(spec: ReadOnlyTree, field: str) -> Amounts:
    amounts = (spec.get("resources") or {}).get(field)
    return {
        name: amount
        for name, amount in read(amounts).items()
        if name in _POD_LEVEL or name.startswith("hugepages-")
    }


def _of_containers(pod: ReadOnlyTree, effective: _Effective) -> Amounts:
    """Return what the containers need at once, or one init container beside the sidecars if that is more."""
    spec, statuses = pod.get("spec") or {}, _statuses(pod)
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = add(running, effective(container, statuses.get(container.get("name", ""))))
    sidecars: Amounts = {}
    before: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecar = effective(container, statuses.get(container.get("name", "")))
            running, sidecars = add(running, sidecar), add(sidecars, sidecar)
            before = maximum(before, sidecars)
        else:
            before = maximum(before, add(effective(container, None), sidecars))
    return maximum(running, before)


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
