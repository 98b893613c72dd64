"""The caches of the API's objects that the simulated network reads. They are watched from the first use of the network."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from ipaddress import ip_address
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_ZONE
from mockube.client import kinds
from mockube.client.cache.informer import Informers
from mockube.client.cache.store import Change
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.podview import PodView
from mockube.container_runtime.images.table import ImageTable, protocols_of

_WATCHED: Final = (
    kinds.NAMESPACES,
    kinds.NODES,
    kinds.PODS,
    kinds.SERVICES,
    kinds.ENDPOINT_SLICES,
    kinds.NETWORK_POLICIES,
    kinds.INGRESSES,
    kinds.INGRESS_CLASSES,
)
_RUNNING: Final = "Running"
_PROXY: Final = re.compile(r"(?:^|/)kube-proxy(?:-amd64)?(?:[:@]|$)")
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_BY_ADDRESS: Final = "network-address"
_BY_HOST_PORT: Final = "network-host-port"
_BY_PROTOCOL: Final = "network-protocol"
_BY_NODE_PORT: Final = "network-node-port"
_BY_SERVICE: Final = "network-service"
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


class InformerView:
    """A `ClusterView` over informers."""

    def __init__(self, informers: Informers, images: ImageTable) -> None:
        self._images = images
        self._informers = informers
        self._is_watching = False
        self._proxies: dict[str, set[str]] = {}
        """The uids of the pods of kube-proxy that run on each node."""
        self._old_rules: dict[str, RulesOfNode] = {}
        """The rules of the nodes from which kube-proxy is gone."""
        self._callbacks: list[Callable[[], None]] = []

    async def wait_synced(self) -> None:
        """Watch the objects, and wait until the caches are filled."""
        if not self._is_watching:
            self._is_watching = True
            of = self._informers.of
            of(kinds.PODS).add_index(BY_NODE, node_of_pod)
            of(kinds.PODS).add_index(_BY_ADDRESS, _addresses_of_pod)
            of(kinds.PODS).add_index(_BY_HOST_PORT, _host_ports_of_pod)
            of(kinds.PODS).add_index(_BY_PROTOCOL, partial(_protocols_of_pod, self._images))
            of(kinds.NODES).add_index(_BY_ADDRESS, _addresses_of_node)
            of(kinds.NODES).add_index(_CONTROL_PLANE, _roles_of_node)
            of(kinds.SERVICES).add_index(_BY_ADDRESS, _addresses_of_service)
            of(kinds.SERVICES).add_index(_BY_NODE_PORT, _node_ports)
            of(kinds.ENDPOINT_SLICES).add_index(_BY_SERVICE, _service_of_slice)
            of(kinds.ENDPOINT_SLICES).add_index(_BY_ADDRESS, _addresses_of_slice)
            of(kinds.PODS).add_handler(self._on_pod_change)
            of(kinds.NODES).add_handler(self._on_node_change)
        for resource in _WATCHED:
            await self._informers.of(resource).wait_synced()

    def on_other_rules(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def _on_pod_change(self, change: Change) -> None:
        before = self.rules_of_nodes()
        self._note_proxies(change)
        self._report_other_rules(before)

    def _report_other_rules(self, before: "InformerView | RulesOfNode") -> None:
        if self.rules_of_nodes() is not before:
            for callback in self._callbacks:
                callback()

    def _note_proxies(self, change: Change) -> None:
        """Note when the last kube-proxy of a node ends: the rules of the node stay as they are then."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        if old is not None and (new is None or new.uid != old.uid or new.is_terminal) and _is_proxy(old):
            uids = self._proxies.get(old.node, set())
            uids.discard(old.uid)
            if not uids and self._proxies.pop(old.node, None) is not None:
                lister = (
                    self._informers.of(kinds.SERVICES).lister,
                    self._informers.of(kinds.ENDPOINT_SLICES).lister,
                )
                self._old_rules[old.node] = RulesOfNode(self, *(each.all() for each in lister))
        if new is not None and _is_proxy(new) and new.phase == _RUNNING:
            self._proxies.setdefault(new.node, set()).add(new.uid)
            self._old_rules.pop(new.node, None)

    def _on_node_change(self, change: Change) -> None:
        if change.new is None:
            name, before = meta.name(change.last_known), self.rules_of_nodes()
            self._proxies.pop(name, None)
            self._old_rules.pop(name, None)
            self._report_other_rules(before)

    def rules_on(self, node: str) -> "InformerView | RulesOfNode":
        return self._old_rules.get(node, self)

    def rules_of_nodes(self) -> "InformerView | RulesOfNode":
        if self._proxies or not self._old_rules:
            return self
        return next(reversed(self._old_rules.values()))

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        namespace = self._informers.of(kinds.NAMESPACES).lister.get("", name)
        return None if namespace is None else meta.labels(namespace)

    def service(self, namespace: str, name: str) -> ReadOnlyTree | None:
        return self._informers.of(kinds.SERVICES).lister.get(namespace, name)

    def services_at(self, address: str) -> Sequence[ReadOnlyTree]:
        return self._informers.of(kinds.SERVICES).lister.by_index(_BY_ADDRESS, _canonical(address))

    def services_on_node_port(self, port: int) -> Sequence[ReadOnlyTree]:
        return self._informers.of(kinds.SERVICES).lister.by_index(_BY_NODE_PORT, str(port))

    def slices(self, namespace: str, service: str) -> Sequence[ReadOnlyTree]:
        return self._informers.of(kinds.ENDPOINT_SLICES).lister.by_index(
            _BY_SERVICE, f"{namespace}/{service}"
        )

    def services_of_endpoint(self, address: str) -> Sequence[tuple[str, str]]:
        slices = self._informers.of(kinds.ENDPOINT_SLICES).lister.by_index(_BY_ADDRESS, _canonical(address))
        return [(meta.namespace(tree), meta.labels(tree).get(_SERVICE_NAME, "")) for tree in slices]

    def pods_that_speak(self, protocol: str) -> Sequence[ReadOnlyTree]:
        pods = self._informers.of(kinds.PODS).lister.by_index(_BY_PROTOCOL, protocol)
        return [pod.object for pod in pods]

    def pod_at(self, address: str) -> ReadOnlyTree | None:
        pods = self._informers.of(kinds.PODS).lister.by_index(_BY_ADDRESS, _canonical(address))
        return pods[-1].object if pods else None

    def node_at(self, address: str) -> ReadOnlyTree | None:
        nodes = self._informers.of(kinds.NODES).lister.by_index(_BY_ADDRESS, _canonical(address))
        return nodes[0] if nodes else None

    def zone_of(self, node: str) -> str:
        return _zone_of(self._informers.of(kinds.NODES).lister.get("", node))

    def control_plane_node(self) -> ReadOnlyTree | None:
        """Return the node of the API server; None if that is not one of the cluster's."""
        nodes = self._informers.of(kinds.NODES).lister.by_index(_CONTROL_PLANE, _CONTROL_PLANE)
        return min(nodes, key=meta.name, default=None)

    def pods_on_host(self, node: str) -> Sequence[ReadOnlyTree]:
        pods = self._informers.of(kinds.PODS).lister.by_index(BY_NODE, node)
        return [pod.object for pod in pods if pod.object["spec"].get("hostNetwork") and not pod.is_terminal]

    def pods_with_host_port(self, node: str, port: int) -> Sequence[ReadOnlyTree]:
        pods = self._informers.of(kinds.PODS).lister.by_index(_BY_HOST_PORT, f"{node}/{port}")
        return [pod.object for pod in pods]

    def policies(self, namespace: str) -> Sequence[ReadOnlyTree]:
        return self._informers.of(kinds.NETWORK_POLICIES).lister.in_namespace(namespace)

    def ingresses(self) -> Sequence[ReadOnlyTree]:
        return self._informers.of(kinds.INGRESSES).lister.all()

    def ingress_controller(self, name: str) -> str:
        lister = self._informers.of(kinds.INGRESS_CLASSES).lister
        if name:
            ingress_class = lister.get("", name)
        else:
            defaults = (c for c in lister.all() if meta.annotations(c).get(_DEFAULT_CLASS) == "true")
            ingress_class = next(defaults, None)
        return (ingress_class or {}).get("spec", {}).get("controller") or ""


