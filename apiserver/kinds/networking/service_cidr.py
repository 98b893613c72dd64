"""ServiceCIDR: a range of cluster IPs."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from ipaddress import ip_network
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.addresses import check_strict_cidr, cidr_family
from mockube.apiserver.kinds.common.cells import items
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import Validation, accept_update, get_struct
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import STATUS_ALONE, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_CIDRS: Final = ROOT.child("spec", "cidrs")


def _check_canonical(network: str, path: Path) -> Iterator[FieldError]:
    cidr_errors = [*check_strict_cidr(network, path)]
    yield from cidr_errors
    if not cidr_errors and str(ip_network(network)) != network:
        yield errors.invalid(path, network, f'must be in canonical form ("{ip_network(network)}")')


def _check_cidrs(spec: ReadOnlyTree) -> Iterator[FieldError]:
    networks = spec.get("cidrs") or []
    if not networks:
        yield errors.required(_CIDRS, "at least one CIDR required")
        return
    if len(networks) > 2:
        problem = "may only hold up to 2 values"
        yield errors.invalid(_CIDRS, internal("networking.ServiceCIDRSpec", spec), problem)
        return
    for index, network in enumerate(networks):
        yield from _check_canonical(network, _CIDRS.index(index))
    families = [*map(cidr_family, networks)]
    if len(families) == 2 and families[0] == families[1] != 0:
        problem = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield errors.invalid(_CIDRS, networks, problem)


def _create(tree: ReadOnlyTree) -> Iterable[FieldError]:
    return _check_cidrs(get_struct(tree, "spec"))


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that at most a CIDR of the other family is added."""
    new_value, old_cidrs = get_struct(new, "spec").get("cidrs"), get_struct(old, "spec").get("cidrs") or []
    new_cidrs = new_value or []
    adds_family = len(old_cidrs) == 1 and len(new_cidrs) == 2
    if len(new_cidrs) != len(old_cidrs) and not adds_family:
        yield errors.invalid(_CIDRS, new_value, IMMUTABLE)
        return
    for index, network in enumerate(old_cidrs):
        if new_cidrs[index] != network:
            yield errors.invalid(_CIDRS.index(index), new_cidrs[index], IMMUTABLE)
    if adds_family:
        yield from _check_cidrs(get_struct(new, "spec"))


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), ",".join(items(tree, "spec", "cidrs")), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(
        group="networking.k8s.io",
        version="v1",
        name="servicecidrs",
        kind="ServiceCIDR",
        namespaced=False,
        subresources=(STATUS,),
    ),
    strategy=Strategy(resets=STATUS_ALONE),
    validation=Validation(create=_create, update=_update, subresources={"status": accept_update}),
    printer=Printer(columns=(NAME, Column(name="CIDRs"), AGE_COLUMN), cells=_cells),
)
