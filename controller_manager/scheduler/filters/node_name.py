"""A node that is closed, or not the one that the pod names."""

from typing import Final

from mockube.controller_manager.scheduler.cluster import World
from mockube.controller_manager.scheduler.filters.filter import Check, Refusal
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.tolerations import UNSCHEDULABLE, tolerates

_CLOSED: Final = Refusal(("node(s) were unschedulable",), is_final=True)
_ANOTHER: Final = Refusal(("node(s) didn't match the requested node name",), is_final=True)


def node_unschedulable(pod: PodInfo, _: World) -> Check | None:
    if tolerates(pod.spec, UNSCHEDULABLE):
        return None
    return lambda node: _CLOSED if node.is_unschedulable else None


def node_name(pod: PodInfo, _: World) -> Check | None:
    wanted = pod.spec.get("nodeName")
    return (lambda node: None if node.name == wanted else _ANOTHER) if wanted else None
