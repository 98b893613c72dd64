"""A pod's requests and limits, with a resize in progress: the largest of the sizes that it has and will have.

Upstream: component-helpers/resource (PodRequests, PodLimits).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeAlias

from . import conditions
from .feature_gates import FeatureGates
from .pods import Number, container_total, is_pod_level
from .tree import ReadOnlyTree

_NONE: Final[ReadOnlyTree] = {}
STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses")
Amounts: TypeAlias = Mapping[str, Number]
_AmountsOfContainer: TypeAlias = Callable[[ReadOnlyTree, ReadOnlyTree | None], Amounts[Number]]
"""A function from a container, and its status if that counts, to the amounts of the container."""


class SizeRules(NamedTuple):
    """Which fields of a pod's status count."""

    has_resizes: bool
    has_pod_resizes: bool
    """Whether the resources of the pod itself can be resized, too."""
    adds_up_sizes: bool
    """Whether the largest sum of all containers counts, instead of the sum of the largest size of each container."""

    @classmethod
    def of(cls, gates: FeatureGates) -> "SizeRules":
        return cls(
            has_resizes=gates.is_on("InPlacePodVerticalScaling"),
            has_pod_resizes=gates.is_on("InPlacePodLevelResourcesVerticalScaling"),
            adds_up_sizes=not gates.is_before("1.37"),
        )


def sizes_of(status: ReadOnlyTree | None) -> tuple[Any, Any]:
    """Return the allocated and the actual requests of a container's status; None for absent ones."""
    if status is None:
        return None, None
    return status.get("allocatedResources"), (status.get("resources") or _NONE).get("requests")


def statuses_of(pod: ReadOnlyTree) -> dict[str, ReadOnlyTree]:
    """Return the statuses of a pod's containers by their names."""
    status = pod.get("status") or {}
    return {
        container_status.get("name", ""): container_status
        for name in reversed(STATUS_LISTS)
        for container_status in status.get(name) or ()
    }


def is_resize_infeasible(pod: ReadOnlyTree) -> bool:
    return (conditions.get(pod, "PodResizePending") or _NONE).get("reason") == "Infeasible"


