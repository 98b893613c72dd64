"""Nodes that the pod's selector or required affinity leaves out. Upstream: plugins/nodeaffinity."""

from typing import Final

from controller_manager.simulation.scheduler.filters.filter import Check, Refusal
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.world import World
from controller_manager.workloads.node_selectors import required_by

_MISMATCH: Final = Refusal(("node(s) didn't match Pod's node affinity/selector",), is_final=True)


def node_affinity(pod: PodInfo, _: World) -> Check | None:
    matches = required_by(pod.spec)
    return None if matches is None else lambda node: None if matches(node.node) else _MISMATCH