class RulesOfNode:
    """A `ClusterView` with the Services and endpoints of an earlier time: what the rules of a node without kube-proxy say."""

    def __init__(
        self, present: InformerView, services: Iterable[ReadOnlyTree], slices: Iterable[ReadOnlyTree]
    ) -> None:
        self._present = present
        self._services = tuple(services)
        self._slices = tuple(slices)

    @cached_property
    def _by_address(self) -> Mapping[str, Sequence[ReadOnlyTree]]:
        return _indexed(self._services, _addresses_of_service)

    @cached_property
    def _by_node_port(self) -> Mapping[str, Sequence[ReadOnlyTree]]:
        return _indexed(self._services, _node_ports)

    @cached_property
    def _by_service(self) -> Mapping[str, Sequence[ReadOnlyTree]]:
        return _indexed(self._slices, _service_of_slice)

    def rules_on(self, _: str) -> "RulesOfNode":
        return self

    def service(self, namespace: str, name: str) -> ReadOnlyTree | None:
        key = namespace, name
        return next((each for each in self._services if (meta.namespace(each), meta.name(each)) == key), None)

    def services_at(self, address: str) -> Sequence[ReadOnlyTree]:
        return self._by_address.get(_canonical(address), ())

    def services_on_node_port(self, port: int) -> Sequence[ReadOnlyTree]:
        return self._by_node_port.get(str(port), ())

    def slices(self, namespace: str, service: str) -> Sequence[ReadOnlyTree]:
        return self._by_service.get(f"{namespace}/{service}", ())

    def services_of_endpoint(self, address: str) -> Sequence[tuple[str, str]]:
        return self._present.services_of_endpoint(address)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        return self._present.namespace_labels(name)

    def pods_that_speak(self, protocol: str) -> Sequence[ReadOnlyTree]:
        return self._present.pods_that_speak(protocol)

    def pod_at(self, address: str) -> ReadOnlyTree | None:
        return self._present.pod_at(address)

    def node_at(self, address: str) -> ReadOnlyTree | None:
        return self._present.node_at(address)

    def zone_of(self, node: str) -> str:
        return self._present.zone_of(node)

    def pods_on_host(self, node: str) -> Sequence[ReadOnlyTree]:
        return self._present.pods_on_host(node)

    def pods_with_host_port(self, node: str, port: int) -> Sequence[ReadOnlyTree]:
        return self._present.pods_with_host_port(node, port)

    def policies(self, namespace: str) -> Sequence[ReadOnlyTree]:
        return self._present.policies(namespace)

    def ingresses(self) -> Sequence[ReadOnlyTree]:
        return self._present.ingresses()

    def ingress_controller(self, name: str) -> str:
        return self._present.ingress_controller(name)


