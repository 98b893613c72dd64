"""The desired number of simulated nodes: a ConfigMap overrides the flags while the manager runs.

    kind: ConfigMap
    metadata: {name: mockube-nodes, namespace: kube-system}
    data:
      nodes: "10"            node-1 to node-10 are registered, nodes of higher numbers are deleted
      zones: "a,b"           zones of nodes that are registered from now on, in turn; the default is the flag
      labels: "disk=ssd"     additional labels of these nodes; the default is the flag

Each write of the ConfigMap, even without a change, registers deleted nodes again. Pure.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.config.networks import MAX_SIMULATED_NODES
from mockube.controller_manager.config.settings import Simulation

LOG = logging.getLogger(__name__)

NODES_CONFIG_MAP: Final = Key(NAMESPACE_SYSTEM, "mockube-nodes")
_NODE_NAME: Final = re.compile(r"node-([1-9][0-9]*)")


class DesiredNodes(Struct, frozen=True, kw_only=True):
    nodes: int
    zones: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    deletes_surplus: bool = False
    """Whether nodes of higher numbers are deleted."""


def node_number(name: str) -> int | None:
    """Return the number in the name of a node of mockube; None for another name."""
    match = _NODE_NAME.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= MAX_SIMULATED_NODES else None


def desired_nodes(
    config_map: ReadOnlyTree | None, flags: Simulation, max_nodes: int = MAX_SIMULATED_NODES
) -> DesiredNodes:
    """Return the nodes that the ConfigMap asks for, or else the flags; an invalid ConfigMap is ignored and logged."""
    data: Mapping[str, str] = (config_map or {}).get("data") or {}
    from_flags = DesiredNodes(
        nodes=flags.simulate_nodes,
        zones=flags.simulate_node_zones,
        labels=dict(flags.node_labels),
    )
    if not data:
        return from_flags
    try:
        return _read(data, flags, max_nodes)
    except ValueError as error:
        LOG.warning("ConfigMap %s is ignored: %s", NODES_CONFIG_MAP, error)
        return from_flags


def _read(data: Mapping[str, str], flags: Simulation, max_nodes: int) -> DesiredNodes:
    nodes = int(data["nodes"]) if data.get("nodes", "").isdecimal() else -1
    if not 0 <= nodes <= max_nodes:
        raise ValueError(f"nodes must be a number from 0 to {max_nodes}, not {data.get('nodes', '')[:100]!r}")
    labels = [pair.partition("=")[::2] for pair in data.get("labels", "").split(",") if pair]
    zones = tuple(filter(None, data.get("zones", "").split(",")))
    return DesiredNodes(
        nodes=nodes,
        zones=zones or flags.simulate_node_zones,
        labels=dict(labels or flags.node_labels),
        deletes_surplus=True,
    )
