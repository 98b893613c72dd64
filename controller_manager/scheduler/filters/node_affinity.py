"""Nodes that the pod's selector or required affinity leaves out. Upstream: plugins/nodeaffinity."""

from typing import Final

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.filters.filter import Check, Refusal
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.node_selectors import required_by

_MISMATCH: Final = Refusal(("node(s) didn't match Pod's node affinity/selector",), is_final=True)


def node_affinity(pod: PodInfo, _: World) -> Check | None:
    matches = required_by(pod.spec)
    return None if matches is None else lambda node: None if matches(node.node) else _MISMATCH
