"""Taints that the pod does not tolerate. Upstream: plugins/tainttoleration."""

from typing import Final

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.filters.filter import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.tolerations import untolerated

_UNTOLERATED: Final = Refusal(("node(s) had untolerated taint(s)",), is_final=True)


def taint_toleration(pod: PodInfo, _: World) -> Check:
    def check(node: NodeInfo) -> Refusal | None:
        return _UNTOLERATED if untolerated(pod.spec, node.taints, ("NoSchedule", "NoExecute")) else None

    return check
