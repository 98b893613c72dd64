"""The addresses of simulated nodes and of their pods: no two running pods have the same address.

Node n has 172.18.0.n. A pod's address is in the podCIDR of its node. If the node has no podCIDR, the pods of node n
have 10.244.n.1 to 10.244.n.254; further pods, and further nodes, have further blocks. From the 2,304th node on, a node without
a podCIDR has one block of 100.64.0.0/10.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

from msgspec import Struct

_POD_NETWORK: Final = 244
_BLOCK: Final = 254
_BLOCKS_PER_NODE: Final = 12
_ROW: Final = 256
NODES_WITH_BLOCKS: Final = 9 * _ROW - 1
"""The addresses of 10.0.0.0/8 suffice for nine rows of nodes without a podCIDR."""
_SHARED_NETWORK: Final = ip_address("100.64.0.0")
MAX_PODS: Final = _BLOCK * _BLOCKS_PER_NODE
_RESERVED: Final = 2
"""The addresses at the start of a podCIDR that pods do not get: that of the network, and that of the gateway."""
_MAX_PODS_IN_CIDR: Final = 1 << 16
"""The maximum number of addresses in a podCIDR that pods get: a node does not have more pods."""


class NoAddressLeft(Exception):
    """All addresses that a node has for pods are in use."""


def node_address(number: int) -> str:
    high, low = divmod(number, _ROW)
    return f"172.18.{high}.{low}"


def number_of_address(address: str) -> int:
    """Return the number of the node that has an address; 0 if no number has it."""
    high, _, low = address.removeprefix("172.18.").partition(".")
    if not (address.startswith("172.18.") and high.isdecimal() and low.isdecimal()):
        return 0
    number = int(high) * _ROW + int(low)
    return number if node_address(number) == address else 0


def pod_address(number: int, pod: int) -> str:
    """Return the address with the number `pod` on the node with the number `number`, which has no podCIDR."""
    if number > NODES_WITH_BLOCKS:
        return str(_SHARED_NETWORK + (number - NODES_WITH_BLOCKS - 1) * _ROW + pod + 1)
    row, column = divmod(number, _ROW)
    block, host = divmod(pod, _BLOCK)
    return f"10.{_POD_NETWORK - _BLOCKS_PER_NODE * row + block}.{column}.{host + 1}"


class NodeAddresses:
    """The addresses of nodes that are to be registered: none that a node has, and none that a node has by its number."""

    def __init__(self, present: Iterable[str], numbered: int) -> None:
        """`present` are the addresses of nodes; the nodes 1 to `numbered` have the addresses of their numbers."""
        self._used = set(map(number_of_address, present))
        self._next = numbered + 1

    def allocate(self, number: int | None) -> str:
        """Return the address of a node; "" if that of its number is free, because it is then clear."""
        if number is not None and number not in self._used:
            return ""
        while self._next in self._used:
            self._next += 1
        self._used.add(self._next)
        return node_address(self._next)


class PodNetwork(Protocol):
    """The addresses that a node has for its pods, by number."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def address_at(self, number: int) -> str: ...


class NumberedNodeNetwork(Struct, frozen=True):
    """The `PodNetwork` of a node without a podCIDR."""

    number: int

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def size(self) -> int:
        return MAX_PODS if self.number <= NODES_WITH_BLOCKS else _BLOCK

    def address_at(self, number: int) -> str:
        return pod_address(self.number, number)


class PodCIDRNetwork(Struct, frozen=True):
    """The `PodNetwork` of a podCIDR."""

    network: IPv4Network | IPv6Network

    @property
    def name(self) -> str:
        return str(self.network)

    @property
    def size(self) -> int:
        is_four = isinstance(self.network, IPv4Network)
        return max(0, min(self.network.num_addresses - _RESERVED - is_four, _MAX_PODS_IN_CIDR))

    def address_at(self, number: int) -> str:
        return str(self.network.network_address + _RESERVED + number)


@lru_cache(maxsize=4096)
def pod_networks(pod_cidrs: Sequence[str]) -> tuple[PodCIDRNetwork, ...]:
    """Return the networks of a node's podCIDRs."""
    return tuple(PodCIDRNetwork(ip_network(text, strict=False)) for text in pod_cidrs)


def matching_addresses(address: str, networks: Sequence[PodCIDRNetwork]) -> tuple[str, ...]:
    """Return the address in the first network, and the addresses with the same offset in the other networks."""
    first, *others = networks
    offset = int(ip_address(address)) - int(first.network.network_address) - _RESERVED
    return (address, *(other.address_at(offset) for other in others if 0 <= offset < other.size))


class PodAddresses:
    """The addresses of all pods. Addresses are allocated in turn, so that a released one is not soon used again."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._next_numbers: dict[str, int] = {}

    def allocate(self, uid: str, network: PodNetwork) -> str:
        """Return the pod's address; allocate one in the network if it has none."""
        if uid not in self._addresses:
            self.record(uid, self._find_free_address(network))
        return self._addresses[uid]

    def record(self, uid: str, address: str) -> None:
        """Record the address that a pod has."""
        self.release(uid)
        self._addresses[uid] = address
        self._uids.setdefault(address, uid)

    def release(self, uid: str) -> None:
        address = self._addresses.pop(uid, None)
        if address is not None and self._uids.get(address) == uid:
            del self._uids[address]

    def _find_free_address(self, network: PodNetwork) -> str:
        size = network.size
        first = self._next_numbers.get(network.name, 0)
        for number in range(first, first + size):
            address = network.address_at(number % size)
            if address not in self._uids:
                self._next_numbers[network.name] = (number + 1) % size
                return address
        raise NoAddressLeft
