"""What a decision is made on: the nodes that are known, and what else of the cluster a pod's wishes refer to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from controller_manager.simulation.scheduler.nodeinfo import NodeInfo
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.volumes import Storage


def no_nominees(_: str) -> Sequence[PodInfo]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    nodes: Sequence[NodeInfo]
    labels_of_namespace: Callable[[str], Mapping[str, str]]
    storage: Storage
    nominees: Callable[[str], Sequence[PodInfo]] = no_nominees
    """The pods that wait for victims on a node to go: by its name."""
