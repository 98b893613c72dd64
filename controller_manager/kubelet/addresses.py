"""The addresses of simulated nodes and of the pods on them: no two running pods have the same.

Node n has 172.18.0.n. A pod's address is in the podCIDR of its node. On a node without one, the pods of node n have
10.244.n.1 to 10.244.n.254; more pods, and more nodes, continue in further blocks.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

from msgspec import Struct

_POD_NETWORK: Final = 244
_BLOCK: Final = 254
_BLOCKS_OF_NODE: Final = 12
_ROW: Final = 256
MAX_NODES: Final = 9 * _ROW - 1
"""There is room for nine rows of nodes without ranges, with one to spare."""
MAX_PODS: Final = _BLOCK * _BLOCKS_OF_NODE
_RESERVED: Final = 2
"""A range's own address, and the gateway's, which usual network plugins take first."""
_MAX_SCAN: Final = 1 << 16
"""Addresses of a range that pods are given: there are not more pods than that on a node."""


class NoAddressLeft(Exception):
    """A node has given away all addresses that it has for pods."""


def node_address(number: int) -> str:
    high, low = divmod(number, _ROW)
    return f"172.18.{high}.{low}"


def pod_address(number: int, pod: int) -> str:
    """The address number `pod` of the node number `number`, which has no range."""
    row, column = divmod(number, _ROW)
    block, host = divmod(pod, _BLOCK)
    return f"10.{_POD_NETWORK - _BLOCKS_OF_NODE * row + block}.{column}.{host + 1}"


class PodNetwork(Protocol):
    """The addresses that a node has for pods, by number."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def at(self, number: int) -> str: ...


class NumberedNode(Struct, frozen=True):
    """A `PodNetwork` of a node without a range."""

    number: int

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def size(self) -> int:
        return MAX_PODS

    def at(self, number: int) -> str:
        return pod_address(self.number, number)


class NodeRange(Struct, frozen=True):
    """A `PodNetwork`."""

    network: IPv4Network | IPv6Network

    @property
    def name(self) -> str:
        return str(self.network)

    @property
    def size(self) -> int:
        is_four = isinstance(self.network, IPv4Network)
        return max(0, min(self.network.num_addresses - _RESERVED - is_four, _MAX_SCAN))

    def at(self, number: int) -> str:
        return str(self.network.network_address + _RESERVED + number)


@lru_cache(maxsize=4096)
def pod_networks(ranges: Sequence[str]) -> tuple[NodeRange, ...]:
    """Of a node's podCIDRs, each that is a range."""
    return tuple(NodeRange(ip_network(text, strict=False)) for text in ranges)


def matching_addresses(address: str, networks: Sequence[NodeRange]) -> tuple[str, ...]:
    """The address in the first range, and those at its place in the other ranges."""
    first, *others = networks
    place = int(ip_address(address)) - int(first.network.network_address) - _RESERVED
    return (address, *(other.at(place) for other in others if 0 <= place < other.size))


class PodAddresses:
    """The address of each pod. Released addresses are the last to be allocated again."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._next: dict[str, int] = {}

    def of(self, uid: str, network: PodNetwork) -> str:
        """The pod's address: the one it has, or a new one on its node."""
        if uid not in self._addresses:
            self.note(uid, self._find_free(network))
        return self._addresses[uid]

    def note(self, uid: str, address: str) -> None:
        """Record the pod's present address."""
        self.release(uid)
        self._addresses[uid] = address
        self._holders.setdefault(address, uid)

    def release(self, uid: str) -> None:
        address = self._addresses.pop(uid, None)
        if address is not None and self._holders.get(address) == uid:
            del self._holders[address]

    def _find_free(self, network: PodNetwork) -> str:
        size = network.size
        first = self._next.get(network.name, 0)
        for number in range(first, first + size):
            address = network.at(number % size)
            if address not in self._holders:
                self._next[network.name] = (number + 1) % size
                return address
        raise NoAddressLeft
