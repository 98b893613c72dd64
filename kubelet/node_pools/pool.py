"""The pools that `--simulate-nodes` asks for: how many nodes of which shape. `kubelet/node_objects.py` makes their nodes. Pure."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery.gotext import quote

MAX_SIMULATED_NODES: Final = 15_000
"""Three times as many as Kubernetes supports in one cluster."""
DEFAULT_POOL: Final = "node"
"""The name of the pool that a plain number is: its nodes are node-1, node-2 and so on."""
DEFAULT_CAPACITY: Final[Mapping[str, str]] = {
    "ephemeral-storage": "1Ti",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "cpu": "32",
    "memory": "256Gi",
    "pods": "1100",
}
"""The capacity of a node, apart from what its pool sets."""
AMD64: Final = "amd64"
NODE_POOL: Final = "mockube.dev/node-pool"
"""The label with the name of a node's pool. Nodes of a pool without settings do not have it."""
_MAX_SHORT: Final = 80
_MAX_QUOTED: Final = 80
_MAX_DIGITS: Final = 9
_NODE_NAME: Final = re.compile(r"(.+)-([1-9][0-9]{0,4})")


class PoolError(ValueError):
    """Pools are invalid; the message is one line."""


def quote_short(text: str) -> str:
    """Quote a text of pools for a message; a long one is shortened."""
    return quote(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")


class NodePool(Struct, frozen=True, kw_only=True):
    """Nodes of one shape. Without settings, only their number is set, as by a plain number."""

    name: str = DEFAULT_POOL
    count: int
    has_settings: bool = False
    zones: tuple[str, ...] = ()
    """The zones, over which the nodes are distributed in turn."""
    labels: Mapping[str, str] = {}
    """Labels, without those whose values differ by node."""
    annotations: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Mapping[str, str] = field(default_factory=lambda: DEFAULT_CAPACITY)
    allocatable: Mapping[str, str] = field(default_factory=lambda: DEFAULT_CAPACITY)
    architecture: str = AMD64
    os_image: str = ""
    images: tuple[Mapping[str, Any], ...] = ()
    """The images that are on the nodes, as in a node's status."""
    unschedulable: bool = False

    def zone_of(self, number: int) -> str:
        """Return the zone of the node with a number; "" without zones."""
        return self.zones[(number - 1) % len(self.zones)] if self.zones else ""


class NodePools(Struct, frozen=True, kw_only=True, dict=True):
    """All pools, and the text that they were read from."""

    pools: tuple[NodePool, ...] = ()
    text: str = "0"
    """The value of `--simulate-nodes` for other processes: the text, or the path of the file."""
    content: str = "0"
    """The text, or that of the file."""

    @cached_property
    def count(self) -> int:
        return sum(pool.count for pool in self.pools)

    @property
    def summary(self) -> str:
        """The text if it is short, or else how many nodes there are."""
        is_short = "\n" not in self.text and len(self.text) <= _MAX_SHORT
        return self.text if is_short else f"{self.count} nodes in {len(self.pools)} pools"

    @cached_property
    def by_name(self) -> Mapping[str, NodePool]:
        return {pool.name: pool for pool in self.pools}


def plain_nodes(count: int) -> NodePools:
    """Return the pool of a plain number."""
    return NodePools(pools=(NodePool(count=count),) if count else (), text=str(count), content=str(count))


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def read_count(text: str) -> int:
    """Return the number that some digits are."""
    digits = text.lstrip("0")
    return check_total(int(digits or "0") if len(digits) <= _MAX_DIGITS else MAX_SIMULATED_NODES + 1)


def check_total(count: int, limit: int = MAX_SIMULATED_NODES) -> int:
    """Return a number of nodes; raise PoolError if it is too large."""
    if count > limit:
        raise PoolError(f"at most {limit} nodes can have addresses")
    return count


class PoolMember(NamedTuple):
    pool: str
    number: int


def node_name(pool: str, number: int) -> str:
    return f"{pool}-{number}"


def split_node_name(name: str) -> PoolMember | None:
    """Return the pool and the number of which a node's name consists; None if no pool has a node of that name."""
    match = _NODE_NAME.fullmatch(name)
    number = int(match[2]) if match else 0
    return PoolMember(match[1], number) if match and number <= MAX_SIMULATED_NODES else None
