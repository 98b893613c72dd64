"""Cluster IPs: which of a range is free, and the IPAddress object that names the Service."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from mockube.apimachinery import randomness
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.addresses import Network
from mockube.apiserver.registry.backend import Backend

Address: TypeAlias = IPv4Address | IPv6Address

IP_ADDRESSES = GroupResource("networking.k8s.io", "ipaddresses")
LEAST_STATIC, MOST_STATIC = 16, 256
"""Addresses at the beginning of a range that are allocated last, so that clients can choose among them."""


def family(network: Network) -> str:
    return f"IPv{network.version}"


def contains(network: Network, text: str) -> bool:
    """Return whether an address can be allocated: a range's first is the network's own, and IPv4's last is broadcast."""
    address = ip_address(text)
    if address not in network or address == network.network_address:
        return False
    return network.version == 6 or address != network.broadcast_address


def find_free_address(backend: Backend, network: Network, source: Random) -> str:
    """Return a free address according to the watch cache; "" if there is none."""
    used_count = len(backend.all_seen(IP_ADDRESSES))
    for band in _bands(network):
        for address in _candidates(network, band, used_count + 1, source):
            if backend.find_cached(IP_ADDRESSES, "", address) is None:
                return address
    return ""


def _bands(network: Network) -> Sequence[range]:
    """Offsets in the range: those for dynamic allocation first."""
    size = network.num_addresses - (1 if network.version == 4 else 0)
    static = min(max(LEAST_STATIC, size // 16), MOST_STATIC)
    if size <= LEAST_STATIC:
        static = 0
    return range(static + 1, size), range(1, static + 1)


def _candidates(network: Network, band: range, most: int, source: Random) -> Iterator[str]:
    """Addresses from a random one on, round and round; after as many as are taken there must have been a free one."""
    count = max(
        band.stop - band.start, 0
    )  # beyond what len() returns, of a network with 64 bits of addresses
    start = int(randomness.fraction(source) * count)
    for step in range(min(most, count)):
        yield str(network.network_address + band[(start + step) % count])


def record(address: str, *, namespace: str, name: str, uid: str, now: datetime) -> Tree:
    """The IPAddress object of an address that a Service has."""
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address,
            "uid": uid,
            "creationTimestamp": format_time(now),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": f"IPv{ip_address(address).version}",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    }
