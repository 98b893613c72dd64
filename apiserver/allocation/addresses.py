"""Cluster IPs: find a free address in a range, and build the IPAddress object that records its Service."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from ipaddress import ip_address

from mockube.apimachinery import randomness
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.addresses import Network
from mockube.apiserver.registry.registry import Backend

IP_ADDRESSES = GroupResource("networking.k8s.io", "ipaddresses")
MIN_STATIC, MAX_STATIC = 16, 256
"""Bounds of the number of addresses at the start of a range that are allocated last, so that clients can choose them."""

_FIELDS: Tree = {
    "f:metadata": {
        "f:labels": {
            ".": {},
            "f:ipaddress.kubernetes.io/ip-family": {},
            "f:ipaddress.kubernetes.io/managed-by": {},
        }
    },
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


def family(network: Network) -> str:
    return f"IPv{network.version}"


def contains(network: Network, text: str) -> bool:
    """Return whether an address can be allocated: neither the network address nor an IPv4 broadcast address can."""
    address = ip_address(text)
    if address not in network or address == network.network_address:
        return False
    return network.version == 6 or address != network.broadcast_address


def find_free_address(backend: Backend, network: Network, source: Random) -> str:
    """Return a free address according to the watch cache; "" if there is none."""
    used_count = len(backend.list_cached(IP_ADDRESSES))
    for band in _bands(network):
        for address in _candidates(network, band, used_count + 1, source):
            if backend.find_cached(IP_ADDRESSES, "", address) is None:
                return address
    return ""


def _bands(network: Network) -> Sequence[range]:
    """Return the offsets in the range: those for dynamic allocation, then the others."""
    size = network.num_addresses - (1 if network.version == 4 else 0)
    static = min(max(MIN_STATIC, size // 16), MAX_STATIC)
    if size <= MIN_STATIC:
        static = 0
    return range(static + 1, size), range(1, static + 1)


def _candidates(network: Network, band: range, limit: int, source: Random) -> Iterator[str]:
    """Yield at most `limit` addresses of a band, in order from a random one.

    Of more addresses than are used, one is free.
    """
    # len(band) overflows if an IPv6 network has 64 bits of addresses.
    count = max(band.stop - band.start, 0)
    start = int(randomness.fraction(source) * count)
    for step in range(min(limit, count)):
        yield str(network.network_address + band[(start + step) % count])


def record(address: str, *, namespace: str, name: str, uid: str, now: datetime) -> Tree:
    """Return the IPAddress object of a Service's address, with the server as the manager of its fields."""
    time = format_time(now)
    manager = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "networking.k8s.io/v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _FIELDS,
    }
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address,
            "uid": uid,
            "creationTimestamp": time,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": f"IPv{ip_address(address).version}",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
            "managedFields": [manager],
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    }
