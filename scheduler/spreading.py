"""Topology spread constraints: the nodes and pods that they count. Pure. The score is in `scores/spread`, the filter in `filters/spread`.

Upstream: plugins/podtopologyspread, common.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.labels import Selector, from_label_selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME, LABEL_ZONE
from mockube.client.component_helpers.node_selectors import required_node_affinity
from mockube.client.component_helpers.tolerations import find_untolerated_taint

from .config.args import SYSTEM, PodTopologySpreadArgs, TopologySpreadConstraint
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .workload_selector import Workloads, selector_of_workloads

REQUIRED: Final = "DoNotSchedule"
PREFERRED: Final = "ScheduleAnyway"
_SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(topology_key=LABEL_HOSTNAME, max_skew=3, when_unsatisfiable=PREFERRED),
    TopologySpreadConstraint(topology_key=LABEL_ZONE, max_skew=5, when_unsatisfiable=PREFERRED),
)
DEFAULT_ARGS: Final = PodTopologySpreadArgs()


class Constraint(Struct, frozen=True, kw_only=True):
    """A topology spread constraint of a pod."""

    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honours_affinity: bool
    honours_taints: bool

    def counts_in(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Return whether the constraint counts the pods of a node."""
        if self.honours_affinity:
            matches = required_node_affinity(pod.spec)
            if matches is not None and not matches(node.node):
                return False
        if not self.honours_taints:
            return True
        return find_untolerated_taint(pod.spec, node.taints, ("NoSchedule", "NoExecute")) is None

    def count(self, pod: PodInfo, node: NodeInfo) -> int:
        """Count the matching pods on a node, without terminating ones. An empty selector counts none."""
        if self.selector.empty:
            return 0
        namespace = pod.view.key.namespace
        return sum(
            other.view.key.namespace == namespace
            and not other.view.deleting
            and self.selector.matches(other.view.labels)
            for other in node.pods.values()
        )


def constraints_of(
    pod: PodInfo, action: str, workloads: Workloads | None, args: PodTopologySpreadArgs
) -> Sequence[Constraint]:
    """Return the constraints of a pod with an action; without own ones, those that pods have by default."""
    if not pod.spec.get("topologySpreadConstraints"):
        return _default_constraints(pod, action, workloads, args)
    return own_constraints(pod, action)


def own_constraints(pod: PodInfo, action: str) -> Sequence[Constraint]:
    constraints: Sequence[ReadOnlyTree] = pod.spec.get("topologySpreadConstraints") or ()
    return [
        _constraint(pod, constraint)
        for constraint in constraints
        if constraint["whenUnsatisfiable"] == action
    ]


def spread_selector(pod: PodInfo, workloads: Workloads | None) -> Selector | None:
    """Return the selector of the pods with which a pod without constraints is spread, which may change while it waits."""
    if workloads is None or pod.spec.get("topologySpreadConstraints"):
        return None
    return selector_of_workloads(pod, workloads)


def requires_all_labels(pod: PodInfo, args: PodTopologySpreadArgs) -> bool:
    """Return whether nodes are scored only if they have the labels of all constraints. The system's default ones need none."""
    return bool(pod.spec.get("topologySpreadConstraints")) or args.defaulting_type != SYSTEM


def _default_constraints(
    pod: PodInfo, action: str, workloads: Workloads | None, args: PodTopologySpreadArgs
) -> Sequence[Constraint]:
    defaults = _SYSTEM_CONSTRAINTS if args.defaulting_type == SYSTEM else args.default_constraints
    defaults = tuple(one for one in defaults if one.when_unsatisfiable == action)
    selector = spread_selector(pod, workloads) if defaults else None
    if selector is None or selector.empty:
        return ()
    return [
        Constraint(
            topology_key=one.topology_key,
            max_skew=one.max_skew,
            selector=selector,
            min_domains=one.min_domains or 1,
            honours_affinity=one.node_affinity_policy == "Honor",
            honours_taints=one.node_taints_policy == "Honor",
        )
        for one in defaults
    ]


def _constraint(pod: PodInfo, constraint: ReadOnlyTree) -> Constraint:
    return Constraint(
        topology_key=constraint["topologyKey"],
        max_skew=constraint["maxSkew"],
        selector=from_label_selector(_with_label_keys(pod, constraint)),
        min_domains=constraint.get("minDomains") or 1,
        honours_affinity=constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
        honours_taints=constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _with_label_keys(pod: PodInfo, constraint: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the label selector, with the pod's values of `matchLabelKeys`. The server may have merged them already."""
    selector: ReadOnlyTree | None = constraint.get("labelSelector")
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in pod.view.labels]
    if selector is None or not keys:
        return selector
    requirements = [{"key": key, "operator": "In", "values": [pod.view.labels[key]]} for key in keys]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *requirements]}
