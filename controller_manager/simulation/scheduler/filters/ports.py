"""Host ports that are taken. Upstream: plugins/nodeports."""

from typing import Final

from controller_manager.simulation.scheduler.filters.filter import Check, Refusal
from controller_manager.simulation.scheduler.nodeinfo import NodeInfo
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.world import World

_TAKEN: Final = Refusal(("node(s) didn't have free ports for the requested pod ports",))


def node_ports(pod: PodInfo, _: World) -> Check | None:
    if not pod.host_ports:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        taken = [port for other in node.pods.values() for port in other.host_ports]
        return _TAKEN if any(wanted.collides(one) for wanted in pod.host_ports for one in taken) else None

    return check
