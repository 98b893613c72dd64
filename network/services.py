"""Where a connection to an address and a port leads: the endpoints of a Service, a pod, a node, or nowhere.

The rules are kube-proxy's in its mode iptables: a Service without ready endpoints refuses, a port that no Service has at a
cluster IP does not answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from hashlib import sha256
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree

from .policies import TCP, contains
from .view import Address, ClusterView, Peer, parse_address, peer_of

_API_SERVER: Final = ("default", "kubernetes")
KUBELET_HEALTH_PORT: Final = 10248
"""The port at which a kubelet answers `/healthz` to programs of its node, without TLS."""
_KUBELET_PORT: Final = 10250
"""The port of kubelets whose node does not say one."""
_LOCALHOST: Final = ("127.0.0.1", "::1")
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
"""The `hostIP` of ports that a node maps at each of its addresses."""


class Outcome(Enum):
    """What happens to a connection."""

    OPEN = "open"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    """Packets are dropped."""
    UNREACHABLE = "unreachable"
    """No host has the address."""
    OUTSIDE = "outside"
    """The address is not one of the cluster, so that nobody can know."""


class RouteTarget(Struct, frozen=True, kw_only=True):
    """An end of a connection behind Services."""

    peer: Peer
    port: int
    pod: ReadOnlyTree | None = None
    """The pod that serves the port, also one in the network of its node."""
    is_api_server: bool = False
    kubelet: str = ""
    """The node whose kubelet has the port."""
    checked: ReadOnlyTree | None = None
    """The Service whose `healthCheckNodePort` it is: kube-proxy answers how many of its endpoints are on the node."""


def address_of(target: RouteTarget, address: str) -> str:
    """Return the address of a target that has the version of IP of a client's; "" if it has none."""
    status = (target.pod or {}).get("status") or {}
    entries = status.get("hostIPs" if target.peer.pod is None else "podIPs") or [{"ip": target.peer.address}]
    found = next((entry["ip"] for entry in entries if (":" in entry["ip"]) is (":" in address)), "")
    return str(parse_address(found)) if found else ""


class Route(Struct, frozen=True, kw_only=True):
    """The targets among which a connection is balanced, or why there are none."""

    outcome: Outcome = Outcome.OPEN
    targets: tuple[RouteTarget, ...] = ()


def route(view: ClusterView, source: Peer, address: str, port: int, protocol: str = TCP) -> Route:
    """Return where a connection of `source` to an address and a port leads."""
    view = view.rules_on(source.node)
    parsed = parse_address(address)
    if parsed is None:
        return Route(outcome=Outcome.UNREACHABLE)
    # A load balancer that is published on this machine has an address such as 127.10.0.1, which no pod has of its own.
    services = () if address in _LOCALHOST else view.services_at(address)
    if (parsed.is_loopback and not services) or address == source.address:
        return _local_route(view, source, address, port, protocol)
    for service in services:
        for service_port in _ports(service):
            if service_port["port"] == port and (service_port.get("protocol") or TCP) == protocol:
                return _address_route(view, source, service, service_port, parsed)
    if services:
        return Route(outcome=Outcome.TIMEOUT)
    pod = view.pod_at(address)
    if pod is not None:
        return Route(targets=(RouteTarget(peer=peer_of(pod), port=port, pod=pod),))
    node = view.node_at(address)
    if node is not None:
        return _node_route(view, source, node, address, port, protocol)
    return Route(outcome=Outcome.OUTSIDE if parsed.is_global else Outcome.UNREACHABLE)


def _local_route(view: ClusterView, source: Peer, address: str, port: int, protocol: str) -> Route:
    if source.pod is not None:
        return Route(targets=(RouteTarget(peer=source, port=port, pod=source.pod),))
    node = view.node_at(source.address)
    if node is None:
        return _host_route(view, source.node, address, port, protocol)
    if protocol == TCP and port == KUBELET_HEALTH_PORT and address != source.address:
        peer = Peer(address=address, node=meta.name(node))
        return Route(targets=(RouteTarget(peer=peer, port=port, kubelet=meta.name(node)),))
    return _node_route(view, source, node, address, port, protocol)


def _host_route(view: ClusterView, node: str, address: str, port: int, protocol: str) -> Route:
    """Return the route to a port that the node maps to a pod, or that a pod serves in the network of its node."""
    for pod in view.pods_with_host_port(node, port):
        for declared in _host_ports(pod):
            if (declared["hostPort"], declared.get("protocol") or TCP) == (port, protocol) and (
                declared.get("hostIP") or address
            ) in (address, *_ANY_ADDRESS):
                target = RouteTarget(peer=peer_of(pod), port=declared["containerPort"], pod=pod)
                return Route(targets=(target,))
    peer = Peer(address=address, node=node)
    targets = [RouteTarget(peer=peer, port=port, pod=pod) for pod in view.pods_on_host(node)]
    return Route(targets=tuple(targets)) if targets else Route(outcome=Outcome.REFUSED)


