"""The plugins of kube-scheduler: the extension points, the filter, the score and the default weight of each."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from .cluster import ClusterSnapshot
from .config import args as arguments
from .filters.declared_features import declared_features
from .filters.filter import Check, Filter, Rejection, Restriction
from .filters.host_ports import node_ports
from .filters.node_affinity import node_affinity, node_name
from .filters.pod_affinity import grouped_pod_affinity, inter_pod_affinity
from .filters.resources import resources_fit
from .filters.spread import grouped_topology_spread, topology_spread
from .filters.taints import node_unschedulable, taint_toleration
from .filters.volume_limits import volume_limits, volume_limits_traits
from .filters.volumes import (
    volume_binding,
    volume_binding_traits,
    volume_restrictions,
    volume_restrictions_traits,
    volume_zone,
    volume_zone_traits,
)
from .node_traits import NodeTraits
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .profile import FilterPlugin, GroupFilterOf, GroupScoreOf, ScorePlugin, TraitsOf
from .scores.images import grouped_image_locality, image_locality
from .scores.node_affinity import grouped_node_affinity, node_affinity_score
from .scores.pod_affinity import grouped_pod_affinity_score, pod_affinity_score
from .scores.resources import balanced_allocation, resource_score
from .scores.score import Score
from .scores.spread import grouped_topology_spread_score, topology_spread_score
from .scores.taints import grouped_taint_toleration, taint_toleration_score
from .scores.volumes import volume_capacity_score

if TYPE_CHECKING:
    from .devices.claims import DeviceSnapshot

DYNAMIC_RESOURCES: Final = "DynamicResources"
VOLUME_BINDING: Final = "VolumeBinding"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"


def devices_for(pod: PodInfo, snapshot: ClusterSnapshot) -> "DeviceSnapshot | None":
    """Return the devices if a pod has claims for them, or extended resources that device classes provide; else None.

    Most clusters have no such pods, so that the modules for them are imported only then.
    """
    devices = snapshot.devices
    if devices is None or pod.spec.get("resourceClaims"):
        return devices
    return None if devices.extended_classes.keys().isdisjoint(pod.requested) else devices


def dynamic_resources(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | Rejection | None:
    """Reject nodes without the devices that a pod needs."""
    devices = devices_for(pod, snapshot)
    if devices is None:
        return None
    from .filters.devices import check_claims  # noqa: PLC0415 - see above

    return check_claims(pod, devices)


def dynamic_resources_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo]
) -> list[int] | None:
    """Prefer nodes with devices for the first alternatives of a pod's requests."""
    devices = devices_for(pod, snapshot)
    if devices is None:
        return None
    from .scores.devices import (  # noqa: PLC0415 - see above
        alternatives_score,
    )

    return alternatives_score(pod, devices, nodes)


def device_traits(pod: PodInfo, snapshot: ClusterSnapshot) -> NodeTraits:
    devices = devices_for(pod, snapshot)
    assert devices is not None  # the filter has checks
    from .filters import (  # noqa: PLC0415 - see above
        devices as module,
    )

    return module.device_traits(pod, devices)


def _plain_filter(
    function: Filter,
    *,
    is_node_local: bool = False,
    group_form: GroupFilterOf | None = None,
    traits: TraitsOf | None = None,
) -> Callable[[str, Any], FilterPlugin]:
    """Return what makes the filter of a plugin without arguments."""
    return lambda name, _: FilterPlugin(
        name, function, is_node_local=is_node_local, group_form=group_form, traits=traits
    )


def _plain_score(
    function: Score, group_form: GroupScoreOf | None = None, traits: TraitsOf | None = None
) -> Callable[[str, Any, int], ScorePlugin]:
    """Return what makes the score of a plugin without arguments."""
    return lambda name, _, weight: ScorePlugin(name, function, weight, group_form=group_form, traits=traits)


def _node_affinity(name: str, plugin_args: arguments.NodeAffinityArgs) -> FilterPlugin:
    check = partial(node_affinity, added=plugin_args.required())
    return FilterPlugin(name, check, is_node_local=True)


def _resources_fit(name: str, plugin_args: arguments.NodeResourcesFitArgs) -> FilterPlugin:
    check = partial(resources_fit, args=plugin_args)
    return FilterPlugin(name, check, is_node_local=True)


def _topology_spread(name: str, plugin_args: arguments.PodTopologySpreadArgs) -> FilterPlugin:
    group_form = partial(grouped_topology_spread, args=plugin_args)
    return FilterPlugin(name, partial(topology_spread, args=plugin_args), group_form=group_form)


def _node_affinity_score(name: str, plugin_args: arguments.NodeAffinityArgs, weight: int) -> ScorePlugin:
    added = plugin_args.preferred()
    score = partial(node_affinity_score, added=added)
    group_form = partial(grouped_node_affinity, added=added)
    return ScorePlugin(name, score, weight, group_form=group_form)


def _resource_score(name: str, plugin_args: arguments.NodeResourcesFitArgs, weight: int) -> ScorePlugin:
    score = partial(resource_score, strategy=plugin_args.scoring_strategy)
    return ScorePlugin(name, score, weight, is_node_local=True)


def _balanced_allocation(
    name: str, plugin_args: arguments.NodeResourcesBalancedAllocationArgs, weight: int
) -> ScorePlugin:
    score = partial(balanced_allocation, resources=plugin_args.resources)
    return ScorePlugin(name, score, weight, is_node_local=True)


