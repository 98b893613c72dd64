"""What the node has left is too little. Upstream: plugins/noderesources, fit."""

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.filters.filter import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo


def resources_fit(pod: PodInfo, _: World) -> Check:
    wanted = {name: amount for name, amount in pod.requested.items() if amount > 0}

    def check(node: NodeInfo) -> Refusal | None:
        reasons = ["Too many pods"] if len(node.pods) + 1 > node.most_pods else []
        scarce = [
            name for name, amount in wanted.items() if amount > node.allocatable[name] - node.requested[name]
        ]
        if not reasons and not scarce:
            return None
        reasons += (f"Insufficient {name}" for name in scarce)
        return Refusal(tuple(reasons), is_final=any(wanted[name] > node.allocatable[name] for name in scarce))

    return check
