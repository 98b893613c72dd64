"""Endpoints: the addresses behind a Service, as one object."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation import objectmeta
from apiserver.validation.addresses import check_endpoint_ip, check_ip
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_label_name
from apiserver.validation.objectmeta import SUBDOMAIN
from apiserver.validation.ports import check_protocol
from apiserver.validation.rules import (
    Tree,
    each,
    every,
    field,
    optional,
    pointer,
    port_number,
    required,
    valid,
)

_LABEL: Final = valid(names.check_dns1123_label)

_CHECK_ADDRESS: Final = every(
    field("ip", check_ip, absent=""),
    optional("hostname", _LABEL),
    pointer("nodeName", valid(names.check_dns1123_subdomain)),
    field("ip", check_endpoint_ip, absent=""),
)
_CHECK_PORT: Final = every(
    field("port", port_number, absent=0),
    required("protocol", check_protocol),
    pointer("appProtocol", check_label_name),
)


def _check_subset(subset: Tree, path: Path) -> Iterator[FieldError]:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield errors.required(path, "must specify `addresses` or `notReadyAddresses`")
    for name in ("addresses", "notReadyAddresses"):
        yield from field(name, each(_CHECK_ADDRESS))(subset, path)
    ports = subset.get("ports") or ()
    for index, port in enumerate(ports):
        check_name = required("name", _LABEL) if len(ports) > 1 else optional("name", _LABEL)
        yield from every(check_name, _CHECK_PORT)(port, path.child("ports").index(index))


def _create(endpoints: Tree) -> Iterable[FieldError]:
    return each(_check_subset)(endpoints.get("subsets"), ROOT.child("subsets"))


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    """What was there before was right by the rules of its time."""
    yield from objectmeta.check(new, SUBDOMAIN, namespaced=True)
    if new.get("subsets") != old.get("subsets"):
        yield from _create(new)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "Endpoints"): Validation(create=_create, update=_update),
}
