"""Validation of the cluster IPs and IP families of a Service, and of their changes.

The rules for several addresses apply only if each of them is valid.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.addresses import check_strict_ip, is_dual_stack, is_ipv6

EXTERNAL_NAME: Final = "ExternalName"
NO_ADDRESS: Final = "None"
_SINGLE_STACK: Final = "SingleStack"
_IPV4, _IPV6 = "IPv4", "IPv6"

_SPEC: Final = ROOT.child("spec")
_ADDRESSES, _FAMILIES, _POLICY = (
    _SPEC.child(name) for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
)


def addresses_of(spec: ReadOnlyTree) -> Sequence[str]:
    return spec.get("clusterIPs") or ()


def families_of(spec: ReadOnlyTree) -> Sequence[str]:
    return spec.get("ipFamilies") or ()


def is_headless(spec: ReadOnlyTree) -> bool:
    return [*addresses_of(spec)] == [NO_ADDRESS]


# --- values


def _check_families(families: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, family in enumerate(families or ()):
        yield from checks.one_of(_IPV4, _IPV6)(family, path.index(index))
        if family in seen:
            yield errors.duplicate(path.index(index), family)
        seen.add(family)


_CHOICES: Final = checks.all_of(
    checks.field("ipFamilies", _check_families),
    checks.pointer("ipFamilyPolicy", checks.one_of("PreferDualStack", "RequireDualStack", _SINGLE_STACK)),
)


def _check_cluster_ip(spec: ReadOnlyTree) -> Iterator[FieldError]:
    first, addresses = spec.get("clusterIP", ""), addresses_of(spec)
    if not first and addresses:
        yield errors.invalid(_ADDRESSES, addresses, "must be empty when `clusterIP` is not specified")
    elif first and not addresses:
        yield errors.required(_ADDRESSES)
    elif first and addresses[0] != first:
        yield errors.invalid(_ADDRESSES, addresses, "first value must match `clusterIP`")


def _check_each(addresses: Sequence[str], valid_old_ips: AbstractSet[str]) -> Iterator[FieldError]:
    for index, address in enumerate(addresses):
        if index or address != NO_ADDRESS:
            yield from check_strict_ip(address, _ADDRESSES.index(index), valid_old_ips)
        elif len(addresses) > 1:
            yield errors.invalid(_ADDRESSES, addresses, "'None' must be the first and only value")


def _check_together(spec: ReadOnlyTree) -> Iterator[FieldError]:
    addresses = addresses_of(spec)
    if len(addresses) > 1 and not is_dual_stack(addresses):
        problem = "may specify no more than one IP for each IP family"
        yield errors.invalid(_ADDRESSES, addresses, problem)
    if is_headless(spec):
        return
    for index, (address, family) in enumerate(zip(addresses, families_of(spec), strict=False)):
        if family in (_IPV4, _IPV6) and family != (_IPV6 if is_ipv6(address) else _IPV4):
            problem = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield errors.invalid(_ADDRESSES.index(index), address, problem)


def check_cluster_ips(spec: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    if spec.get("type") == EXTERNAL_NAME:
        return
    addresses = addresses_of(spec)
    yield from _check_cluster_ip(spec)
    yield from _CHOICES(spec, _SPEC)
    address_errors = [*_check_each(addresses, frozenset(addresses_of(old or {})))]
    yield from address_errors
    if len(addresses) > 2:
        yield errors.invalid(_ADDRESSES, addresses, "may only hold up to 2 values")
    if not address_errors:
        yield from _check_together(spec)


# --- changes

_ONCE_SET: Final = "may not change once set"


def check_address_changes(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check changes of the cluster IPs: the primary one is immutable, a secondary one may be added and removed."""
    new_addresses, old_addresses = addresses_of(new), addresses_of(old)
    if EXTERNAL_NAME in (new.get("type"), old.get("type")) or (is_headless(new) and is_headless(old)):
        return
    if len(new_addresses) == len(old_addresses):
        for index, (new_address, old_address) in enumerate(zip(new_addresses, old_addresses, strict=True)):
            if new_address != old_address:
                yield errors.invalid(_ADDRESSES.index(index), new_addresses, _ONCE_SET)
        return
    if not new_addresses:
        yield errors.invalid(_ADDRESSES.index(0), None, "primary clusterIP can not be unset")
    elif old_addresses and new_addresses[0] != old_addresses[0]:
        yield errors.invalid(_ADDRESSES.index(0), new_addresses, _ONCE_SET)
    if len(new_addresses) < len(old_addresses):
        yield from _check_released(new, new_addresses, "clusterIP")


def check_family_changes(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check changes of the IP families of a Service that has cluster IPs."""
    if EXTERNAL_NAME in (new.get("type"), old.get("type")) or is_headless(new) or is_headless(old):
        return
    new_families, old_families = families_of(new), families_of(old)
    if len(new_families) == len(old_families):
        for new_family, old_family in zip(new_families, old_families, strict=True):
            if new_family != old_family:
                yield errors.invalid(_FAMILIES.index(0), new_families, _ONCE_SET)
        return
    # Upstream reports the addresses here instead of the families, and checks them.
    cluster_ips = addresses_of(new) or None
    if len(new_families) < len(old_families) and not cluster_ips:
        yield errors.invalid(_FAMILIES.index(0), new_families or None, "primary ipFamily can not be unset")
    if new_families and old_families and new_families[0] != old_families[0]:
        yield errors.invalid(_FAMILIES.index(0), cluster_ips, _ONCE_SET)
    if len(new_families) < len(old_families):
        yield from _check_released(new, new_families, "ipFamily")


def _check_released(spec: ReadOnlyTree, remaining: Sequence[Any], noun: str) -> Iterator[FieldError]:
    policy = spec.get("ipFamilyPolicy")
    if len(remaining) == 1 and policy != _SINGLE_STACK:
        problem = f"must be set to '{_SINGLE_STACK}' when releasing the secondary {noun}"
        yield errors.invalid(_POLICY, policy, problem)
