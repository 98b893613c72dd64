"""The columns of services and of their endpoints."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages, ingress_points, selectors
from apiserver.resources.columns.containers import SELECTOR
from apiserver.resources.columns.lists import shortened
from apiserver.resources.columns.parts import items, number, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _service(service: Tree, now: datetime) -> list[Any]:
    service_type = text(service, "spec", "type")
    ips = items(service, "spec", "clusterIPs")
    return [
        meta.name(service),
        service_type,
        ips[0] if ips else "<none>",
        _EXTERNAL_IPS.get(service_type, _unknown)(service),
        ",".join(map(_port, items(service, "spec", "ports"))) or "<none>",
        ages.age(service, now),
        selectors.of_labels(part(service, "spec", "selector")),
    ]


def _port(port: Any) -> str:
    node_port = number(port, "nodePort")
    ports = f"{number(port, 'port')}:{node_port}" if node_port else f"{number(port, 'port')}"
    return f"{ports}/{text(port, 'protocol')}"


def _own(service: Tree) -> str:
    return ",".join(items(service, "spec", "externalIPs")) or "<none>"


def _balanced(service: Tree) -> str:
    points = ingress_points.of(service)
    return ",".join((*points, *items(service, "spec", "externalIPs"))) or "<pending>"


def _named(service: Tree) -> str:
    return text(service, "spec", "externalName")


def _unknown(_: Tree) -> str:
    return "<unknown>"


_EXTERNAL_IPS: Final[Mapping[str, Callable[[Tree], str]]] = {
    "ClusterIP": _own,
    "NodePort": _own,
    "LoadBalancer": _balanced,
    "ExternalName": _named,
}


def _endpoints(endpoints: Tree, now: datetime) -> list[Any]:
    subsets = items(endpoints, "subsets")
    addresses = [address for subset in subsets for address in _addresses(subset)]
    return [meta.name(endpoints), shortened(addresses) if subsets else "<none>", ages.age(endpoints, now)]


def _addresses(subset: Any) -> list[str]:
    """Every address with every port; a headless service may have none."""
    ips = [text(address, "ip") for address in items(subset, "addresses")]
    ports = items(subset, "ports")
    return [_joined(ip, number(port, "port")) for port in ports for ip in ips] if ports else ips


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


PRINTERS: Final[Mapping[str, Printer]] = {
    "Service": Printer(
        columns=(
            NAME,
            Column(name="Type"),
            Column(name="Cluster-IP"),
            Column(name="External-IP"),
            Column(name="Port(s)"),
            AGE,
            SELECTOR,
        ),
        cells=_service,
    ),
    "Endpoints": Printer(columns=(NAME, Column(name="Endpoints"), AGE), cells=_endpoints),
}
