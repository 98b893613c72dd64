"""Endpoints: the addresses behind a Service, as one object."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, cells, checks, objectmeta
from mockube.apiserver.kinds.common.address_warnings import ip_warnings
from mockube.apiserver.kinds.common.addresses import check_endpoint_ip, check_ip, check_protocol
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN, check_label_name
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_LABEL: Final = checks.report(names.check_dns1123_label)

_CHECK_ADDRESS: Final = checks.all_of(
    checks.field("ip", check_ip, absent=""),
    checks.optional("hostname", _LABEL),
    checks.pointer("nodeName", checks.report(names.check_dns1123_subdomain)),
    checks.field("ip", check_endpoint_ip, absent=""),
)
_CHECK_PORT: Final = checks.all_of(
    checks.field("port", checks.port_number, absent=0),
    checks.require("protocol", check_protocol),
    checks.pointer("appProtocol", check_label_name),
)


def _check_subset(subset: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield errors.required(path, "must specify `addresses` or `notReadyAddresses`")
    for name in ("addresses", "notReadyAddresses"):
        yield from checks.field(name, checks.each_item(_CHECK_ADDRESS))(subset, path)
    ports = subset.get("ports") or ()
    for index, port in enumerate(ports):
        check_name = checks.require("name", _LABEL) if len(ports) > 1 else checks.optional("name", _LABEL)
        yield from checks.all_of(check_name, _CHECK_PORT)(port, path.child("ports").index(index))


def _create(endpoints: ReadOnlyTree) -> Iterable[FieldError]:
    return checks.each_item(_check_subset)(endpoints.get("subsets"), ROOT.child("subsets"))


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check the subsets only if they change: older rules may have accepted the old ones."""
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    if new.get("subsets") != old.get("subsets"):
        yield from _create(new)


# --- warnings


_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"


def _warn(endpoints: ReadOnlyTree) -> Iterator[str]:
    if meta.labels(endpoints).get(_MANAGED_BY) == "endpoint-controller":
        return
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        for name in ("addresses", "notReadyAddresses"):
            path = ROOT.child("subsets").index(index).child(name)
            for address_index, address in enumerate(subset.get(name) or ()):
                yield from ip_warnings(address.get("ip", ""), path.index(address_index).child("ip"))


# --- columns


def _cells(endpoints: Tree, now: datetime) -> list[Any]:
    subsets = cells.items(endpoints, "subsets")
    addresses = [address for subset in subsets for address in _addresses_and_ports(subset)]
    return [
        meta.name(endpoints),
        cells.join_shortened(addresses) if subsets else "<none>",
        ages.age(endpoints, now),
    ]


def _addresses_and_ports(subset: Any) -> list[str]:
    """Return every address with every port, or alone if there are no ports, as for a headless Service."""
    ips = [cells.text(address, "ip") for address in cells.items(subset, "addresses")]
    ports = cells.items(subset, "ports")
    return [join_host_port(ip, cells.number(port, "port")) for port in ports for ip in ips] if ports else ips


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="endpoints",
        kind="Endpoints",
        singular="endpoints",
        short_names=("ep",),
        stored_at="services/endpoints",
        deprecated="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    strategy=Strategy(create_on_update=True),
    validation=Validation(create=_create, update=_update),
    warnings=on_create_and_update(_warn),
    printer=Printer(columns=(NAME, Column(name="Endpoints"), AGE_COLUMN), cells=_cells),
    defaults=defaults_table("io.k8s.api.core.v1", {"EndpointPort": {"protocol": "TCP"}}),
)