def _host_ports(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the ports of a pod's containers that its node maps to them."""
    for container in every_container(pod["spec"]):
        yield from (port for port in container.get("ports") or () if port.get("hostPort"))


def _node_route(
    view: ClusterView, source: Peer, node: ReadOnlyTree, address: str, port: int, protocol: str
) -> Route:
    for service in view.services_on_node_port(port):
        for service_port in _ports(service):
            if service_port.get("nodePort") == port and (service_port.get("protocol") or TCP) == protocol:
                name = meta.name(node)
                # kube-proxy leads what pods and the node itself send as from inside of the cluster.
                is_inside = source.pod is not None or source.node == name
                is_local = service["spec"].get("externalTrafficPolicy") == "Local" and not is_inside
                version = _version(address)
                return _service_route(
                    view, source, service, service_port, name, is_local=is_local, version=version
                )
        if protocol == TCP and service["spec"].get("healthCheckNodePort") == port:
            peer = Peer(address=address, node=meta.name(node))
            return Route(targets=(RouteTarget(peer=peer, port=port, checked=service),))
    name = meta.name(node)
    if protocol == TCP and port == _kubelet_port(node):
        peer = Peer(address=address, node=name)
        return Route(targets=(RouteTarget(peer=peer, port=port, kubelet=name),))
    return _host_route(view, name, address, port, protocol)


def _kubelet_port(node: ReadOnlyTree) -> int:
    endpoints = (node.get("status") or {}).get("daemonEndpoints") or {}
    return int((endpoints.get("kubeletEndpoint") or {}).get("Port") or _KUBELET_PORT)


def _ports(service: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return service["spec"].get("ports") or ()


def _address_route(
    view: ClusterView, source: Peer, service: ReadOnlyTree, service_port: ReadOnlyTree, address: Address
) -> Route:
    """Return the route to a Service's port at one of its own addresses, from inside of the cluster.

    `internalTrafficPolicy` is about cluster IPs alone, and `externalTrafficPolicy` not about clients inside.
    """
    spec = service["spec"]
    cluster_ips = [spec.get("clusterIP"), *(spec.get("clusterIPs") or ())]
    if address in map(parse_address, filter(None, cluster_ips)):
        is_local = spec.get("internalTrafficPolicy") == "Local"
        return _service_route(
            view, source, service, service_port, source.node, is_local=is_local, version=address.version
        )
    is_balanced = address not in map(parse_address, spec.get("externalIPs") or ())
    if is_balanced and not is_in_source_ranges(service, source.address):
        return Route(outcome=Outcome.TIMEOUT)
    return _service_route(view, source, service, service_port, source.node, version=address.version)


def _service_route(  # noqa: PLR0913 - each argument is a condition of the rules
    view: ClusterView,
    source: Peer,
    service: ReadOnlyTree,
    service_port: ReadOnlyTree,
    node: str,
    *,
    version: int,
    is_local: bool = False,
) -> Route:
    """Return the route to a Service's port by the rules of a node for a version of IP; `is_local` restricts it to the endpoints there."""
    targets = [*endpoints(view, service, service_port, node, is_local=is_local, version=version)]
    if not targets and is_local and [*endpoints(view, service, service_port, version=version)]:
        return Route(outcome=Outcome.TIMEOUT)
    if not targets and (meta.namespace(service), meta.name(service)) == _API_SERVER:
        # An API server that serves this machine only has no endpoint.
        peer = Peer(address=service["spec"].get("clusterIP") or "")
        return Route(targets=(RouteTarget(peer=peer, port=service_port["port"], is_api_server=True),))
    return _balanced(source, service, targets)


def external_route(
    view: ClusterView, client: Peer, service: ReadOnlyTree, service_port: ReadOnlyTree, *, is_balanced: bool
) -> Route:
    """Return where a connection from outside of the cluster leads by a node port, or by the load balancer if it `is_balanced`.

    It enters at a node with an endpoint, as by a load balancer that checks its nodes: then `externalTrafficPolicy: Local` leaves out
    no endpoint. `internalTrafficPolicy` is not about it.
    """
    if is_balanced and not is_in_source_ranges(service, client.address):
        return Route(outcome=Outcome.TIMEOUT)
    return _balanced(client, service, [*endpoints(view, service, service_port)])


def is_in_source_ranges(service: ReadOnlyTree, address: str) -> bool:
    """Return whether the load balancer of a Service serves the client at an address."""
    ranges = source_ranges(service)
    return not ranges or any(contains(cidr, address) for cidr in ranges)


def source_ranges(service: ReadOnlyTree) -> Sequence[str]:
    """Return the only ranges of clients that the load balancer of a Service serves; none of them for all clients."""
    return service["spec"].get("loadBalancerSourceRanges") or _ranges_of_annotation(service)


def _ranges_of_annotation(service: ReadOnlyTree) -> Sequence[str]:
    text = meta.annotations(service).get("service.beta.kubernetes.io/load-balancer-source-ranges", "")
    return [part.strip() for part in text.split(",") if part.strip()]


def _balanced(source: Peer, service: ReadOnlyTree, targets: Sequence[RouteTarget]) -> Route:
    """Return the route to some endpoints of a Service, by its session affinity."""
    if not targets:
        return Route(outcome=Outcome.REFUSED)
    if service["spec"].get("sessionAffinity") == "ClientIP":
        targets = [max(targets, key=lambda target: _affinity(source, target))]
    return Route(targets=tuple(targets))


def local_endpoints(view: ClusterView, service: ReadOnlyTree, node: str) -> int:
    """Return how many endpoints of a Service are ready on a node, by the rules that its kube-proxy has."""
    slices = view.rules_on(node).slices(meta.namespace(service), meta.name(service))
    found = (endpoint for tree in slices for endpoint in tree.get("endpoints") or ())
    return len(
        {
            tuple(endpoint.get("addresses") or ())
            for endpoint in found
            if endpoint.get("nodeName") == node and has_condition(endpoint, "ready")
        }
    )


def _affinity(source: Peer, target: RouteTarget) -> bytes:
    """Return the rank of an endpoint for a client: the highest stays the same while the endpoint exists."""
    return sha256(f"{source.address} {target.peer.address}".encode()).digest()


def endpoints(
    view: ClusterView,
    service: ReadOnlyTree,
    service_port: ReadOnlyTree,
    node: str = "",
    *,
    is_local: bool = False,
    version: int = 0,
) -> Iterator[RouteTarget]:
    """Yield the endpoints that get the traffic of a Service's port: the ready ones, or else those that end and still serve.

    By the rules of a node these are the ready ones that are hinted for it; `is_local` restricts them to those on it, and `version` to
    those with addresses of a version of IP.
    """
    namespace, name = meta.namespace(service), meta.name(service)
    is_api_server = (namespace, name) == _API_SERVER
    found = [
        endpoint
        for endpoint in _slice_endpoints(view.slices(namespace, name), service_port)
        if (not is_local or endpoint.node == node) and version in (0, _version(endpoint.address))
    ]
    ready = [endpoint for endpoint in found if has_condition(endpoint.tree, "ready")]
    if ready and not is_local:
        ready = _preferred(ready, node, view.zone_of(node))
    for endpoint in ready or [endpoint for endpoint in found if has_condition(endpoint.tree, "serving")]:
        address, port = endpoint.address, endpoint.port
        pod = view.pod_at(address)
        if pod is None and not is_api_server:
            hosted = view.node_at(address)
            pod = _host_pod(view, meta.name(hosted), port) if hosted is not None else None
        peer = peer_of(pod) if pod is not None else Peer(address=address, node=endpoint.node)
        yield RouteTarget(peer=peer, port=port, pod=pod, is_api_server=is_api_server and pod is None)


def _version(address: str) -> int:
    return 6 if ":" in address else 4


class _Endpoint(Struct, frozen=True):
    address: str
    port: int
    node: str
    tree: ReadOnlyTree

    def hints(self, kind: str) -> frozenset[str]:
        """Return the names of the nodes or zones for which the endpoint is hinted."""
        return frozenset(entry["name"] for entry in (self.tree.get("hints") or {}).get(kind) or ())


def _preferred(ready: Sequence[_Endpoint], node: str, zone: str) -> list[_Endpoint]:
    """Return the endpoints that are hinted for a node, or for its zone; all if one has no hint, or none this one."""
    for kind, name in (("forNodes", node), ("forZones", zone)):
        hinted = [endpoint for endpoint in ready if name in endpoint.hints(kind)]
        if hinted and all(endpoint.hints(kind) for endpoint in ready):
            return hinted
    return [*ready]


def _host_pod(view: ClusterView, node: str, port: int) -> ReadOnlyTree | None:
    """Return the pod in the network of a node that declares a port."""
    return next(
        (
            pod
            for pod in view.pods_on_host(node)
            for container in pod["spec"]["containers"]
            for declared in container.get("ports") or ()
            if declared["containerPort"] == port
        ),
        None,
    )


def _slice_endpoints(slices: Iterable[ReadOnlyTree], service_port: ReadOnlyTree) -> Iterator[_Endpoint]:
    """Yield the endpoints of a Service's port, once each: those that are ready first."""
    seen = set[tuple[str, int]]()
    protocol = service_port.get("protocol") or TCP
    found = [(tree, endpoint) for tree in slices for endpoint in tree.get("endpoints") or ()]
    for tree, endpoint in sorted(found, key=lambda each: not has_condition(each[1], "ready")):
        ports = [
            port["port"]
            for port in tree.get("ports") or ()
            if (port.get("name") or "") == (service_port.get("name") or "")
            and (port.get("protocol") or TCP) == protocol
            and port.get("port")
        ]
        for address in (endpoint.get("addresses") or ())[:1]:
            for port in ports:
                if (address, port) not in seen:
                    seen.add((address, port))
                    yield _Endpoint(address, port, endpoint.get("nodeName") or "", endpoint)


def has_condition(endpoint: ReadOnlyTree, condition: str) -> bool:
    """Return whether an endpoint is ready or serving; one that does not say is."""
    return (endpoint.get("conditions") or {}).get(condition) is not False
