"""The objects of the API that the network reads, and the two ends of a connection."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Protocol

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

Address = IPv4Address | IPv6Address


class ClusterView(Protocol):
    """The objects of a cluster, by what a connection knows of them."""

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace; None if it does not exist."""

    def service(self, namespace: str, name: str) -> ReadOnlyTree | None: ...

    def services_at(self, address: str) -> Sequence[ReadOnlyTree]:
        """Return the Services with a cluster IP, an external IP or a load balancer's address to which nodes lead."""

    def services_on_node_port(self, port: int) -> Sequence[ReadOnlyTree]: ...

    def slices(self, namespace: str, service: str) -> Sequence[ReadOnlyTree]:
        """Return the EndpointSlices of a Service."""

    def services_of_endpoint(self, address: str) -> Sequence[tuple[str, str]]:
        """Return namespace and name of the Services that have an endpoint at the address."""

    def rules_on(self, node: str) -> "ClusterView":
        """Return the view by which kube-proxy has written the rules of a node: an earlier one if it does not run there any more."""

    def pods_that_speak(self, protocol: str) -> Sequence[ReadOnlyTree]:
        """Return the pods that have not ended and have an image whose server speaks a protocol, such as redis."""

    def pod_at(self, address: str) -> ReadOnlyTree | None:
        """Return the pod with the address that has a network of its own, and has not ended."""

    def node_at(self, address: str) -> ReadOnlyTree | None: ...

    def zone_of(self, node: str) -> str:
        """Return the zone of a node; "" if none is known."""

    def pods_on_host(self, node: str) -> Sequence[ReadOnlyTree]:
        """Return the pods that use the network of a node."""

    def pods_with_host_port(self, node: str, port: int) -> Sequence[ReadOnlyTree]:
        """Return the pods with networks of their own to which a node maps one of its ports."""

    def policies(self, namespace: str) -> Sequence[ReadOnlyTree]:
        """Return the NetworkPolicies of a namespace."""

    def ingresses(self) -> Sequence[ReadOnlyTree]: ...

    def ingress_controller(self, name: str) -> str:
        """Return the controller of an IngressClass, or of the default one for ""; "" if there is none."""


class SyncedView(ClusterView, Protocol):
    """A view over caches that are filled on first use."""

    async def wait_synced(self) -> None: ...

    def rules_of_nodes(self) -> ClusterView:
        """Return the view by which nodes lead what arrives from outside: an earlier one once kube-proxy runs on no node any more."""

    def on_other_rules(self, callback: Callable[[], None]) -> None:
        """Call a function when `rules_of_nodes` returns another view."""


class Peer(Struct, frozen=True, kw_only=True):
    """One end of a connection."""

    address: str
    pod: ReadOnlyTree | None = None
    """None for a node, for a pod in the network of its node, and outside of the cluster."""
    node: str = ""
    addresses: tuple[str, ...] = ()
    """The addresses of a pod, or of the node whose network it is in, if it has several."""

    def address_like(self, other: str) -> str:
        """Return the address of the same version of IP as another one; the first address if there is none."""
        return next((one for one in self.addresses if (":" in one) is (":" in other)), self.address)

    @property
    def namespace(self) -> str:
        return meta.namespace(self.pod) if self.pod is not None else ""


def peer_of(pod: ReadOnlyTree) -> Peer:
    """Return the end of a pod's connections; policies do not apply to pods in the network of their node."""
    status, spec = pod.get("status") or {}, pod["spec"]
    node = spec.get("nodeName") or ""
    if spec.get("hostNetwork"):
        addresses = _several(status.get("hostIPs"))
        return Peer(address=status.get("hostIP") or status.get("podIP") or "", node=node, addresses=addresses)
    addresses = _several(status.get("podIPs"))
    return Peer(address=status.get("podIP") or "", pod=pod, node=node, addresses=addresses)


def _several(entries: Sequence[ReadOnlyTree] | None) -> tuple[str, ...]:
    return tuple(entry["ip"] for entry in entries) if entries and len(entries) > 1 else ()


def parse_address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
