"""Service."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource, Subresource
from mockube.apiserver.kinds.common import address_warnings, ages, cells
from mockube.apiserver.kinds.common.defaults import FILLED_BY_OWNER, defaults_table
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .strategy import STRATEGY
from .validation import VALIDATION

# --- defaults: IP families are set when the addresses are allocated

_AFFINITY_SECONDS: Final = 10800
_WITH_NODE_PORTS: Final = frozenset({"LoadBalancer", "NodePort"})
_WITH_CLUSTER_IP: Final = _WITH_NODE_PORTS | {"ClusterIP"}


def _default_session_affinity(spec: Tree) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client_ip = spec.get("sessionAffinityConfig", {}).get("clientIP", {})
        if "timeoutSeconds" not in client_ip:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _default_traffic_policies(spec: Tree) -> None:
    service_type = spec["type"]
    if service_type in _WITH_NODE_PORTS or (service_type == "ClusterIP" and "externalIPs" in spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if service_type in _WITH_CLUSTER_IP:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if service_type == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _default_target_port(port: Tree) -> None:
    if port["targetPort"] in (0, ""):
        port["targetPort"] = port["port"]


def _default_ip_mode(service: Tree) -> None:
    if service["spec"].get("type") == "LoadBalancer":
        for ingress in service["status"]["loadBalancer"].get("ingress", ()):
            if "ip" in ingress:
                ingress.setdefault("ipMode", "VIP")


# --- warnings

_SPEC: Final = ROOT.child("spec")


_HINTS: Final = "service.kubernetes.io/topology-aware-hints"


_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"


_EXTERNAL_NAME: Final = "ExternalName"


_NOT_HEADLESS: Final = (
    ("loadBalancerIP", "spec.loadBalancerIP"),
    ("externalIPs", "spec.externalIPs"),
)


def _warn(service: ReadOnlyTree) -> Iterator[str]:
    spec = service.get("spec") or {}
    type_, external = spec.get("type", ""), spec.get("externalIPs") or ()
    headless = type_ == "ClusterIP" and spec.get("clusterIP") == "None"
    if _HINTS in meta.annotations(service):
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
    if spec.get("clusterIP") not in (None, "", "None"):
        yield from address_warnings.ips_warnings(spec.get("clusterIPs"), _SPEC.child("clusterIPs"))
    if headless:
        yield from _warn_headless(spec)
    yield from address_warnings.ips_warnings(external, _SPEC.child("externalIPs"))
    if external and not headless and type_ != _EXTERNAL_NAME:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if balancer := spec.get("loadBalancerIP"):
        yield from address_warnings.ip_warnings(balancer, _SPEC.child("loadBalancerIP"))
    yield from address_warnings.cidrs_warnings(
        spec.get("loadBalancerSourceRanges"), _SPEC.child("loadBalancerSourceRanges")
    )
    yield from _warn_external(spec, type_)
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _warn_headless(spec: ReadOnlyTree) -> Iterator[str]:
    for field, field_path in _NOT_HEADLESS:
        if spec.get(field):
            yield f"{field_path} is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _warn_external(spec: ReadOnlyTree, type_: str) -> Iterator[str]:
    quoted = quote(_EXTERNAL_NAME)
    if type_ == _EXTERNAL_NAME and spec.get("externalIPs"):
        yield f"spec.externalIPs is ignored when spec.type is {quoted}"
    if type_ != _EXTERNAL_NAME and spec.get("externalName"):
        yield f"spec.externalName is ignored when spec.type is not {quoted}"


def _warn_update(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[str]:
    return _warn(new)


# --- columns


def _cells(service: Tree, now: datetime) -> list[Any]:
    service_type = cells.text(service, "spec", "type")
    ips = cells.items(service, "spec", "clusterIPs")
    return [
        meta.name(service),
        service_type,
        ips[0] if ips else "<none>",
        _EXTERNAL_IPS.get(service_type, _unknown_cell)(service),
        ",".join(map(_port, cells.items(service, "spec", "ports"))) or "<none>",
        ages.age(service, now),
        cells.labels_text(cells.part(service, "spec", "selector")),
    ]


def _port(port: Any) -> str:
    node_port = cells.number(port, "nodePort")
    ports = f"{cells.number(port, 'port')}:{node_port}" if node_port else f"{cells.number(port, 'port')}"
    return f"{ports}/{cells.text(port, 'protocol')}"


def _external_ips(service: Tree) -> str:
    return ",".join(cells.items(service, "spec", "externalIPs")) or "<none>"


def _load_balancer_ips(service: Tree) -> str:
    addresses = cells.ingress_addresses(service)
    return ",".join((*addresses, *cells.items(service, "spec", "externalIPs"))) or "<pending>"


def _external_name(service: Tree) -> str:
    return cells.text(service, "spec", "externalName")


def _unknown_cell(_: Tree) -> str:
    return "<unknown>"


_EXTERNAL_IPS: Final[Mapping[str, Callable[[Tree], str]]] = {
    "ClusterIP": _external_ips,
    "NodePort": _external_ips,
    "LoadBalancer": _load_balancer_ips,
    "ExternalName": _external_name,
}


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="services",
        kind="Service",
        short_names=("svc",),
        categories=("all",),
        stored_at="services/specs",
        selectable=(selectable("spec.clusterIP"), selectable("spec.type")),
        subresources=(
            Subresource(
                name="proxy",
                kind="ServiceProxyOptions",
                verbs=("create", "delete", "get", "patch", "update"),
            ),
            STATUS,
        ),
    ),
    strategy=STRATEGY,
    validation=VALIDATION,
    warnings=Warnings(
        create=_warn, update=_warn_update, subresources={"status": address_warnings.ingress_point_warnings}
    ),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Type"),
            Column(name="Cluster-IP"),
            Column(name="External-IP"),
            Column(name="Port(s)"),
            AGE_COLUMN,
            cells.SELECTOR,
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.core.v1",
        {
            "Service": _default_ip_mode,
            "ServiceSpec": (
                {"type": "ClusterIP", "sessionAffinity": "None"},
                _default_session_affinity,
                _default_traffic_policies,
            ),
            "ServicePort": _default_target_port,
            "LoadBalancerIngress": FILLED_BY_OWNER,
        },
    ),
)
