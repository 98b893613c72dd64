"""The allocation of one range of addresses in parts of equal size."""

from ipaddress import IPv4Network, IPv6Network

from mockube.controller_manager.config.networks import NodeRange

Network = IPv4Network | IPv6Network


class CIDROutOfRange(ValueError):
    """A network is not part of the cluster's range."""


class RangeFull(Exception):
    """All parts of the range are allocated."""

    def __init__(self) -> None:
        super().__init__(
            "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"
        )


class CidrSet:
    """The parts of a range, and which of them are allocated. Released parts are allocated again last."""

    def __init__(self, node_range: NodeRange) -> None:
        self._network, self._mask = node_range
        self._size = 1 << (self._mask - self._network.prefixlen)
        self._width = 1 << (self._network.max_prefixlen - self._mask)
        self._used: set[int] = set()
        self._next = 0

    def allocate(self) -> Network:
        if len(self._used) == self._size:
            raise RangeFull
        while self._next in self._used:
            self._next = (self._next + 1) % self._size
        index, self._next = self._next, (self._next + 1) % self._size
        self._used.add(index)
        address = self._network.network_address + index * self._width
        return type(self._network)((int(address), self._mask))

    def occupy(self, network: Network) -> None:
        self._used.update(self._parts(network))

    def release(self, network: Network) -> None:
        self._used.difference_update(self._parts(network))

    def overlaps(self, network: Network) -> bool:
        return network.version == self._network.version and network.overlaps(self._network)

    def _parts(self, network: Network) -> range:
        if not self.overlaps(network):
            raise CIDROutOfRange(f"cidr {network} is out the range of cluster cidr {self._network}")
        if network.prefixlen <= self._network.prefixlen:
            return range(self._size)
        first = int(network.network_address) - int(self._network.network_address)
        last = int(network.broadcast_address) - int(self._network.network_address)
        return range(first // self._width, last // self._width + 1)
