"""Reject nodes on which another pod uses a host port of the pod.

Upstream: plugins/nodeports.
"""

from typing import Final

from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

_PORTS_IN_USE: Final = Rejection(("node(s) didn't have free ports for the requested pod ports",))


def node_ports(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    if not pod.host_ports:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        used_ports = [port for other in node.pods.values() for port in other.host_ports]
        return (
            _PORTS_IN_USE
            if any(host_port.conflicts(used_port) for host_port in pod.host_ports for used_port in used_ports)
            else None
        )

    return check
