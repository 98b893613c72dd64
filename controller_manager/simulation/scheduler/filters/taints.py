"""Taints that the pod does not tolerate. Upstream: plugins/tainttoleration."""

from controller_manager.simulation.scheduler.filters import Check, Refusal
from controller_manager.simulation.scheduler.nodeinfo import NodeInfo
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.world import World
from controller_manager.workloads.tolerations import untolerated


def taint_toleration(pod: PodInfo, _: World) -> Check:
    def check(node: NodeInfo) -> Refusal | None:
        taint = untolerated(pod.spec, node.taints, ("NoSchedule", "NoExecute"))
        if taint is None:
            return None
        text = f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
        return Refusal((text,), is_final=True)

    return check
