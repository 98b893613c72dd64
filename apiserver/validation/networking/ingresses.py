"""Ingresses and IngressClasses."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from apimachinery import errors, meta, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.addresses import check_ip, parse_sloppily
from apiserver.validation.kind import Update, Validation
from apiserver.validation.objectmeta import SUBDOMAIN
from apiserver.validation.objects import as_created, created, together, unchanged, within
from apiserver.validation.rules import (
    Check,
    Tree,
    each,
    every,
    field,
    no_longer_than,
    one_of,
    optional,
    pointer,
    port_number,
    refused,
    required,
    valid,
)

_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)
_WILDCARD: Final = valid(names.check_wildcard_dns1123_subdomain)
_SEGMENT: Final = valid(names.check_path_segment_name)
_SERVICE_NAME: Final = valid(names.check_dns1123_label)
_PORT_NAME: Final = valid(names.check_port_name)

_NOT_A_NAME: Final = "must be a DNS name, not an IP address"


def _check_host(host: str, path: Path) -> Iterable[FieldError]:
    return (_WILDCARD if "*" in host else _SUBDOMAIN)(host, path)


# --- backends

check_reference: Final = every(
    pointer("apiGroup", _SUBDOMAIN), required("kind", _SEGMENT), required("name", _SEGMENT)
)


def _check_port(port: Tree, backend: Path) -> Iterable[FieldError]:
    name, number = port.get("name"), port.get("number")
    path = backend.child("service", "port")
    if name and number:
        return (errors.invalid(backend, "", "cannot set both port name & port number"),)
    if name:
        return _PORT_NAME(name, path.child("name"))
    if number:
        return port_number(number, path.child("number"))
    return (errors.required(backend, "port name or number is required"),)


def _check_backend(backend: Tree, path: Path) -> Iterator[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield errors.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from check_reference(resource, path.child("resource"))
    elif service is not None:
        yield from required("name", _SERVICE_NAME)(service, path.child("service"))
        yield from _check_port(within(service, "port"), path)
    else:
        yield errors.invalid(path, "", "resource or service backend is required")


# --- rules

_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_ENDINGS: Final = ("/..", "/.")


def _check_absolute(value: str, path: Path) -> Iterable[FieldError]:
    return () if value.startswith("/") else (errors.invalid(path, value, "must be an absolute path"),)


def _check_exact(value: str, path: Path) -> Iterator[FieldError]:
    yield from _check_absolute(value, path)
    for sequence in _SEQUENCES:
        if sequence in value:
            yield errors.invalid(path, value, f"must not contain '{sequence}'")
    for ending in _ENDINGS:
        if value.endswith(ending):
            yield errors.invalid(path, value, f"cannot end with '{ending}'")


_PATH_TYPES: Final[Mapping[str, Check]] = {
    "Exact": field("path", _check_exact, absent=""),
    "ImplementationSpecific": optional("path", _check_absolute),
    "Prefix": field("path", _check_exact, absent=""),
}


def _check_path(of: Tree, path: Path) -> Iterator[FieldError]:
    kind = of.get("pathType")
    if kind is None:
        yield errors.required(path.child("pathType"), "pathType must be specified")
        return
    if kind in _PATH_TYPES:
        yield from _PATH_TYPES[kind](of, path)
    else:
        yield errors.not_supported(path.child("pathType"), kind, _PATH_TYPES)
    yield from _check_backend(within(of, "backend"), path.child("backend"))


_check_http: Final = every(required("paths"), field("paths", each(_check_path)))


def _check_rule_host(host: str, path: Path) -> Iterator[FieldError]:
    if parse_sloppily(host) is not None:
        yield errors.invalid(path, host, _NOT_A_NAME)
    yield from _check_host(host, path)


_RULE_HTTP: Final = pointer("http", _check_http)


def _check_rule(rule: Tree, path: Path) -> Iterator[FieldError]:
    yield from optional("host", _check_rule_host)(rule, path)
    yield from _RULE_HTTP(rule, path)


def _check_rule_leniently(rule: Tree, path: Path) -> Iterator[FieldError]:
    """What follows a host with a wildcard was not looked at in old objects."""
    yield from optional("host", _check_rule_host)(rule, path)
    if "*" not in rule.get("host", ""):
        yield from _RULE_HTTP(rule, path)


# --- specs


def _check_something(spec: Tree, path: Path) -> Iterable[FieldError]:
    if spec.get("rules") or spec.get("defaultBackend") is not None:
        return ()
    problem = "either `defaultBackend` or `rules` must be specified"
    return (errors.invalid(path, spec.get("rules"), problem),)


def _spec(rule: Check, secret: Check) -> Check:
    return every(
        _check_something,
        pointer("defaultBackend", _check_backend),
        field("rules", each(rule)),
        field("tls", each(field("hosts", each(_check_host)), secret)),
        pointer("ingressClassName", _SUBDOMAIN),
    )


_SECRET: Final = optional("secretName", _SUBDOMAIN)
_CHECK: Final = created(field("spec", _spec(_check_rule, _SECRET), absent={}))
_CLASS: Final = "kubernetes.io/ingress.class"


def _create(tree: Tree) -> Iterator[FieldError]:
    yield from _CHECK(tree)
    annotation, name = meta.annotations(tree).get(_CLASS), within(tree, "spec").get("ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        problem = "must match `ingressClassName` when both are specified"
        yield errors.invalid(ROOT.child("annotations", _CLASS), annotation, problem)


def _has_wrong_wildcard(spec: Tree) -> bool:
    return any(
        "*" in rule.get("host", "") and any(_RULE_HTTP(rule, ROOT)) for rule in (spec.get("rules") or ())
    )


def _update(new: Tree, old: Tree) -> Iterable[FieldError]:
    before = within(old, "spec")
    rule = _check_rule_leniently if _has_wrong_wildcard(before) else _check_rule
    secret = every() if any(each(_SECRET)(before.get("tls"), ROOT)) else _SECRET
    return as_created(created(field("spec", _spec(rule, secret), absent={})))(new, old)


def _check_point(point: Tree, path: Path, kept: frozenset[str]) -> Iterator[FieldError]:
    address, host = point.get("ip"), point.get("hostname")
    if address:
        yield from check_ip(address, path.child("ip"), kept)
    if host:
        yield from _SUBDOMAIN(host, path.child("hostname"))
        if parse_sloppily(host) is not None:
            yield errors.invalid(path.child("hostname"), host, _NOT_A_NAME)


def _update_status(new: Tree, old: Tree) -> Iterator[FieldError]:
    way = ("status", "loadBalancer")
    kept = frozenset(point.get("ip", "") for point in (within(old, *way).get("ingress") or ()))
    points: Sequence[Tree] = within(new, *way).get("ingress") or ()
    for index, point in enumerate(points):
        yield from _check_point(point, ROOT.child(*way, "ingress").index(index), kept)


# --- classes

_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def _check_controller(name: str, path: Path) -> Iterator[FieldError]:
    domain, slash, rest = name.partition("/")
    if not slash or not domain or not rest:
        yield errors.invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from (errors.invalid(path, domain, problem) for problem in names.check_dns1123_subdomain(domain))
    if not re.fullmatch(_HTTP_PATH, rest):
        problem = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        yield errors.invalid(path, rest, problem)


_NAMESPACE: Final[Mapping[str, Check]] = {
    "Cluster": pointer("namespace", refused("`parameters.scope` is set to 'Cluster'")),
    "Namespace": every(
        lambda of, path: (
            ()
            if of.get("namespace") is not None
            else (errors.required(path.child("namespace"), "`parameters.scope` is set to 'Namespace'"),)
        ),
        pointer("namespace", valid(names.check_dns1123_label)),
    ),
}


def _check_scope(parameters: Tree, path: Path) -> Iterable[FieldError]:
    scope = parameters.get("scope")
    if scope is None:
        return (errors.required(path.child("scope")),)
    if scope not in _NAMESPACE:
        return one_of(*_NAMESPACE)(scope, path.child("scope"))
    return _NAMESPACE[scope](parameters, path)


_CREATE_CLASS: Final = created(
    field(
        "spec",
        required("controller", no_longer_than(250), _check_controller),
        pointer("parameters", check_reference, _check_scope),
        absent={},
    )
)
_UPDATE_CLASS: Final[Update] = together(
    unchanged("spec", "controller"), as_created(_CREATE_CLASS, SUBDOMAIN, namespaced=False)
)

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("networking.k8s.io", "Ingress"): Validation(
        create=_create, update=_update, subresources={"status": _update_status}
    ),
    GroupKind("networking.k8s.io", "IngressClass"): Validation(create=_CREATE_CLASS, update=_UPDATE_CLASS),
}
