"""IPAddresses and ServiceCIDRs: where the addresses of Services come from, and whose they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.addresses import check_cidr, check_ip, is_ipv6, parse_sloppily
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import NameRule
from apiserver.validation.objects import created, within
from apiserver.validation.rules import IMMUTABLE, Tree, every, field, optional, required, valid

# --- IPAddress


def _check_name(name: str) -> list[str]:
    """The name is the address, written as it is written best."""
    problems = [error.detail for error in check_ip(name, ROOT)]
    if not problems and str(ip_address(name)) != name:
        return [f'must be in canonical form ("{ip_address(name)}")']
    return problems


_SEGMENT: Final = valid(names.check_path_segment_name)

_PARENT: Final = every(
    optional("group", valid(names.check_dns1123_subdomain)),
    required("resource", _SEGMENT),
    required("name", _SEGMENT),
    optional("namespace", _SEGMENT),
)


def _update_address(new: Tree, old: Tree) -> Iterable[FieldError]:
    parent, path = within(new, "spec").get("parentRef"), ROOT.child("spec", "parentRef")
    if parent == within(old, "spec").get("parentRef"):
        return ()
    shown = None if parent is None else internal("networking.ParentReference", parent)
    return (errors.invalid(path, shown, IMMUTABLE),)


# --- ServiceCIDR

_CIDRS: Final = ROOT.child("spec", "cidrs")


def _check_strictly(network: str, path: Path) -> Iterator[FieldError]:
    found = [*check_cidr(network, path)]
    yield from found
    if not found and str(ip_network(network)) != network:
        yield errors.invalid(path, network, f'must be in canonical form ("{ip_network(network)}")')


def _check_cidrs(spec: Tree) -> Iterator[FieldError]:
    networks = spec.get("cidrs") or []
    if not networks:
        yield errors.required(_CIDRS, "at least one CIDR required")
        return
    if len(networks) > 2:
        problem = "may only hold up to 2 values"
        yield errors.invalid(_CIDRS, internal("networking.ServiceCIDRSpec", spec), problem)
        return
    for index, network in enumerate(networks):
        yield from _check_strictly(network, _CIDRS.index(index))
    if len(networks) == 2 and _are_of_one_family(networks):
        problem = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield errors.invalid(_CIDRS, networks, problem)


def _are_of_one_family(networks: Sequence[str]) -> bool:
    first, second = (network.partition("/")[0] for network in networks)
    known = parse_sloppily(first) is not None and parse_sloppily(second) is not None
    return known and is_ipv6(first) == is_ipv6(second)


def _create_cidr(tree: Tree) -> Iterable[FieldError]:
    return _check_cidrs(within(tree, "spec"))


def _update_cidr(new: Tree, old: Tree) -> Iterator[FieldError]:
    """A second family may join the first; nothing else changes."""
    now, before = within(new, "spec").get("cidrs") or [], within(old, "spec").get("cidrs") or []
    joins = len(before) == 1 and len(now) == 2
    if len(now) != len(before) and not joins:
        yield errors.invalid(_CIDRS, now, IMMUTABLE)
        return
    for index, network in enumerate(before):
        if now[index] != network:
            yield errors.invalid(_CIDRS.index(index), now[index], IMMUTABLE)
    if joins:
        yield from _check_cidrs(within(new, "spec"))


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("networking.k8s.io", "IPAddress"): Validation(
        name=NameRule(_check_name, _check_name),
        create=created(field("spec", required("parentRef", _PARENT), absent={})),
        update=_update_address,
    ),
    GroupKind("networking.k8s.io", "ServiceCIDR"): Validation(create=_create_cidr, update=_update_cidr),
}
