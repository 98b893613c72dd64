"""Host ports that are taken. Upstream: plugins/nodeports."""

from typing import Final

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.filters.filter import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo

_TAKEN: Final = Refusal(("node(s) didn't have free ports for the requested pod ports",))


def node_ports(pod: PodInfo, _: World) -> Check | None:
    if not pod.host_ports:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        taken = [port for other in node.pods.values() for port in other.host_ports]
        return _TAKEN if any(wanted.collides(one) for wanted in pod.host_ports for one in taken) else None

    return check
