"""The desired simulated nodes: a ConfigMap overrides the flag while the manager runs.

    kind: ConfigMap
    metadata: {name: mockube-nodes, namespace: kube-system}
    data:
      nodes: "10"            node-1 to node-10, or pools in the forms of `--simulate-nodes`, but for the path of a file

The nodes of these pools are registered or changed, and other nodes of pools are deleted. Each write of the ConfigMap, even
without a change, registers deleted nodes again. Pure.
"""

import logging
from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.client.resources import Key

from .installation import LABEL_CONTROL_PLANE
from .node_pools.pool import (
    DEFAULT_POOL,
    MAX_SIMULATED_NODES,
    NODE_POOL,
    NodePool,
    NodePools,
    PoolMember,
    check_total,
    split_node_name,
)

LOG = logging.getLogger(__name__)

NODES_CONFIG_MAP: Final = Key(NAMESPACE_SYSTEM, "mockube-nodes")
NODES: Final = "nodes"
"""The key of the ConfigMap."""
_ZONES, _LABELS = _DEPRECATED = ("zones", "labels")
"""Keys that earlier releases wrote. Kept clusters and GitOps repositories still have them."""


class DesiredNodes(Struct, frozen=True, kw_only=True):
    pools: NodePools
    deletes_surplus: bool = False
    """Whether other nodes of pools are deleted."""
    control_planes: NodePool | None = None
    """The control-plane nodes, which an installer has made."""

    @property
    def all_pools(self) -> NodePools:
        more = () if self.control_planes is None else (self.control_planes,)
        return NodePools(pools=(*self.pools.pools, *more))

    def is_surplus(self, node: ReadOnlyTree) -> bool:
        """Return whether a simulated node was created for a pool that does not have it any more."""
        return self.deletes_surplus and pool_member(node) is not None and self.pool_of(node) is None

    def pool_of(self, node: ReadOnlyTree) -> NodePool | None:
        """Return the pool that has a node; None if no pool has it."""
        if (found := self._control_planes_of(node)) is not None:
            return found
        member = pool_member(node)
        pool = self.pools.by_name.get(member.pool) if member else None
        return pool if member and pool and member.number <= pool.count else None

    def _control_planes_of(self, node: ReadOnlyTree) -> NodePool | None:
        member, pool = split_node_name(meta.name(node)), self.control_planes
        has_node = member is not None and pool is not None and member.pool == pool.name
        return pool if has_node and LABEL_CONTROL_PLANE in meta.labels(node) else None


def node_number(name: str) -> int | None:
    """Return the number in the name of a node of the pool that a plain number is; None for another name."""
    member = split_node_name(name)
    return member.number if member and member.pool == DEFAULT_POOL else None


def pool_member(node: ReadOnlyTree) -> PoolMember | None:
    """Return the pool of a node and its number there; None if it was not created for a pool."""
    member = split_node_name(meta.name(node))
    return member if member and member.pool == meta.labels(node).get(NODE_POOL, DEFAULT_POOL) else None


def desired_nodes(
    config_map: ReadOnlyTree | None, flag: NodePools, max_nodes: int = MAX_SIMULATED_NODES
) -> DesiredNodes:
    """Return the nodes that the ConfigMap asks for, or else the flag; an invalid ConfigMap is ignored and logged."""
    data = (config_map or {}).get("data") or {}
    if not data:
        return DesiredNodes(pools=flag)
    if others := sorted(data.keys() - {NODES, *_DEPRECATED}):
        LOG.warning("ConfigMap %s: %s is not read", NODES_CONFIG_MAP, others[0])
    try:
        pools = _replace_deprecated(_read(data.get(NODES, ""), max_nodes), data)
        return DesiredNodes(pools=pools, deletes_surplus=True)
    except ValueError as error:
        LOG.warning("ConfigMap %s is ignored: %s: %s", NODES_CONFIG_MAP, NODES, error)
        return DesiredNodes(pools=flag)


def _read(text: str, max_nodes: int) -> NodePools:
    from .node_pools.reading import read_pools  # noqa: PLC0415 - few clusters are resized

    pools = read_pools(text)
    check_total(pools.count, max_nodes)
    return pools


def _replace_deprecated(pools: NodePools, data: Mapping[str, str]) -> NodePools:
    """Return pools with what deprecated keys of the ConfigMap set, and report these keys."""
    keys = [key for key in _DEPRECATED if data.get(key)]
    if not keys:
        return pools
    from .node_pools import deprecated  # noqa: PLC0415 - few ConfigMaps have such keys

    try:
        zones, labels = (
            deprecated.read_zones(data.get(_ZONES, "")),
            deprecated.read_labels(data.get(_LABELS, "")),
        )
        pools = deprecated.pool_of(pools, zones=zones, labels=dict(labels))
    except (ArgumentTypeError, ValueError) as error:
        raise ValueError(f"{', '.join(keys)}: {error}") from error
    LOG.warning(
        "ConfigMap %s: %s has been deprecated, use %s: %s instead",
        NODES_CONFIG_MAP,
        ", ".join(keys),
        NODES,
        pools.text,
    )
    return pools
