"""Ingress."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_INGRESS_CLASS
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, checks
from mockube.apiserver.kinds.common.address_warnings import ingress_point_warnings
from mockube.apiserver.kinds.common.addresses import check_ip, parse_sloppily
from mockube.apiserver.kinds.common.cells import ingress_addresses, items, text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.validation import Validation, as_created, from_root, get_struct
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import COUNTED
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_SUBDOMAIN: Final = checks.report(names.check_dns1123_subdomain)
_WILDCARD: Final = checks.report(names.check_wildcard_dns1123_subdomain)
_SEGMENT: Final = checks.report(names.check_path_segment_name)
_SERVICE_NAME: Final = checks.report(names.check_dns1123_label)
_PORT_NAME: Final = checks.report(names.check_port_name)

_NOT_A_NAME: Final = "must be a DNS name, not an IP address"


def _check_host(host: str, path: Path) -> Iterable[FieldError]:
    return (_WILDCARD if "*" in host else _SUBDOMAIN)(host, path)


# --- backends


check_reference: Final = checks.all_of(
    checks.pointer("apiGroup", _SUBDOMAIN), checks.require("kind", _SEGMENT), checks.require("name", _SEGMENT)
)


def _check_port(port: ReadOnlyTree, backend: Path) -> Iterable[FieldError]:
    name, number = port.get("name"), port.get("number")
    path = backend.child("service", "port")
    if name and number:
        return (errors.invalid(backend, "", "cannot set both port name & port number"),)
    if name:
        return _PORT_NAME(name, path.child("name"))
    if number:
        return checks.port_number(number, path.child("number"))
    return (errors.required(backend, "port name or number is required"),)


def _check_backend(backend: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield errors.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from check_reference(resource, path.child("resource"))
    elif service is not None:
        yield from checks.require("name", _SERVICE_NAME)(service, path.child("service"))
        yield from _check_port(get_struct(service, "port"), path)
    else:
        yield errors.invalid(path, "", "resource or service backend is required")


# --- rules


_FORBIDDEN_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDINGS: Final = ("/..", "/.")


def _check_absolute(value: str, path: Path) -> Iterable[FieldError]:
    return () if value.startswith("/") else (errors.invalid(path, value, "must be an absolute path"),)


def _check_exact(value: str, path: Path) -> Iterator[FieldError]:
    yield from _check_absolute(value, path)
    for sequence in _FORBIDDEN_SEQUENCES:
        if sequence in value:
            yield errors.invalid(path, value, f"must not contain '{sequence}'")
    for ending in _FORBIDDEN_ENDINGS:
        if value.endswith(ending):
            yield errors.invalid(path, value, f"cannot end with '{ending}'")


_PATH_TYPES: Final[Mapping[str, Check]] = {
    "Exact": checks.field("path", _check_exact, absent=""),
    "ImplementationSpecific": checks.optional("path", _check_absolute),
    "Prefix": checks.field("path", _check_exact, absent=""),
}


def _check_path(http_path: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    kind = http_path.get("pathType")
    if kind is None:
        yield errors.required(path.child("pathType"), "pathType must be specified")
        return
    if kind in _PATH_TYPES:
        yield from _PATH_TYPES[kind](http_path, path)
    else:
        yield errors.not_supported(path.child("pathType"), kind, _PATH_TYPES)
    yield from _check_backend(get_struct(http_path, "backend"), path.child("backend"))


_check_http: Final = checks.all_of(
    checks.require("paths"), checks.field("paths", checks.each_item(_check_path))
)


def _check_rule_host(host: str, path: Path) -> Iterator[FieldError]:
    if parse_sloppily(host) is not None:
        yield errors.invalid(path, host, _NOT_A_NAME)
    yield from _check_host(host, path)


_RULE_HTTP: Final = checks.pointer("http", _check_http)


def _check_rule(rule: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from checks.optional("host", _check_rule_host)(rule, path)
    yield from _RULE_HTTP(rule, path)


def _check_rule_leniently(rule: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check a rule without the paths of a wildcard host, which older versions did not check."""
    yield from checks.optional("host", _check_rule_host)(rule, path)
    if "*" not in rule.get("host", ""):
        yield from _RULE_HTTP(rule, path)


# --- specs


