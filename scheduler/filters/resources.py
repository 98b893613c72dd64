"""Reject nodes without room for the requests of a pod, or for one more pod.

Upstream: plugins/noderesources (fit).
"""

from typing import Final

from mockube.apimachinery.resource_names import is_extended
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.args import NodeResourcesFitArgs
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

_DEFAULT_ARGS: Final = NodeResourcesFitArgs()


def resources_fit(
    pod: PodInfo, snapshot: ClusterSnapshot, args: NodeResourcesFitArgs = _DEFAULT_ARGS
) -> Check:
    requested = {
        name: amount
        for name, amount in pod.requested.items()
        if not (args.ignores(name) and is_extended(name))
    }
    by_devices = () if snapshot.devices is None else snapshot.devices.extended_classes
    can_be_unresolvable = not snapshot.gates.is_before("1.34")

    def check(node: NodeInfo) -> Rejection | None:
        reasons = ["Too many pods"] if len(node.pods) + 1 > node.max_pods else []
        insufficient = [
            name
            for name, amount in requested.items()
            if amount > node.allocatable[name] - node.requested[name]
            # Devices of a class provide the resource on a node that does not have it itself.
            and (name not in by_devices or node.allocatable[name] > 0)
        ]
        if not reasons and not insufficient:
            return None
        reasons += (f"Insufficient {name}" for name in insufficient)
        return Rejection(
            tuple(reasons),
            is_unresolvable=can_be_unresolvable
            and any(requested[name] > node.allocatable[name] for name in insufficient),
        )

    return check
