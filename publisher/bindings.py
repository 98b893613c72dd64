"""Where each port of a Service is published on this machine. Pure; `mockube url` reads it, too.

A node port is published on the address of all nodes, `--publish-address`. A load balancer has its own address on this machine if its
range is one of loopback addresses, as `mockube up` sets it on Linux; otherwise it has a port of `--publish-address`. The port is the
first of some that can be had: `record` says which, if it is another one than the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.client.resources import Key
from mockube.network.services import is_in_source_ranges, source_ranges

NAME: Final = "service-publisher"
RECORD: Final = Key(NAMESPACE_SYSTEM, "mockube-published-ports")
ADDRESS: Final = "address"
LOAD_BALANCERS: Final = "load-balancers"
HTTP: Final = "http"
HTTPS: Final = "https"
NONE: Final = "none: "
"""What begins the value of a port that is not published, before the reason."""
UNPRIVILEGED: Final = 8000
"""What is added to the number of a port that this process may not have: 80 becomes 8080, 443 becomes 8443."""
ANY_PORT: Final = 0
_TCP: Final = "TCP"
_API_SERVER: Final = Key("default", "kubernetes")


class PublishedPort(Struct, frozen=True, kw_only=True):
    """A port of a Service that is published."""

    namespace: str
    service: str
    port: int
    """The port of the Service."""
    name: str
    """The name of that port; "" without one."""
    node_port: int = 0
    """The node port; 0 for the load balancer."""
    address: str
    """The address of this machine."""
    candidates: tuple[int, ...]
    """The ports of this machine in the order in which they are tried."""

    @property
    def key(self) -> str:
        """The key of the port in the ConfigMap, and the order of the ports."""
        kind = "node-port" if self.node_port else "load-balancer"
        return f"{self.namespace}.{self.service}.{self.port}.{kind}"

    @property
    def description(self) -> str:
        """What is published, for a message."""
        return f"node port {self.node_port}" if self.node_port else f"port {self.port} of the load balancer"


class Endpoint(NamedTuple):
    """An address and a port of this machine."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Endpoint":
        """Read what `__str__` returns."""
        address, _, port = text.rpartition(":")
        return cls(address.strip("[]"), int(port))


def published_ports(service: ReadOnlyTree, *, address: str, balancers: str) -> Sequence[PublishedPort]:
    """Return the ports of a Service that are published: TCP only. `balancers` is the range of load balancers."""
    spec = service.get("spec") or {}
    if spec.get("type") not in ("NodePort", "LoadBalancer") or Key.of(service) == _API_SERVER:
        return ()
    return [*_ports(service, address, balancers)]


def _ports(service: ReadOnlyTree, address: str, balancers: str) -> Iterator[PublishedPort]:
    namespace, name = Key.of(service)
    balanced = _balancer_address(service, address, balancers)
    for port in service["spec"].get("ports") or ():
        if (port.get("protocol") or _TCP) != _TCP:
            continue
        published = PublishedPort(
            namespace=namespace,
            service=name,
            port=port["port"],
            name=port.get("name") or "",
            address=balanced,
            candidates=candidates(port["port"]),
        )
        if node_port := port.get("nodePort"):
            tried = (node_port, ANY_PORT)
            yield replace(published, node_port=node_port, address=address, candidates=tried)
        if balanced:
            yield published


def candidates(port: int) -> tuple[int, ...]:
    """Return the ports of this machine that may stand for a port, the first one that can be had."""
    replacement = port + UNPRIVILEGED
    return (port, replacement, ANY_PORT) if port < 1024 else (port, ANY_PORT)


def problem_of_client(service: ReadOnlyTree, address: str) -> str:
    """Return why the load balancer of a Service does not answer a client; "" if it does."""
    if is_in_source_ranges(service, address):
        return ""
    ranges = ", ".join(source_ranges(service))
    return f"no answer to {address}, which is not in the Service's loadBalancerSourceRanges: {ranges}"


def problem_of_balancer(service: ReadOnlyTree, address: str, balancers: str) -> str:
    """Return why the load balancer of a Service is not served at an address; "" if it is, or if it needs none."""
    if service["spec"].get("type") != "LoadBalancer" or _balancer_address(service, address, balancers):
        return ""
    assigned = _assigned(service)
    if assigned is None:
        return "its load balancer has no address"
    return f"the address {assigned or 'of its load balancer'} is not one of {balancers}, which this machine serves"


def _assigned(service: ReadOnlyTree) -> str | None:
    """Return the address of a Service's load balancer; "" if it has a name only, None if it has neither."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return next((entry["ip"] for entry in ingress if entry.get("ip")), "" if ingress else None)


def _balancer_address(service: ReadOnlyTree, address: str, balancers: str) -> str:
    """Return the address of this machine for a Service's load balancer; "" if it has none."""
    assigned = _assigned(service)
    if service["spec"].get("type") != "LoadBalancer" or assigned is None:
        return ""
    if not _is_loopback_network(balancers) or not ip_address(address).is_loopback:
        return address
    # The ports of other addresses, such as 127.0.0.1, are those of other programs.
    return assigned if _is_in(assigned, balancers) else ""


def _is_loopback_network(balancers: str) -> bool:
    try:
        return ip_network(balancers).is_loopback
    except ValueError:
        return False


def _is_in(address: str, network: str) -> bool:
    try:
        return ip_address(address) in ip_network(network)
    except ValueError:
        return False


def endpoint_of(port: PublishedPort, record: Mapping[str, str]) -> Endpoint:
    """Return where a port is published, by the record of replaced ports."""
    replaced = record.get(port.key)
    return Endpoint.parse(replaced) if replaced else Endpoint(port.address, port.candidates[0])