def _check_not_empty(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if spec.get("rules") or spec.get("defaultBackend") is not None:
        return ()
    problem = "either `defaultBackend` or `rules` must be specified"
    return (errors.invalid(path, spec.get("rules"), problem),)


def _spec(rule: Check, secret: Check) -> Check:
    return checks.all_of(
        _check_not_empty,
        checks.pointer("defaultBackend", _check_backend),
        checks.field("rules", checks.each_item(rule)),
        checks.field("tls", checks.each_item(checks.field("hosts", checks.each_item(_check_host)), secret)),
        checks.pointer("ingressClassName", _SUBDOMAIN),
    )


_SECRET: Final = checks.optional("secretName", _SUBDOMAIN)
_CHECK: Final = from_root(checks.field("spec", _spec(_check_rule, _SECRET), absent={}))


def _create(tree: ReadOnlyTree) -> Iterator[FieldError]:
    yield from _CHECK(tree)
    annotation, name = (
        meta.annotations(tree).get(ANNOTATION_INGRESS_CLASS),
        get_struct(tree, "spec").get("ingressClassName"),
    )
    if annotation is not None and name is not None and annotation != name:
        problem = "must match `ingressClassName` when both are specified"
        yield errors.invalid(ROOT.child("annotations", ANNOTATION_INGRESS_CLASS), annotation, problem)


def _has_invalid_wildcard(spec: ReadOnlyTree) -> bool:
    return any(
        "*" in rule.get("host", "") and any(_RULE_HTTP(rule, ROOT)) for rule in (spec.get("rules") or ())
    )


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    old_spec = get_struct(old, "spec")
    rule = _check_rule_leniently if _has_invalid_wildcard(old_spec) else _check_rule
    secret = checks.all_of() if any(checks.each_item(_SECRET)(old_spec.get("tls"), ROOT)) else _SECRET
    return as_created(from_root(checks.field("spec", _spec(rule, secret), absent={})))(new, old)


def _check_point(point: ReadOnlyTree, path: Path, valid_old_ips: frozenset[str]) -> Iterator[FieldError]:
    address, host = point.get("ip"), point.get("hostname")
    if address:
        yield from check_ip(address, path.child("ip"), valid_old_ips)
    if host:
        yield from _SUBDOMAIN(host, path.child("hostname"))
        if parse_sloppily(host) is not None:
            yield errors.invalid(path.child("hostname"), host, _NOT_A_NAME)


def _update_status(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    load_balancer = ("status", "loadBalancer")
    valid_old_ips = frozenset(
        point.get("ip", "") for point in (get_struct(old, *load_balancer).get("ingress") or ())
    )
    points: Sequence[ReadOnlyTree] = get_struct(new, *load_balancer).get("ingress") or ()
    for index, point in enumerate(points):
        yield from _check_point(point, ROOT.child(*load_balancer, "ingress").index(index), valid_old_ips)


# --- warnings and columns


def _warn_create(ingress: ReadOnlyTree) -> Iterator[str]:
    if (
        ANNOTATION_INGRESS_CLASS in meta.annotations(ingress)
        and (ingress.get("spec") or {}).get("ingressClassName") is None
    ):
        yield f"annotation {quote(ANNOTATION_INGRESS_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"


_MAX_HOSTS: Final = 3


def _cells(ingress: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(ingress),
        text(ingress, "spec", "ingressClassName", default="<none>"),
        _hosts(items(ingress, "spec", "rules")),
        ",".join(ingress_addresses(ingress)),
        "80, 443" if items(ingress, "spec", "tls") else "80",
        ages.age(ingress, now),
    ]


def _hosts(rules: Sequence[Any]) -> str:
    """Join the first hosts. As upstream, count each further rule as one more, even one without a host."""
    named = [index for index, rule in enumerate(rules) if text(rule, "host")][:_MAX_HOSTS]
    hosts = ",".join(text(rules[index], "host") for index in named) or "*"
    is_cut = len(named) == _MAX_HOSTS and named[-1] < len(rules) - 1
    return f"{hosts} + {len(rules) - _MAX_HOSTS} more..." if is_cut else hosts


KIND: Final = Kind(
    resource=Resource(
        group="networking.k8s.io",
        version="v1",
        name="ingresses",
        kind="Ingress",
        short_names=("ing",),
        stored_at="ingress",
        subresources=(STATUS,),
    ),
    strategy=COUNTED,
    validation=Validation(create=_create, update=_update, subresources={"status": _update_status}),
    warnings=Warnings(create=_warn_create, subresources={"status": ingress_point_warnings}),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Class"),
            Column(name="Hosts"),
            Column(name="Address"),
            Column(name="Ports"),
            AGE_COLUMN,
        ),
        cells=_cells,
    ),
)
