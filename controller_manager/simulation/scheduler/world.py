"""What a decision is made on: the nodes that are known, and what else of the cluster a pod's wishes refer to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from controller_manager.simulation.scheduler.nodeinfo import NodeInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    nodes: Sequence[NodeInfo]
    labels_of_namespace: Callable[[str], Mapping[str, str]]
