"""The arguments of plugins, with upstream's names and defaults. Upstream: kube-scheduler's config/v1."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from msgspec import field, to_builtins
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.pod_requests import CPU, MEMORY
from mockube.component_base.configuration_files import Record

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM: Final = "System"
LIST: Final = "List"


class Args(Record, frozen=True, kw_only=True):
    """The base class of the arguments of a plugin; its name is that of the plugin with `Args` behind it."""

    api_version: str = ""
    kind: str = ""

    def with_defaults(self) -> Self:
        """Return the arguments with defaults in fields that a default replaces even if they are given."""
        return self


class ResourceSpec(Record, frozen=True, kw_only=True):
    name: str = ""
    weight: int = 0


DEFAULT_RESOURCES: Final = (ResourceSpec(name=CPU, weight=1), ResourceSpec(name=MEMORY, weight=1))


class UtilizationShapePoint(Record, frozen=True, kw_only=True):
    utilization: int = 0
    score: int = 0


Shape = tuple[UtilizationShapePoint, ...]
FALLING_SHAPE: Final[Shape] = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)


class RequestedToCapacityRatioParam(Record, frozen=True, kw_only=True):
    shape: Shape = ()


class ScoringStrategy(Record, frozen=True, kw_only=True):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


DEFAULT_STRATEGY: Final = ScoringStrategy(type=LEAST_ALLOCATED, resources=DEFAULT_RESOURCES)


class NodeResourcesFitArgs(Args, frozen=True, kw_only=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = DEFAULT_STRATEGY

    def with_defaults(self) -> Self:
        resources = _with_weights(self.scoring_strategy.resources)
        return replace(self, scoring_strategy=replace(self.scoring_strategy, resources=resources))

    def ignores(self, resource: str) -> bool:
        """Return whether the filter ignores an extended resource."""
        group = resource.partition("/")[0]
        return resource in self.ignored_resources or group in self.ignored_resource_groups


class NodeResourcesBalancedAllocationArgs(Args, frozen=True, kw_only=True):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def with_defaults(self) -> Self:
        return replace(self, resources=_with_weights(self.resources))


class TopologySpreadConstraint(Record, frozen=True, kw_only=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: Any = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PodTopologySpreadArgs(Args, frozen=True, kw_only=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM


class InterPodAffinityArgs(Args, frozen=True, kw_only=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeSelectorRequirement(Record, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Record, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Record, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Record, frozen=True, kw_only=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Record, frozen=True, kw_only=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class NodeAffinityArgs(Args, frozen=True, kw_only=True):
    added_affinity: NodeAffinity | None = None

    def required(self) -> ReadOnlyTree | None:
        """Return the node selector that is added to every pod's, as pods have it."""
        selector = None if self.added_affinity is None else self.added_affinity.required
        return None if selector is None else to_builtins(selector)

    def preferred(self) -> Sequence[ReadOnlyTree]:
        """Return the preferences that are added to every pod's, as pods have them."""
        return () if self.added_affinity is None else to_builtins(self.added_affinity.preferred)


class DefaultPreemptionArgs(Args, frozen=True, kw_only=True):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def candidates_of(self, nodes: int) -> int:
        """Return the number of candidates after which the search ends, of this number of nodes."""
        share = nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), nodes)


class VolumeBindingArgs(Args, frozen=True, kw_only=True):
    bind_timeout_seconds: int = 600
    shape: Shape | None = None


class DynamicResourcesArgs(Args, frozen=True, kw_only=True):
    filter_timeout: str | None = None
    binding_timeout: str | None = None


ARGS: Final[Mapping[str, type[Args]]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""The records by the names of plugins; others have no arguments."""


def _with_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """Return the resources, or those that are scored by default; a weight of 0 is 1."""
    return tuple(replace(one, weight=one.weight or 1) for one in resources) or DEFAULT_RESOURCES


def broken_linear(shape: Shape, utilization: int) -> int:
    """Return the score from 0 to 100 of a utilization: linear between the points of a shape, constant beyond them.

    As upstream, it is rounded toward 0 between two points.
    """
    before = shape[0]
    for point in shape:
        if utilization <= point.utilization:
            if point is shape[0]:
                break
            rise = (point.score - before.score) * 10 * (utilization - before.utilization)
            run = point.utilization - before.utilization
            return before.score * 10 + (rise // run if rise >= 0 else -(-rise // run))
        before = point
    return before.score * 10
