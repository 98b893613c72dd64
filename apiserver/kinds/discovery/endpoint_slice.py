"""EndpointSlice."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, cells, declared, validation
from mockube.apiserver.kinds.common.address_warnings import ips_warnings
from mockube.apiserver.kinds.common.addresses import (
    check_canonical_ip,
    check_endpoint_ip,
    check_ip,
    check_protocol,
    is_ipv6,
)
from mockube.apiserver.kinds.common.checks import (
    Check,
    all_of,
    each_item,
    field,
    is_same,
    one_of,
    optional,
    pointer,
    report,
    require,
)
from mockube.apiserver.kinds.common.declared import DeclaredRules
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.objectmeta import check_label_name, check_labels
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, Strategy, StrategyContext, null_when_empty
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_MAX_ENDPOINTS, _MAX_PORTS = 1000, 20000
_MAX_ADDRESSES, _MAX_HINTS, _MAX_LABELS = 100, 8, 16

_LABEL: Final = report(names.check_dns1123_label)
_NODE_NAME: Final = report(names.check_dns1123_subdomain)


# --- addresses


def _ip_check(version: str, check_form: Check, *, ipv6: bool) -> Check:
    def check(address: str, path: Path) -> Iterator[FieldError]:
        if ip_errors := [*check_form(address, path)]:
            yield from ip_errors
            return
        if is_ipv6(address) != ipv6:  # reported at the path of all addresses, without an index
            yield errors.invalid(path.parent or path, address, f"must be an {version} address")
        yield from check_endpoint_ip(address, path)

    return check


def _check_domain_name(name: str, path: Path) -> Iterable[FieldError]:
    if not name:
        return (errors.required(path),)
    domain = name.removesuffix(".")
    problems = names.check_dns1123_subdomain(domain)
    labels = domain.split(".")
    if problems:
        return (errors.invalid(path, domain, ",".join(problems)),)
    if len(labels) < 2:
        problem = "should be a domain with at least two segments separated by dots"
        return (errors.invalid(path, domain, problem),)
    label_problems = [(label, names.check_dns1123_label(label)) for label in labels]
    return [
        errors.invalid(path, label, ",".join(problems)) for label, problems in label_problems if problems
    ][:1]


_ADDRESSES: Final[Mapping[str, Check]] = {
    "FQDN": _check_domain_name,
    "IPv4": _ip_check("IPv4", check_ip, ipv6=False),
    "IPv6": _ip_check("IPv6", check_canonical_ip, ipv6=True),
}


def _check_addresses(check_address: Check) -> Check:
    def check(addresses: Sequence[str], path: Path) -> Iterator[FieldError]:
        if len(addresses) > _MAX_ADDRESSES:
            yield errors.too_many(path, len(addresses), _MAX_ADDRESSES)
        yield from each_item(check_address)(addresses, path)

    return require("addresses", check, detail="must contain at least 1 address")


# --- endpoints


def _hints(name: Check) -> Callable[[Sequence[ReadOnlyTree] | None, Path], Iterator[FieldError]]:
    def check(hints: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
        if len(hints or ()) > _MAX_HINTS:
            yield errors.too_many(path, len(hints or ()), _MAX_HINTS)
            return
        seen = set()
        for index, hint in enumerate(hints or ()):
            hint_name, field_path = hint.get("name", ""), path.index(index).child("name")
            if hint_name in seen:
                yield errors.duplicate(field_path, hint_name)
            seen.add(hint_name)
            yield from name(hint_name, field_path)

    return check


def _check_topology(labels: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if len(labels) > _MAX_LABELS:
        yield errors.too_many(path, len(labels), _MAX_LABELS)
    yield from check_labels(labels, path)


_HINTS: Final = all_of(
    field("forZones", _hints(report(names.check_label_value))), field("forNodes", _hints(_NODE_NAME))
)


def _check_endpoints(slice_: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the endpoints. Addresses of an unknown type are not checked."""
    endpoints, path = slice_.get("endpoints") or (), path.child("endpoints")
    if len(endpoints) > _MAX_ENDPOINTS:
        yield errors.too_many(path, len(endpoints), _MAX_ENDPOINTS)
        return
    check = all_of(
        _check_addresses(_ADDRESSES.get(slice_.get("addressType", ""), all_of())),
        pointer("nodeName", _NODE_NAME),
        optional("deprecatedTopology", _check_topology),
        pointer("hostname", _LABEL),
        pointer("hints", _HINTS),
    )
    yield from each_item(check)(endpoints, path)


# --- ports


