"""The desired number of nodes while the manager runs: a ConfigMap overrides the flags.

    kind: ConfigMap
    metadata: {name: mockube-nodes, namespace: kube-system}
    data:
      nodes: "10"            node-1 to node-10 are registered, those of higher numbers deleted
      zones: "a,b"           of nodes that are registered from now on, in turn; as the flag has it if this is left out
      labels: "disk=ssd"     which these have besides their own; the same

Each write of it, even without a change, registers deleted nodes again. Pure.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.config.settings import Simulation
from mockube.controller_manager.kubelet.addresses import MAX_NODES

LOG = logging.getLogger(__name__)

RESIZING: Final = Key(NAMESPACE_SYSTEM, "mockube-nodes")
_NUMBERED: Final = re.compile(r"node-([1-9][0-9]*)")


class DesiredNodes(Struct, frozen=True, kw_only=True):
    nodes: int
    zones: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    no_more: bool = False
    """Nodes of higher numbers are to go."""


def number_in(name: str) -> int | None:
    """Of a node of ours, by its name."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= MAX_NODES else None


def desired_nodes(resizing: ReadOnlyTree | None, flags: Simulation) -> DesiredNodes:
    """What cannot be read counts as if it were not there."""
    data: Mapping[str, str] = (resizing or {}).get("data") or {}
    by_flags = DesiredNodes(
        nodes=flags.simulate_nodes,
        zones=flags.simulate_node_zones,
        labels=dict(flags.node_labels),
    )
    if not data:
        return by_flags
    try:
        return _read(data, flags)
    except ValueError as error:
        LOG.warning("ConfigMap %s is ignored: %s", RESIZING, error)
        return by_flags


def _read(data: Mapping[str, str], flags: Simulation) -> DesiredNodes:
    nodes = int(data["nodes"]) if data.get("nodes", "").isdecimal() else -1
    if not 0 <= nodes <= MAX_NODES:
        raise ValueError(f"nodes must be a number from 0 to {MAX_NODES}, not {data.get('nodes', '')[:100]!r}")
    labels = [pair.partition("=")[::2] for pair in data.get("labels", "").split(",") if pair]
    zones = tuple(filter(None, data.get("zones", "").split(",")))
    return DesiredNodes(
        nodes=nodes,
        zones=zones or flags.simulate_node_zones,
        labels=dict(labels or flags.node_labels),
        no_more=True,
    )