def _volume_score(name: str, plugin_args: arguments.VolumeBindingArgs, weight: int) -> ScorePlugin:
    shape = plugin_args.shape or arguments.FALLING_SHAPE
    return ScorePlugin(
        name, partial(volume_capacity_score, shape=shape), weight, traits=volume_binding_traits
    )


def _topology_spread_score(
    name: str, plugin_args: arguments.PodTopologySpreadArgs, weight: int
) -> ScorePlugin:
    score = partial(topology_spread_score, args=plugin_args)
    group_form = partial(grouped_topology_spread_score, args=plugin_args)
    return ScorePlugin(name, score, weight, group_form=group_form)


def _pod_affinity_score(name: str, plugin_args: arguments.InterPodAffinityArgs, weight: int) -> ScorePlugin:
    score = partial(pod_affinity_score, args=plugin_args)
    group_form = partial(grouped_pod_affinity_score, args=plugin_args)
    return ScorePlugin(name, score, weight, group_form=group_form)


class InTreePlugin(Struct, frozen=True, kw_only=True):
    """A plugin of kube-scheduler that is on by default."""

    weight: int = 0
    """The default weight of its score; 0 is 1, as in a configuration."""
    points: Collection[str] = ()
    """Its extension points besides those of `filter` and `score`."""
    filter: Callable[[str, Any], FilterPlugin] | None = None
    """Makes its filter for its name and arguments."""
    score: Callable[[str, Any, int], ScorePlugin] | None = None
    """Makes its score for its name, arguments and weight."""
    is_filtered_first: bool = False
    """Whether its filter fails without its preFilter."""
    is_scored_first: bool = True
    """Whether its score fails without its preScore."""

    @property
    def all_points(self) -> Collection[str]:
        of_filter = () if self.filter is None else ("pre_filter", "filter")
        of_score = () if self.score is None else ("pre_score", "score")
        return {*self.points, *of_filter, *of_score}


IN_TREE: Final[Mapping[str, InTreePlugin]] = {
    "SchedulingGates": InTreePlugin(points=("pre_enqueue",)),
    "PrioritySort": InTreePlugin(points=("queue_sort",)),
    "NodeName": InTreePlugin(filter=_plain_filter(node_name)),
    "NodeUnschedulable": InTreePlugin(filter=_plain_filter(node_unschedulable, is_node_local=True)),
    "TaintToleration": InTreePlugin(
        weight=3,
        filter=_plain_filter(taint_toleration, is_node_local=True),
        score=_plain_score(taint_toleration_score, grouped_taint_toleration),
    ),
    "NodeAffinity": InTreePlugin(
        weight=2, filter=_node_affinity, score=_node_affinity_score, is_scored_first=False
    ),
    "NodePorts": InTreePlugin(filter=_plain_filter(node_ports, is_node_local=True), is_filtered_first=True),
    "NodeResourcesFit": InTreePlugin(
        weight=1,
        filter=_resources_fit,
        score=_resource_score,
        is_filtered_first=True,
        is_scored_first=False,
    ),
    "VolumeRestrictions": InTreePlugin(
        filter=_plain_filter(volume_restrictions, traits=volume_restrictions_traits), is_filtered_first=True
    ),
    "NodeVolumeLimits": InTreePlugin(filter=_plain_filter(volume_limits, traits=volume_limits_traits)),
    VOLUME_BINDING: InTreePlugin(
        points=("reserve", "pre_bind"),
        filter=_plain_filter(volume_binding, traits=volume_binding_traits),
        score=_volume_score,
        is_filtered_first=True,
    ),
    "VolumeZone": InTreePlugin(filter=_plain_filter(volume_zone, traits=volume_zone_traits)),
    "PodTopologySpread": InTreePlugin(
        weight=2, filter=_topology_spread, score=_topology_spread_score, is_filtered_first=True
    ),
    "InterPodAffinity": InTreePlugin(
        weight=2,
        filter=_plain_filter(inter_pod_affinity, group_form=grouped_pod_affinity),
        score=_pod_affinity_score,
        is_filtered_first=True,
    ),
    DYNAMIC_RESOURCES: InTreePlugin(
        weight=2,
        points=("pre_enqueue", "post_filter", "reserve", "pre_bind"),
        filter=_plain_filter(dynamic_resources, traits=device_traits),
        score=_plain_score(dynamic_resources_score, traits=device_traits),
        is_filtered_first=True,
        is_scored_first=False,
    ),
    DEFAULT_PREEMPTION: InTreePlugin(points=("pre_enqueue", "post_filter")),
    "NodeResourcesBalancedAllocation": InTreePlugin(
        weight=1, score=_balanced_allocation, is_scored_first=False
    ),
    "ImageLocality": InTreePlugin(
        weight=1,
        score=_plain_score(image_locality, grouped_image_locality),
        is_scored_first=False,
    ),
    "DefaultBinder": InTreePlugin(points=("bind",)),
    "NodeDeclaredFeatures": InTreePlugin(
        filter=_plain_filter(declared_features, is_node_local=True), is_filtered_first=True
    ),
}
"""The plugins by upstream's names, in upstream's order."""


def prefilter_only(plugin: FilterPlugin) -> FilterPlugin:
    """Return a filter whose preFilter alone is on: it may reject all nodes or name some, and checks none."""

    def make_check(pod: PodInfo, snapshot: ClusterSnapshot) -> Rejection | Restriction | None:
        check = plugin.filter(pod, snapshot)
        if isinstance(check, Restriction):
            return check._replace(check=lambda _: None)
        return check if isinstance(check, Rejection) else None

    return FilterPlugin(plugin.name, make_check)