def _check_ports(ports: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    if len(ports or ()) > _MAX_PORTS:
        yield errors.too_many(path, len(ports or ()), _MAX_PORTS)
        return
    seen = set()
    for index, port in enumerate(ports or ()):
        port_path, name = path.index(index), port.get("name") or ""
        yield from optional("name", _LABEL)(port, port_path)
        if name in seen:
            yield errors.duplicate(port_path.child("name"), name)
        seen.add(name)
        yield from field("protocol", check_protocol, absent="")(port, port_path)
        yield from pointer("appProtocol", check_label_name)(port, port_path)


_CREATE: Final = validation.from_root(
    require("addressType", one_of(*_ADDRESSES)), field("ports", _check_ports), _check_endpoints
)


# --- strategy


_AS_CREATED: Final = validation.as_created(_CREATE)


def _check_again(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check an update. Errors of unchanged endpoints are ignored."""
    field_errors = [*_AS_CREATED(new, old)]
    if not field_errors or not is_same(new.get("endpoints"), old.get("endpoints")):
        return field_errors
    return [error for error in field_errors if not error.field.startswith("endpoints")]


def _without_topology(slice_: Tree, _request: StrategyContext) -> None:
    """Remove `deprecatedTopology`, which v1 accepts but does not store."""
    if endpoints := slice_.get("endpoints"):
        slice_["endpoints"] = [
            {field: value for field, value in endpoint.items() if field != "deprecatedTopology"}
            for endpoint in endpoints
        ]


_write_lists = null_when_empty(("endpoints",), ("ports",))


def _prepare_create(new: Tree, request: StrategyContext) -> None:
    _write_lists(new)
    _without_topology(new, request)


def _prepare_update(new: Tree, old: Tree, request: StrategyContext) -> None:
    _write_lists(new)
    if new.get("endpoints") != old.get("endpoints"):
        # Upstream compares the slices before it removes the field.
        if any(endpoint.get("deprecatedTopology") for endpoint in new.get("endpoints") or ()):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        _without_topology(new, request)


# --- warnings


_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS: Final = frozenset(
    {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"}
)
"""The controllers of slices that cause no warnings: they write addresses in canonical form."""


def _warn(slice_: ReadOnlyTree) -> Iterator[str]:
    if meta.labels(slice_).get(_MANAGED_BY) in _CONTROLLERS:
        return
    for index, endpoint in enumerate(slice_.get("endpoints") or ()):
        yield from ips_warnings(
            endpoint.get("addresses"), ROOT.child("endpoints").index(index).child("addresses")
        )


def _warn_create(slice_: ReadOnlyTree) -> Iterator[str]:
    if slice_.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    yield from _warn(slice_)


def _warn_update(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[str]:
    return _warn(new)


# --- columns


def _cells(tree: Tree, now: datetime) -> list[Any]:
    addresses = [
        address
        for endpoint in cells.items(tree, "endpoints")
        for address in cells.items(endpoint, "addresses")
    ]
    return [
        meta.name(tree),
        cells.text(tree, "addressType"),
        cells.join_shortened([_port(port) for port in cells.items(tree, "ports")]) or "<unset>",
        cells.join_shortened(addresses) or "<unset>",
        ages.age(tree, now),
    ]


def _port(port: Any) -> str:
    """Format a port. Without a number it is the name, or `*` for all ports."""
    number = cells.part(port, "port")
    return cells.text(port, "name", default="*") if number is None else str(number)


KIND: Final = Kind(
    resource=Resource(group="discovery.k8s.io", version="v1", name="endpointslices", kind="EndpointSlice"),
    strategy=Strategy(
        generation=(("addressType",), ("endpoints",), ("ports",), ("metadata", "labels")),
        first_generation=1,
        prepare_create=_prepare_create,
        prepare_update={MAIN: _prepare_update},
    ),
    validation=Validation(
        repeated_checks=validation.NO_CHECKS,
        create=_CREATE,
        update=validation.in_order(_check_again, validation.immutable_fields("addressType", absent="")),
        declared=DeclaredRules(
            declared.required("addressType"),
            declared.immutable("addressType"),
            declared.enumeration("addressType"),
            declared.required("endpoints[].addresses"),
            declared.at_most("endpoints[].addresses"),
        ),
    ),
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=Printer(
        columns=(
            NAME,
            Column(name="AddressType"),
            Column(name="Ports"),
            Column(name="Endpoints"),
            AGE_COLUMN,
        ),
        cells=_cells,
    ),
    defaults=defaults_table("io.k8s.api.discovery.v1", {"EndpointPort": {"name": "", "protocol": "TCP"}}),
)
