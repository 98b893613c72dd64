"""Taints that the pod does not tolerate. Upstream: plugins/tainttoleration."""

from typing import Final

from controller_manager.simulation.scheduler.filters.filter import Check, Refusal
from controller_manager.simulation.scheduler.nodeinfo import NodeInfo
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.world import World
from controller_manager.workloads.tolerations import untolerated

_UNTOLERATED: Final = Refusal(("node(s) had untolerated taint(s)",), is_final=True)


def taint_toleration(pod: PodInfo, _: World) -> Check:
    def check(node: NodeInfo) -> Refusal | None:
        return _UNTOLERATED if untolerated(pod.spec, node.taints, ("NoSchedule", "NoExecute")) else None

    return check
