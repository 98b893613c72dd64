"""NetworkPolicies: whether a connection between two peers is allowed."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Final, Protocol

from mockube.apimachinery import labels, meta
from mockube.apimachinery.tree import ReadOnlyTree

from .view import Peer, parse_address

INGRESS: Final = "Ingress"
EGRESS: Final = "Egress"
TCP: Final = "TCP"
_PEERS: Final = {INGRESS: "from", EGRESS: "to"}


class PolicyView(Protocol):
    """What policies are made of, and refer to."""

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace; None if it does not exist."""

    def policies(self, namespace: str) -> Sequence[ReadOnlyTree]:
        """Return the NetworkPolicies of a namespace."""


def is_allowed(view: PolicyView, source: Peer, target: Peer, port: int, protocol: str = TCP) -> bool:
    """Return whether policies let `source` connect to a port of `target`.

    A pod always reaches itself and its node, and the node the pod; a pod in the network of the node counts as the node.
    """
    return not refusing_policies(view, source, target, port, protocol)


def refusing_policies(
    view: PolicyView, source: Peer, target: Peer, port: int, protocol: str = TCP
) -> Sequence[ReadOnlyTree]:
    """Return the policies that isolate an end of a connection, if none of them allows it."""
    if source.address == target.address or _has_node(source, target) or _has_node(target, source):
        return ()
    return _refusing(view, EGRESS, (source, target), target, (port, protocol)) or _refusing(
        view, INGRESS, (target, source), target, (port, protocol)
    )


def _has_node(peer: Peer, node: Peer) -> bool:
    return peer.pod is not None and node.pod is None and bool(peer.node) and peer.node == node.node


def _refusing(
    view: PolicyView, direction: str, ends: tuple[Peer, Peer], target: Peer, port: tuple[int, str]
) -> Sequence[ReadOnlyTree]:
    """Return the policies of the first of two ends, if none of them allows the other end in a direction."""
    subject, other = ends
    if subject.pod is None:
        return ()
    policies = [*_policies_of(view, subject.pod, direction)]
    allows = any(
        _matches_port(rule.get("ports") or (), target, *port)
        and _matches_peer(view, meta.namespace(policy), rule.get(_PEERS[direction]) or (), other)
        for policy in policies
        for rule in policy["spec"].get(direction.lower()) or ()
    )
    return () if allows else policies


def _policies_of(view: PolicyView, pod: ReadOnlyTree, direction: str) -> Iterator[ReadOnlyTree]:
    """Yield the policies that isolate a pod in a direction."""
    for policy in view.policies(meta.namespace(pod)):
        spec = policy.get("spec") or {}
        selector = labels.from_label_selector(spec.get("podSelector") or {})
        if direction in _types(spec) and selector.matches(meta.labels(pod)):
            yield policy


def _types(spec: ReadOnlyTree) -> Sequence[str]:
    return spec.get("policyTypes") or ([INGRESS, EGRESS] if spec.get("egress") else [INGRESS])


def _matches_port(ports: Sequence[ReadOnlyTree], target: Peer, number: int, protocol: str) -> bool:
    return not ports or any(
        (port.get("protocol") or TCP) == protocol and _covers(port, target, number, protocol)
        for port in ports
    )


def _covers(port: ReadOnlyTree, target: Peer, number: int, protocol: str) -> bool:
    first = port.get("port")
    if first is None:
        return True
    if isinstance(first, str):
        return number in named_ports(target.pod, first, protocol)
    last: int = port.get("endPort") or first
    return bool(first <= number <= last)


def named_ports(pod: ReadOnlyTree | None, name: str, protocol: str = TCP) -> set[int]:
    """Return the numbers of the ports that a pod's containers declare by a name."""
    spec: Any = pod["spec"] if pod is not None else {}
    return {
        declared["containerPort"]
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        for declared in container.get("ports") or ()
        if declared.get("name") == name and (declared.get("protocol") or TCP) == protocol
    }


def _matches_peer(view: PolicyView, namespace: str, selectors: Sequence[ReadOnlyTree], peer: Peer) -> bool:
    return not selectors or any(_selects(view, namespace, selector, peer) for selector in selectors)


def _selects(view: PolicyView, namespace: str, selector: ReadOnlyTree, peer: Peer) -> bool:
    block = selector.get("ipBlock")
    if block is not None:
        return contains(block["cidr"], peer.address) and not any(
            contains(cidr, peer.address) for cidr in block.get("except") or ()
        )
    if peer.pod is None:
        return False
    namespaces, pods = selector.get("namespaceSelector"), selector.get("podSelector")
    if namespaces is None:
        if peer.namespace != namespace:
            return False
    else:
        namespace_labels = view.namespace_labels(peer.namespace) or {}
        if not labels.from_label_selector(namespaces).matches(namespace_labels):
            return False
    return labels.from_label_selector(pods or {}).matches(meta.labels(peer.pod))


def contains(cidr: str, address: str) -> bool:
    """Return whether an address is in a range; nothing is in a text that is none."""
    parsed = parse_address(address)
    try:
        return parsed is not None and parsed in ip_network(cidr, strict=False)
    except ValueError:
        return False