def _indexed(
    trees: Iterable[ReadOnlyTree], keys_of: Callable[[ReadOnlyTree], Iterable[str]]
) -> Mapping[str, Sequence[ReadOnlyTree]]:
    index: dict[str, list[ReadOnlyTree]] = {}
    for tree in trees:
        for key in keys_of(tree):
            index.setdefault(key, []).append(tree)
    return index


def _is_proxy(pod: PodView) -> bool:
    """Return whether a pod is one of kube-proxy."""
    spec = pod.object["spec"]
    return bool(spec.get("hostNetwork")) and any(
        _PROXY.search(container.get("image") or "") for container in spec["containers"]
    )


def _canonical(address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def _addresses_of_pod(pod: PodView) -> Iterable[str]:
    """Yield the addresses of a pod that has a network of its own, and has not ended."""
    if pod.is_terminal or pod.object["spec"].get("hostNetwork"):
        return
    status = pod.object.get("status") or {}
    addresses = [entry.get("ip") for entry in status.get("podIPs") or ()] or [status.get("podIP")]
    yield from (_canonical(address) for address in addresses if address)


def _host_ports_of_pod(pod: PodView) -> Iterable[str]:
    """Yield the node and each of its ports that it maps to a pod, unless that uses the network of the node itself."""
    spec = pod.object["spec"]
    if pod.is_terminal or spec.get("hostNetwork"):
        return
    for container in every_container(spec):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield f"{spec.get('nodeName')}/{port['hostPort']}"


def _protocols_of_pod(images: ImageTable, pod: PodView) -> Iterable[str]:
    if pod.is_terminal:
        return ()
    return {
        protocol
        for container in every_container(pod.object["spec"])
        for protocol in protocols_of(images, container)
    }


def _addresses_of_node(node: ReadOnlyTree) -> Iterable[str]:
    for entry in (node.get("status") or {}).get("addresses") or ():
        if entry.get("type") in ("InternalIP", "ExternalIP"):
            yield _canonical(entry["address"])


def _roles_of_node(node: ReadOnlyTree) -> Iterable[str]:
    return (_CONTROL_PLANE,) if _CONTROL_PLANE in meta.labels(node) else ()


def _zone_of(node: ReadOnlyTree | None) -> str:
    return "" if node is None else meta.labels(node).get(LABEL_ZONE, "")


def _addresses_of_service(service: ReadOnlyTree) -> Iterable[str]:
    spec = service.get("spec") or {}
    balanced = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = (*(spec.get("clusterIPs") or (spec.get("clusterIP"),)), *(spec.get("externalIPs") or ()))
    # Nodes leave addresses with the mode Proxy to the load balancer.
    virtual = (entry.get("ip") for entry in balanced if entry.get("ipMode") != "Proxy")
    for text in (*addresses, *virtual):
        if text and text != "None":
            yield _canonical(text)


def _node_ports(service: ReadOnlyTree) -> Iterable[str]:
    spec = service.get("spec") or {}
    ports = (port.get("nodePort") for port in spec.get("ports") or ())
    return (str(port) for port in (*ports, spec.get("healthCheckNodePort")) if port)


def _service_of_slice(tree: ReadOnlyTree) -> Iterable[str]:
    name = meta.labels(tree).get(_SERVICE_NAME)
    return (f"{meta.namespace(tree)}/{name}",) if name else ()


def _addresses_of_slice(tree: ReadOnlyTree) -> Iterable[str]:
    for endpoint in tree.get("endpoints") or ():
        yield from map(_canonical, endpoint.get("addresses") or ())