class PodSizes(Generic[Number]):
    """The sizes of one pod, as amounts that a function reads from a list of resources."""

    def __init__(
        self, pod: ReadOnlyTree, read: Callable[[Mapping[str, Any] | None], Amounts[Number]], rules: SizeRules
    ) -> None:
        self._spec: ReadOnlyTree = pod.get("spec") or {}
        self._status: ReadOnlyTree = (pod.get("status") or {}) if rules.has_resizes else {}
        self._statuses = statuses_of(pod) if rules.has_resizes else {}
        self._is_infeasible = rules.has_resizes and is_resize_infeasible(pod)
        self._read = read
        self._rules = rules

    def requests(self, defaults: Amounts[Number] | None = None) -> dict[str, Number]:
        """Return the requests without overhead; `defaults` are those of containers without a request of a resource."""
        totals = (
            self._totals_of_requests(defaults or {})
            if self._rules.adds_up_sizes
            else [self._total(self._largest_requests, defaults or {}, counts_ended=False)]
        )
        return {**_maximum(totals), **self.pod_level_requests()}

    def limits(self) -> dict[str, Number]:
        if self._rules.adds_up_sizes:
            of_spec = [] if self._is_infeasible else [self._total(self._spec_limits)]
            limits = _maximum([*of_spec, self._total(self._actual_limits)])
        else:
            limits = dict(self._total(self._largest_limits, counts_ended=False))
        return {**limits, **self._pod_level("limits")}

    def pod_level_requests(self) -> dict[str, Number]:
        """Return the requests of the pod itself, which replace those of its containers."""
        requested = self._pod_level("requests")
        resources = self._status.get("resources")
        if not requested or not self._rules.has_pod_resizes or resources is None:
            return requested
        sizes = [] if self._is_infeasible else [requested]
        sizes += map(
            self._read_pod_level, (resources.get("requests"), self._status.get("allocatedResources"))
        )
        effective = _maximum(sizes)
        if self._rules.adds_up_sizes:
            return effective
        # A resource that the status does not have counts as 0, and not as that of the containers.
        return {name: effective.get(name, amount - amount) for name, amount in requested.items()}

    def _pod_level(self, field: str) -> dict[str, Number]:
        return self._read_pod_level((self._spec.get("resources") or _NONE).get(field))

    def _read_pod_level(self, resource_list: Mapping[str, Any] | None) -> dict[str, Number]:
        return {name: amount for name, amount in self._read(resource_list).items() if is_pod_level(name)}

    def _total(
        self,
        amounts: _AmountsOfContainer[Number],
        defaults: Amounts[Number] | None = None,
        *,
        counts_ended: bool = True,
    ) -> Amounts[Number]:
        """Return the total of the containers; the status of an init container that ends may not count."""

        def amounts_of(container: ReadOnlyTree, runs_on: bool) -> Amounts[Number]:  # noqa: FBT001 - as it is called
            counts = runs_on or counts_ended
            status = self._statuses.get(container.get("name", "")) if counts else None
            return {**(defaults or {}), **amounts(container, status)}

        return container_total(self._spec, amounts_of)

    # --- requests

    def _totals_of_requests(self, defaults: Amounts[Number]) -> list[Amounts[Number]]:
        of_spec = [] if self._is_infeasible else [self._total(self._spec_requests, defaults)]
        actual = (self._status.get("resources") or _NONE).get("requests")
        allocated = self._status.get("allocatedResources")
        if self._rules.has_pod_resizes and allocated is not None and actual is not None:
            return [*of_spec, self._read(allocated), self._read(actual)]
        if of_spec and not self._statuses:
            return of_spec
        return [
            *of_spec,
            self._total(self._allocated_requests, defaults),
            self._total(self._actual_requests, defaults),
        ]

    def _spec_requests(self, container: ReadOnlyTree, _: ReadOnlyTree | None) -> Amounts[Number]:
        return self._read((container.get("resources") or _NONE).get("requests"))

    def _allocated_requests(self, container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts[Number]:
        allocated, _ = sizes_of(status)
        if allocated is not None:
            return self._read(allocated)
        return {} if self._is_infeasible else self._spec_requests(container, status)

    def _actual_requests(self, container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts[Number]:
        _, actual = sizes_of(status)
        return self._allocated_requests(container, status) if actual is None else self._read(actual)

    def _largest_requests(self, container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts[Number]:
        if status is None or status.get("resources") is None:
            return self._spec_requests(container, status)
        of_spec = [] if self._is_infeasible else [self._spec_requests(container, status)]
        return _maximum([*of_spec, *map(self._read, sizes_of(status))])

    # --- limits

    def _spec_limits(self, container: ReadOnlyTree, _: ReadOnlyTree | None) -> Amounts[Number]:
        return self._read((container.get("resources") or _NONE).get("limits"))

    def _actual_limits(self, container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts[Number]:
        actual = ((status or _NONE).get("resources") or _NONE).get("limits")
        if actual is not None:
            return self._read(actual)
        return {} if self._is_infeasible else self._spec_limits(container, status)

    def _largest_limits(self, container: ReadOnlyTree, status: ReadOnlyTree | None) -> Amounts[Number]:
        if status is None or status.get("resources") is None:
            return self._spec_limits(container, status)
        actual = self._read(status["resources"].get("limits"))
        return actual if self._is_infeasible else _maximum([self._spec_limits(container, status), actual])


def _maximum(sizes: Iterable[Amounts[Number]]) -> dict[str, Number]:
    maximum: dict[str, Number] = {}
    for size in sizes:
        maximum |= {name: max(amount, maximum.get(name, amount)) for name, amount in size.items()}
    return maximum
