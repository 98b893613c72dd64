"""The plugins of kube-scheduler: their extension points, and the filter and the score of each, for its arguments."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from .cluster import ClusterSnapshot
from .config import args as arguments
from .filters import taints_node_affinity_resources
from .filters.declared_features import declared_features
from .filters.filter import Check, Filter, Rejection, Restriction
from .filters.pod_affinity import grouped_pod_affinity, inter_pod_affinity
from .filters.spread import grouped_topology_spread, topology_spread
from .filters.volume_limits import volume_limits
from .filters.volumes import volume_binding, volume_restrictions, volume_zone
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .profile import FilterPlugin, ScorePlugin
from .scores import taints_node_affinity_images
from .scores.pod_affinity import grouped_pod_affinity_score, pod_affinity_score
from .scores.resources import balanced_allocation, resource_score
from .scores.spread import grouped_topology_spread_score, topology_spread_score
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


def _plain_filter(
    name: str, function: Filter, *, is_node_local: bool = False
) -> Callable[[Any], FilterPlugin]:
    """Return what makes the filter of a plugin without arguments."""
    plugin = FilterPlugin(name, function, is_node_local=is_node_local)
    return lambda _: plugin


def _node_affinity(plugin_args: arguments.NodeAffinityArgs) -> FilterPlugin:
    check = partial(taints_node_affinity_resources.node_affinity, added=plugin_args.required())
    return FilterPlugin("NodeAffinity", check, is_node_local=True)


def _resources_fit(plugin_args: arguments.NodeResourcesFitArgs) -> FilterPlugin:
    check = partial(taints_node_affinity_resources.resources_fit, args=plugin_args)
    return FilterPlugin("NodeResourcesFit", check, is_node_local=True)


def _topology_spread(plugin_args: arguments.PodTopologySpreadArgs) -> FilterPlugin:
    grouped = partial(grouped_topology_spread, args=plugin_args)
    return FilterPlugin("PodTopologySpread", partial(topology_spread, args=plugin_args), grouped=grouped)


def _pod_affinity(_: Any) -> FilterPlugin:
    return FilterPlugin("InterPodAffinity", inter_pod_affinity, grouped=grouped_pod_affinity)


def _taint_toleration_score(_: Any, weight: int) -> ScorePlugin:
    return ScorePlugin(
        "TaintToleration",
        taints_node_affinity_images.taint_toleration_score,
        weight,
        grouped=taints_node_affinity_images.grouped_taint_toleration,
    )


def _node_affinity_score(plugin_args: arguments.NodeAffinityArgs, weight: int) -> ScorePlugin:
    added = plugin_args.preferred()
    return ScorePlugin(
        "NodeAffinity",
        partial(taints_node_affinity_images.node_affinity_score, added=added),
        weight,
        grouped=partial(taints_node_affinity_images.grouped_node_affinity, added=added),
    )


def _resource_score(plugin_args: arguments.NodeResourcesFitArgs, weight: int) -> ScorePlugin:
    score = partial(resource_score, strategy=plugin_args.scoring_strategy)
    return ScorePlugin("NodeResourcesFit", score, weight, is_node_local=True)


def _balanced_allocation(
    plugin_args: arguments.NodeResourcesBalancedAllocationArgs, weight: int
) -> ScorePlugin:
    score = partial(balanced_allocation, resources=plugin_args.resources)
    return ScorePlugin("NodeResourcesBalancedAllocation", score, weight, is_node_local=True)


def _volume_score(plugin_args: arguments.VolumeBindingArgs, weight: int) -> ScorePlugin:
    shape = plugin_args.shape or arguments.FALLING_SHAPE
    return ScorePlugin(VOLUME_BINDING, partial(volume_capacity_score, shape=shape), weight)


def _topology_spread_score(plugin_args: arguments.PodTopologySpreadArgs, weight: int) -> ScorePlugin:
    score = partial(topology_spread_score, args=plugin_args)
    return ScorePlugin(
        "PodTopologySpread", score, weight, grouped=partial(grouped_topology_spread_score, args=plugin_args)
    )


def _pod_affinity_score(plugin_args: arguments.InterPodAffinityArgs, weight: int) -> ScorePlugin:
    score = partial(pod_affinity_score, args=plugin_args)
    return ScorePlugin(
        "InterPodAffinity", score, weight, grouped=partial(grouped_pod_affinity_score, args=plugin_args)
    )


def _image_locality(_: Any, weight: int) -> ScorePlugin:
    return ScorePlugin(
        "ImageLocality",
        taints_node_affinity_images.image_locality,
        weight,
        grouped=taints_node_affinity_images.grouped_image_locality,
    )


def _device_score(_: Any, weight: int) -> ScorePlugin:
    return ScorePlugin(DYNAMIC_RESOURCES, dynamic_resources_score, weight)


class InTreePlugin(Struct, frozen=True, kw_only=True):
    """A plugin of kube-scheduler."""

    points: Collection[str] = ()
    """Its extension points besides those of `filter` and `score`."""
    args: type[arguments.Args] | None = None
    """The record of its arguments."""
    filter: Callable[[Any], FilterPlugin] | None = None
    """Makes its filter for arguments."""
    score: Callable[[Any, int], ScorePlugin] | None = None
    """Makes its score for arguments and a weight."""
    is_filtered_first: bool = False
    """Whether its filter fails without its preFilter."""
    is_scored_first: bool = True
    """Whether its score fails without its preScore."""

    @property
    def all_points(self) -> Collection[str]:
        of_filter = () if self.filter is None else ("pre_filter", "filter")
        of_score = () if self.score is None else ("pre_score", "score")
        return {*self.points, *of_filter, *of_score}


_NODE_FILTERS: Final = taints_node_affinity_resources
IN_TREE: Final[Mapping[str, InTreePlugin]] = {
    "SchedulingGates": InTreePlugin(points=("pre_enqueue",)),
    "PrioritySort": InTreePlugin(points=("queue_sort",)),
    "NodeName": InTreePlugin(filter=_plain_filter("NodeName", _NODE_FILTERS.node_name)),
    "NodeUnschedulable": InTreePlugin(
        filter=_plain_filter("NodeUnschedulable", _NODE_FILTERS.node_unschedulable, is_node_local=True)
    ),
    "TaintToleration": InTreePlugin(
        filter=_plain_filter("TaintToleration", _NODE_FILTERS.taint_toleration, is_node_local=True),
        score=_taint_toleration_score,
    ),
    "NodeAffinity": InTreePlugin(
        args=arguments.NodeAffinityArgs,
        filter=_node_affinity,
        score=_node_affinity_score,
        is_scored_first=False,
    ),
    "NodePorts": InTreePlugin(
        filter=_plain_filter("NodePorts", _NODE_FILTERS.node_ports, is_node_local=True),
        is_filtered_first=True,
    ),
    "NodeResourcesFit": InTreePlugin(
        args=arguments.NodeResourcesFitArgs,
        filter=_resources_fit,
        score=_resource_score,
        is_filtered_first=True,
        is_scored_first=False,
    ),
    "VolumeRestrictions": InTreePlugin(
        filter=_plain_filter("VolumeRestrictions", volume_restrictions), is_filtered_first=True
    ),
    "NodeVolumeLimits": InTreePlugin(filter=_plain_filter("NodeVolumeLimits", volume_limits)),
    VOLUME_BINDING: InTreePlugin(
        points=("reserve", "pre_bind"),
        args=arguments.VolumeBindingArgs,
        filter=_plain_filter(VOLUME_BINDING, volume_binding),
        score=_volume_score,
        is_filtered_first=True,
    ),
    "VolumeZone": InTreePlugin(filter=_plain_filter("VolumeZone", volume_zone)),
    "PodTopologySpread": InTreePlugin(
        args=arguments.PodTopologySpreadArgs,
        filter=_topology_spread,
        score=_topology_spread_score,
        is_filtered_first=True,
    ),
    "InterPodAffinity": InTreePlugin(
        args=arguments.InterPodAffinityArgs,
        filter=_pod_affinity,
        score=_pod_affinity_score,
        is_filtered_first=True,
    ),
    DYNAMIC_RESOURCES: InTreePlugin(
        points=("pre_enqueue", "post_filter", "reserve", "pre_bind"),
        args=arguments.DynamicResourcesArgs,
        filter=_plain_filter(DYNAMIC_RESOURCES, dynamic_resources),
        score=_device_score,
        is_filtered_first=True,
        is_scored_first=False,
    ),
    DEFAULT_PREEMPTION: InTreePlugin(
        points=("pre_enqueue", "post_filter"), args=arguments.DefaultPreemptionArgs
    ),
    "NodeResourcesBalancedAllocation": InTreePlugin(
        args=arguments.NodeResourcesBalancedAllocationArgs, score=_balanced_allocation, is_scored_first=False
    ),
    "ImageLocality": InTreePlugin(score=_image_locality, is_scored_first=False),
    "DefaultBinder": InTreePlugin(points=("bind",)),
    "NodeDeclaredFeatures": InTreePlugin(
        filter=_plain_filter("NodeDeclaredFeatures", declared_features, is_node_local=True),
        is_filtered_first=True,
    ),
}
"""The plugins by upstream's names."""


def prefilter_only(plugin: FilterPlugin) -> FilterPlugin:
    """Return a filter whose preFilter alone is on: it may reject all nodes or name some, and checks none."""

    def make_check(pod: PodInfo, snapshot: ClusterSnapshot) -> Rejection | Restriction | None:
        check = plugin.filter(pod, snapshot)
        if isinstance(check, Restriction):
            return check._replace(check=lambda _: None)
        return check if isinstance(check, Rejection) else None

    is_harmless = plugin.is_node_local or plugin.grouped is not None
    return FilterPlugin(plugin.name, make_check, is_node_local=is_harmless)
