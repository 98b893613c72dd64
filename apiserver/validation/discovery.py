"""EndpointSlices."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import Path
from apiserver.validation.addresses import check_endpoint_ip, check_ip, is_ipv6
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_label_name, check_labels
from apiserver.validation.objects import as_created, created, together, unchanged
from apiserver.validation.ports import check_protocol
from apiserver.validation.rules import (
    Check,
    Tree,
    each,
    every,
    field,
    one_of,
    optional,
    pointer,
    required,
    valid,
)

_MOST_ENDPOINTS, _MOST_PORTS = 1000, 20000
_MOST_ADDRESSES, _MOST_HINTS, _MOST_LABELS = 100, 8, 16

_LABEL: Final = valid(names.check_dns1123_label)
_NODE_NAME: Final = valid(names.check_dns1123_subdomain)


# --- addresses


def _of_family(version: str, *, six: bool) -> Check:
    def check(address: str, path: Path) -> Iterator[FieldError]:
        found = [*check_ip(address, path)]
        if not found and is_ipv6(address) != six:
            found = [errors.invalid(path, address, f"must be an {version} address")]
        yield from found or check_endpoint_ip(address, path)

    return check


def _check_domain_name(name: str, path: Path) -> Iterable[FieldError]:
    if not name:
        return (errors.required(path),)
    shown = name.removesuffix(".")
    problems = names.check_dns1123_subdomain(shown)
    labels = shown.split(".")
    if problems:
        return (errors.invalid(path, shown, ",".join(problems)),)
    if len(labels) < 2:
        problem = "should be a domain with at least two segments separated by dots"
        return (errors.invalid(path, shown, problem),)
    wrong = [(label, names.check_dns1123_label(label)) for label in labels]
    return [errors.invalid(path, label, ",".join(problems)) for label, problems in wrong if problems][:1]


_ADDRESSES: Final[Mapping[str, Check]] = {
    "FQDN": _check_domain_name,
    "IPv4": _of_family("IPv4", six=False),
    "IPv6": _of_family("IPv6", six=True),
}


def _check_addresses(of_one: Check) -> Check:
    def check(addresses: Sequence[str], path: Path) -> Iterator[FieldError]:
        if len(addresses) > _MOST_ADDRESSES:
            yield errors.too_many(path, len(addresses), _MOST_ADDRESSES)
        yield from each(of_one)(addresses, path)

    return required("addresses", check, detail="must contain at least 1 address")


# --- endpoints


def _hints(name: Check) -> Callable[[Sequence[Tree] | None, Path], Iterator[FieldError]]:
    def check(hints: Sequence[Tree] | None, path: Path) -> Iterator[FieldError]:
        if len(hints or ()) > _MOST_HINTS:
            yield errors.too_many(path, len(hints or ()), _MOST_HINTS)
            return
        seen = set()
        for index, hint in enumerate(hints or ()):
            given, at = hint.get("name", ""), path.index(index).child("name")
            if given in seen:
                yield errors.duplicate(at, given)
            seen.add(given)
            yield from name(given, at)

    return check


def _check_topology(labels: Tree, path: Path) -> Iterator[FieldError]:
    if len(labels) > _MOST_LABELS:
        yield errors.too_many(path, len(labels), _MOST_LABELS)
    yield from check_labels(labels, path)


_HINTS: Final = every(
    field("forZones", _hints(valid(names.check_label_value))), field("forNodes", _hints(_NODE_NAME))
)


def _check_endpoints(slice_: Tree, path: Path) -> Iterator[FieldError]:
    """Addresses of a type that there is none of are not looked at."""
    endpoints, path = slice_.get("endpoints") or (), path.child("endpoints")
    if len(endpoints) > _MOST_ENDPOINTS:
        yield errors.too_many(path, len(endpoints), _MOST_ENDPOINTS)
        return
    check = every(
        _check_addresses(_ADDRESSES.get(slice_.get("addressType", ""), every())),
        pointer("nodeName", _NODE_NAME),
        optional("deprecatedTopology", _check_topology),
        pointer("hostname", _LABEL),
        pointer("hints", _HINTS),
    )
    yield from each(check)(endpoints, path)


# --- ports


def _check_ports(ports: Sequence[Tree] | None, path: Path) -> Iterator[FieldError]:
    if len(ports or ()) > _MOST_PORTS:
        yield errors.too_many(path, len(ports or ()), _MOST_PORTS)
        return
    seen = set()
    for index, port in enumerate(ports or ()):
        at, name = path.index(index), port.get("name") or ""
        yield from optional("name", _LABEL)(port, at)
        if name in seen:
            yield errors.duplicate(at.child("name"), name)
        seen.add(name)
        yield from field("protocol", check_protocol, absent="")(port, at)
        yield from pointer("appProtocol", check_label_name)(port, at)


_CREATE: Final = created(
    required("addressType", one_of(*_ADDRESSES)), _check_endpoints, field("ports", _check_ports)
)

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("discovery.k8s.io", "EndpointSlice"): Validation(
        create=_CREATE, update=together(as_created(_CREATE), unchanged("addressType"))
    ),
}
