"""Compute a pod's requests for scheduling: with a resize in progress, the largest of those that it has and will have.

Pure. Upstream: component-helpers/resource, scheduler/framework (PodInfo).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.pods import container_total, is_pod_level
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.workloads.pod_requests import (
    DEFAULT_REQUESTS,
    Amounts,
    amounts,
    nonzero_requests,
    pod_requests,
)

_NONE: Final[ReadOnlyTree] = {}
_STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses")
_POD_LEVEL_GATE: Final = "InPlacePodLevelResourcesVerticalScaling"
_ContainerRequests = Callable[[ReadOnlyTree, ReadOnlyTree | None], Mapping[str, int]]
"""A function from a container and its status, if it has one, to the amounts of the container."""


class EffectiveRequests(NamedTuple):
    requested: Amounts
    nonzero: Amounts
    """The requests by which nodes are scored that the pod runs on, with defaults for containers without requests."""
    scored: Amounts
    """The requests by which nodes are scored for the pod: those of its containers, as upstream's NodeResourcesFit has them."""


def effective_requests(pod: ReadOnlyTree, gates: FeatureGates) -> EffectiveRequests:
    spec = pod["spec"]
    scored = nonzero_requests(spec)
    if not spec.get("resources") and not _has_other_sizes(pod):
        return EffectiveRequests(pod_requests(spec), scored, scored)
    overhead = amounts(spec.get("overhead"))
    pod_level = _pod_level_requests(pod, gates)

    def total(defaults: Mapping[str, int]) -> dict[str, int]:
        return {**_maximum(_container_totals(pod, gates, defaults)), **pod_level}

    def result(total: Mapping[str, int]) -> Amounts:
        return +Counter(total) + overhead

    requested = total(_NONE)
    missing = {
        name: amount for name, amount in DEFAULT_REQUESTS.items() if not pod_level or name not in requested
    }
    return EffectiveRequests(result(requested), result(total(missing)), scored)


def size_fields(pod: ReadOnlyTree) -> Sequence[object]:
    """Return the fields of a pod's status on which its requests depend, to compare them."""
    status = pod.get("status") or {}
    return [
        status.get("resources"),
        status.get("allocatedResources"),
        _is_resize_infeasible(pod),
        *(
            (container_status.get("name"), *_sizes(container_status))
            for name in _STATUS_LISTS
            for container_status in status.get(name) or ()
        ),
    ]


def _has_other_sizes(pod: ReadOnlyTree) -> bool:
    """Return whether the status may have other amounts than the spec, as after a resize."""
    status = pod.get("status") or {}
    if status.get("resources") or status.get("allocatedResources") or _is_resize_infeasible(pod):
        return True
    statuses = _statuses(pod)
    return bool(statuses) and any(
        size not in (None, (container.get("resources") or _NONE).get("requests") or _NONE)
        for name in ("containers", "initContainers")
        for container in pod["spec"].get(name) or ()
        for size in _sizes(statuses.get(container["name"]))
    )


def _sizes(status: ReadOnlyTree | None) -> tuple[Any, Any]:
    """Return the allocated and the actual requests of a container's status; None for absent ones."""
    if status is None:
        return None, None
    return status.get("allocatedResources"), (status.get("resources") or _NONE).get("requests")


def _statuses(pod: ReadOnlyTree) -> dict[str, ReadOnlyTree]:
    status = pod.get("status") or {}
    return {
        container_status["name"]: container_status
        for name in reversed(_STATUS_LISTS)
        for container_status in status.get(name) or ()
    }


def _is_resize_infeasible(pod: ReadOnlyTree) -> bool:
    return (conditions.get(pod, "PodResizePending") or _NONE).get("reason") == "Infeasible"


def _maximum(sizes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    maximum: dict[str, int] = {}
    for size in sizes:
        maximum |= {name: max(amount, maximum.get(name, amount)) for name, amount in size.items()}
    return maximum


def _container_totals(
    pod: ReadOnlyTree, gates: FeatureGates, defaults: Mapping[str, int]
) -> list[Mapping[str, int]]:
    """Return the totals of the containers of which the largest counts."""
    statuses, is_infeasible = _statuses(pod), _is_resize_infeasible(pod)

    def total(requests: _ContainerRequests, *, counts_ended: bool = True) -> Mapping[str, int]:
        def amounts_of(container: ReadOnlyTree, runs_on: bool) -> Mapping[str, int]:  # noqa: FBT001 - as it is called
            status = statuses.get(container["name"]) if runs_on or counts_ended else None
            return {**defaults, **requests(container, status)}

        return container_total(pod["spec"], amounts_of)

    if not gates.is_on("InPlacePodVerticalScaling"):
        return [total(_of_spec)]
    if gates.is_before("1.37"):
        return [total(_largest_size_of(is_infeasible=is_infeasible), counts_ended=False)]
    of_spec = [] if is_infeasible else [total(_of_spec)]
    status = pod.get("status") or {}
    actual = (status.get("resources") or _NONE).get("requests")
    allocated = status.get("allocatedResources")
    if gates.is_on(_POD_LEVEL_GATE) and allocated is not None and actual is not None:
        return [*of_spec, amounts(allocated), amounts(actual)]
    return [
        *of_spec,
        total(_of_status(0, is_infeasible=is_infeasible)),
        total(_of_status(1, is_infeasible=is_infeasible)),
    ]


def _of_spec(container: ReadOnlyTree, _: ReadOnlyTree | None) -> Mapping[str, int]:
    return amounts((container.get("resources") or _NONE).get("requests"))


def _of_status(first: int, *, is_infeasible: bool) -> _ContainerRequests:
    """Return the function of the allocated (0) or actual (1) requests; without, those before it count."""

    def requests(container: ReadOnlyTree, status: ReadOnlyTree | None) -> Mapping[str, int]:
        sizes = _sizes(status)
        for size in reversed(sizes[: first + 1]):
            if size is not None:
                return amounts(size)
        return {} if is_infeasible else _of_spec(container, status)

    return requests


def _largest_size_of(*, is_infeasible: bool) -> _ContainerRequests:
    """Return the function of the largest requests of a container, as before 1.37."""

    def requests(container: ReadOnlyTree, status: ReadOnlyTree | None) -> Mapping[str, int]:
        if status is None or status.get("resources") is None:
            return _of_spec(container, status)
        sizes = [] if is_infeasible else [_of_spec(container, status)]
        return _maximum([*sizes, *map(amounts, _sizes(status))])

    return requests


def _pod_level_requests(pod: ReadOnlyTree, gates: FeatureGates) -> dict[str, int]:
    """Return the requests of the pod itself, which replace those of its containers."""
    requested = (pod["spec"].get("resources") or _NONE).get("requests") or _NONE
    if not any(map(is_pod_level, requested)):
        return {}
    status, sizes = pod.get("status") or {}, [amounts(requested)]
    if gates.is_on(_POD_LEVEL_GATE) and status.get("resources") is not None:
        if _is_resize_infeasible(pod):
            sizes = []
        sizes += [amounts(status["resources"].get("requests")), amounts(status.get("allocatedResources"))]
    effective = _maximum(sizes)
    if gates.is_before("1.37"):
        effective = {name: effective.get(name, 0) for name in requested}
    return {name: amount for name, amount in effective.items() if is_pod_level(name)}
