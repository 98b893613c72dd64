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
from .view import ClusterView, Peer, parse_address, peer_of

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
                return _service_route(view, source, service, service_port)
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
    if protocol == TCP and port == KUBELET_HEALTH_PORT:
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
                is_local = service["spec"].get("externalTrafficPolicy") == "Local"
                return _service_route(
                    view, source, service, service_port, local_to=meta.name(node) if is_local else None
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


def _service_route(
    view: ClusterView,
    source: Peer,
    service: ReadOnlyTree,
    service_port: ReadOnlyTree,
    *,
    local_to: str | None = None,
) -> Route:
    """Return the route to a Service's port; `local_to` is the node whose endpoints alone are used."""
    spec = service["spec"]
    if local_to is None and spec.get("internalTrafficPolicy") == "Local":
        local_to = source.node
    targets = [*endpoints(view, service, service_port)]
    if not targets and (meta.namespace(service), meta.name(service)) == _API_SERVER:
        # An API server that serves this machine only has no endpoint.
        peer = Peer(address=spec.get("clusterIP") or "")
        return Route(targets=(RouteTarget(peer=peer, port=service_port["port"], is_api_server=True),))
    if not targets:
        return Route(outcome=Outcome.REFUSED)
    if local_to is not None:
        targets = [target for target in targets if target.peer.node == local_to]
        if not targets:
            return Route(outcome=Outcome.TIMEOUT)
    return _balanced(source, service, targets)


def external_route(
    view: ClusterView, client: Peer, service: ReadOnlyTree, service_port: ReadOnlyTree, *, is_balanced: bool
) -> Route:
    """Return where a connection from outside of the cluster leads by a node port, or by the load balancer if it `is_balanced`.

    It enters at a node with an endpoint, as by a load balancer that checks its nodes: then `externalTrafficPolicy: Local` leaves out
    no endpoint. `internalTrafficPolicy` is not about it.
    """
    ranges = service["spec"].get("loadBalancerSourceRanges") or _ranges_of_annotation(service)
    if is_balanced and ranges and not any(contains(cidr, client.address) for cidr in ranges):
        return Route(outcome=Outcome.TIMEOUT)
    return _balanced(client, service, [*endpoints(view, service, service_port)])


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
    """Return how many endpoints of a Service are on a node, by the rules that its kube-proxy has."""
    rules = view.rules_on(node)
    ports = service["spec"].get("ports") or ()
    return max(
        (sum(each.peer.node == node for each in endpoints(rules, service, port)) for port in ports), default=0
    )


def _affinity(source: Peer, target: RouteTarget) -> bytes:
    """Return the rank of an endpoint for a client: the highest stays the same while the endpoint exists."""
    return sha256(f"{source.address} {target.peer.address}".encode()).digest()


def endpoints(view: ClusterView, service: ReadOnlyTree, service_port: ReadOnlyTree) -> Iterator[RouteTarget]:
    """Yield the endpoints that get the traffic of a Service's port: the ready ones, or else those that end and still serve."""
    namespace, name = meta.namespace(service), meta.name(service)
    slices = view.slices(namespace, name)
    is_api_server = (namespace, name) == _API_SERVER
    endpoint_ports = [*_slice_endpoints(slices, service_port, "ready")] or [
        *_slice_endpoints(slices, service_port, "serving")
    ]
    for address, port, node in endpoint_ports:
        pod = view.pod_at(address)
        if pod is None and not is_api_server:
            hosted = view.node_at(address)
            pod = _host_pod(view, meta.name(hosted), port) if hosted is not None else None
        peer = peer_of(pod) if pod is not None else Peer(address=address, node=node)
        yield RouteTarget(peer=peer, port=port, pod=pod, is_api_server=is_api_server and pod is None)


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


def _slice_endpoints(
    slices: Iterable[ReadOnlyTree], service_port: ReadOnlyTree, condition: str
) -> Iterator[tuple[str, int, str]]:
    """Yield address, port and node of the endpoints with a condition, once each."""
    seen = set[tuple[str, int]]()
    protocol = service_port.get("protocol") or TCP
    for tree in slices:
        ports = [
            port["port"]
            for port in tree.get("ports") or ()
            if (port.get("name") or "") == (service_port.get("name") or "")
            and (port.get("protocol") or TCP) == protocol
            and port.get("port")
        ]
        for endpoint in tree.get("endpoints") or ():
            if not has_condition(endpoint, condition):
                continue
            for address in (endpoint.get("addresses") or ())[:1]:
                for port in ports:
                    if (address, port) not in seen:
                        seen.add((address, port))
                        yield address, port, endpoint.get("nodeName") or ""


def has_condition(endpoint: ReadOnlyTree, condition: str) -> bool:
    """Return whether an endpoint is ready or serving; one that does not say is."""
    return (endpoint.get("conditions") or {}).get(condition) is not False
