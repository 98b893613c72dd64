"""The addresses of simulated nodes and of the pods on them, out of 10.0.0.0/8: no two pods have the same at one time.

Node n has 10.128.0.n, and its pods 10.244.n.1 to 10.244.n.254; more pods, and more nodes, go on in blocks beside.
Knows no objects: it is told which pod has which address.
"""

from typing import Final

_POD_NETWORK: Final = 244
_BLOCK: Final = 254
_BLOCKS_OF_NODE: Final = 12
_ROW: Final = 256
MOST_NODES: Final = 9 * _ROW - 1
"""There is room for nine rows of nodes, with one to spare, above the network of the nodes themselves."""
MOST_PODS: Final = _BLOCK * _BLOCKS_OF_NODE


class NoAddressLeft(Exception):
    """A node has given away all addresses that it has for pods."""


def node_address(number: int) -> str:
    high, low = divmod(number, _ROW)
    return f"10.128.{high}.{low}"


def pod_address(number: int, pod: int) -> str:
    """The address number `pod` of the node number `number`."""
    row, column = divmod(number, _ROW)
    block, host = divmod(pod, _BLOCK)
    return f"10.{_POD_NETWORK - _BLOCKS_OF_NODE * row + block}.{column}.{host + 1}"


class PodAddresses:
    """Who has which address. Addresses that were given back are the last to be given away again."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._held: dict[str, str] = {}
        self._next: dict[int, int] = {}

    def of(self, uid: str, node_number: int) -> str:
        """The pod's address: the one it has, or a new one on its node."""
        if uid not in self._held:
            self.note(uid, self._free(node_number))
        return self._held[uid]

    def note(self, uid: str, address: str) -> None:
        """The pod has this address, whoever gave it."""
        self.release(uid)
        self._held[uid] = address
        self._holders.setdefault(address, uid)

    def release(self, uid: str) -> None:
        address = self._held.pop(uid, None)
        if address is not None and self._holders.get(address) == uid:
            del self._holders[address]

    def _free(self, node_number: int) -> str:
        first = self._next.get(node_number, 0)
        for at in range(first, first + MOST_PODS):
            address = pod_address(node_number, at % MOST_PODS)
            if address not in self._holders:
                self._next[node_number] = (at + 1) % MOST_PODS
                return address
        raise NoAddressLeft
