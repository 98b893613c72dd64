"""What is asked of nodes and in which order, and what counts how much: upstream's default profile."""

from typing import Final

from controller_manager.simulation.scheduler.filters.filter import Filter
from controller_manager.simulation.scheduler.filters.fit import resources_fit
from controller_manager.simulation.scheduler.filters.names import node_name, node_unschedulable
from controller_manager.simulation.scheduler.filters.node_affinity import node_affinity
from controller_manager.simulation.scheduler.filters.pod_affinity import inter_pod_affinity
from controller_manager.simulation.scheduler.filters.ports import node_ports
from controller_manager.simulation.scheduler.filters.spread import topology_spread
from controller_manager.simulation.scheduler.filters.taints import taint_toleration
from controller_manager.simulation.scheduler.filters.volumes import volume_binding
from controller_manager.simulation.scheduler.scores.pod_affinity import liked_neighbours
from controller_manager.simulation.scheduler.scores.preferences import (
    image_locality,
    preferred_affinity,
    tolerated_taints,
)
from controller_manager.simulation.scheduler.scores.resources import balanced_allocation, least_allocated
from controller_manager.simulation.scheduler.scores.score import Score
from controller_manager.simulation.scheduler.scores.spread import even_spread

FILTERS: Final[tuple[Filter, ...]] = (
    node_unschedulable,
    node_name,
    taint_toleration,
    node_affinity,
    node_ports,
    resources_fit,
    volume_binding,
    topology_spread,
    inter_pod_affinity,
)

SCORES: Final[tuple[tuple[Score, int], ...]] = (
    (tolerated_taints, 3),
    (preferred_affinity, 2),
    (even_spread, 2),
    (liked_neighbours, 2),
    (least_allocated, 1),
    (balanced_allocation, 1),
    (image_locality, 1),
)
