"""Services, their endpoints, and rules for traffic: fields without effect, and addresses in odd forms."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import meta
from apimachinery.gotext import quote
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.rules import Tree
from apiserver.warnings.addresses import of_cidr, of_cidrs, of_ip, of_ips
from apiserver.warnings.kind import Warnings, always

_SPEC: Final = ROOT.child("spec")
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_EXTERNAL_NAME: Final = "ExternalName"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_NOT_HEADLESS: Final = (
    ("loadBalancerIP", "spec.loadBalancerIP"),
    ("externalIPs", "spec.externalIPs"),
)
_FIXED_BY: Final = {
    "Endpoints": ("endpoints.kubernetes.io/managed-by", {"endpoint-controller"}),
    "EndpointSlice": (
        "endpointslice.kubernetes.io/managed-by",
        {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"},
    ),
}
"""By kind: a label, and the controllers that it names if it is they who write addresses as they should be."""


def _of_service(service: Tree) -> Iterator[str]:
    spec = service.get("spec") or {}
    type_, external = spec.get("type", ""), spec.get("externalIPs") or ()
    headless = type_ == "ClusterIP" and spec.get("clusterIP") == "None"
    if _HINTS in meta.annotations(service):
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
    if spec.get("clusterIP") not in (None, "", "None"):
        yield from of_ips(spec.get("clusterIPs"), _SPEC.child("clusterIPs"))
    if headless:
        yield from _of_headless(spec)
    yield from of_ips(external, _SPEC.child("externalIPs"))
    if external and not headless and type_ != _EXTERNAL_NAME:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if balancer := spec.get("loadBalancerIP"):
        yield from of_ip(balancer, _SPEC.child("loadBalancerIP"))
    yield from of_cidrs(spec.get("loadBalancerSourceRanges"), _SPEC.child("loadBalancerSourceRanges"))
    yield from _of_external(spec, type_)
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _of_headless(spec: Tree) -> Iterator[str]:
    for field, shown in _NOT_HEADLESS:
        if spec.get(field):
            yield f"{shown} is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _of_external(spec: Tree, type_: str) -> Iterator[str]:
    quoted = quote(_EXTERNAL_NAME)
    if type_ == _EXTERNAL_NAME and spec.get("externalIPs"):
        yield f"spec.externalIPs is ignored when spec.type is {quoted}"
    if type_ != _EXTERNAL_NAME and spec.get("externalName"):
        yield f"spec.externalName is ignored when spec.type is not {quoted}"


def _of_points(new: Tree, _old: Tree) -> Iterator[str]:
    """Of where a load balancer lets traffic in."""
    path = ROOT.child("status", "loadBalancer", "ingress")
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for index, point in enumerate(points):
        if address := point.get("ip"):
            yield from of_ip(address, path.index(index))


def _is_fixed(tree: Tree, kind: str) -> bool:
    label, controllers = _FIXED_BY[kind]
    return meta.labels(tree).get(label) in controllers


def _of_endpoints(endpoints: Tree) -> Iterator[str]:
    if _is_fixed(endpoints, "Endpoints"):
        return
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        for field in ("addresses", "notReadyAddresses"):
            path = ROOT.child("subsets").index(index).child(field)
            for number, address in enumerate(subset.get(field) or ()):
                yield from of_ip(address.get("ip", ""), path.index(number).child("ip"))


def _of_slice(slice_: Tree) -> Iterator[str]:
    if _is_fixed(slice_, "EndpointSlice"):
        return
    for index, endpoint in enumerate(slice_.get("endpoints") or ()):
        yield from of_ips(endpoint.get("addresses"), ROOT.child("endpoints").index(index).child("addresses"))


def _create_slice(slice_: Tree) -> Iterator[str]:
    if slice_.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    yield from _of_slice(slice_)


def _create_ingress(ingress: Tree) -> Iterator[str]:
    if (
        _INGRESS_CLASS in meta.annotations(ingress)
        and (ingress.get("spec") or {}).get("ingressClassName") is None
    ):
        yield f"annotation {quote(_INGRESS_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"


def _of_policy(policy: Tree) -> Iterator[str]:
    spec = policy.get("spec") or {}
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            yield from _of_peers(rule.get(peers) or (), _SPEC.child(direction).index(index).child(peers))


def _of_peers(peers: Iterable[Tree], path: Path) -> Iterator[str]:
    for index, peer in enumerate(peers):
        if block := peer.get("ipBlock"):
            at = path.index(index).child("ipBlock")
            yield from of_cidr(block.get("cidr", ""), at.child("cidr"))
            yield from of_cidrs(block.get("except"), at.child("except"))


WARNINGS: Final = {
    GroupKind("", "Endpoints"): always(_of_endpoints),
    GroupKind("", "Service"): Warnings(
        create=_of_service,
        update=lambda new, _old: _of_service(new),
        subresources={"status": _of_points},
    ),
    GroupKind("discovery.k8s.io", "EndpointSlice"): Warnings(
        create=_create_slice, update=lambda new, _old: _of_slice(new)
    ),
    GroupKind("networking.k8s.io", "Ingress"): Warnings(
        create=_create_ingress, subresources={"status": _of_points}
    ),
    GroupKind("networking.k8s.io", "NetworkPolicy"): always(_of_policy),
}
