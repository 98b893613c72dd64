"""The IP families of a Service: from the request, from its cluster IPs, or the cluster's default."""

from collections.abc import Sequence
from typing import Any

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.hosts import is_address
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.core.service.strategy import needs_cluster_ip

IPV4, IPV6 = "IPv4", "IPv6"
OTHER = {IPV4: IPV6, IPV6: IPV4}
NONE = "None"
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"

_POLICY = ROOT.child("spec", "ipFamilyPolicy")


def family_of(address: str) -> str:
    return IPV6 if ":" in address else IPV4


def is_headless(spec: Tree) -> bool:
    return bool(spec.get("clusterIP") == NONE)


def is_well_formed(spec: Tree) -> bool:
    """Return whether families can be set. If not, validation reports why."""
    addresses, families = spec.get("clusterIPs", []), spec.get("ipFamilies", [])
    if len(addresses) > 2 or len(families) > 2 or len({*families}) != len(families):
        return False
    if (spec.get("clusterIP") or "") != (addresses[0] if addresses else ""):
        return False
    if NONE in addresses:
        return len(addresses) == 1 and {*families} <= {*OTHER}
    if not ({*families} <= {*OTHER} and all(map(is_address, addresses))):
        return False
    return all(family_of(address) == family for address, family in zip(addresses, families, strict=False))


def init_ip_families(spec: Tree, old: Tree | None, configured: Sequence[str]) -> Sequence[FieldError]:
    """Set ipFamilies and ipFamilyPolicy, or return errors. `configured` are the cluster's families, the default first."""
    if not needs_cluster_ip(spec) or (old is not None and keeps_prefer_dual_stack(spec, old)):
        return ()
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = _default_policy(spec, old)
    if old is not None and spec["ipFamilyPolicy"] == SINGLE:
        _reduce(spec, old)
    field_errors = [*_check_reduction(spec, old), *_check_count(spec), *_infer(spec, configured)]
    if field_errors:
        return field_errors
    selectorless = is_headless(spec) and not spec.get("selector")
    if not selectorless:  # without a selector, endpoints may be outside the cluster, so any family is valid
        field_errors = [*_check_configured(spec, configured)]
        if field_errors:
            return field_errors
    families = spec.get("ipFamilies") or [configured[0]]
    is_dual_stack = spec["ipFamilyPolicy"] != SINGLE and (selectorless or len(configured) == 2)
    spec["ipFamilies"] = (
        [families[0], OTHER[families[0]]] if is_dual_stack and len(families) == 1 else families
    )
    return ()


def keeps_prefer_dual_stack(spec: Tree, old: Tree) -> bool:
    """Return whether an update keeps the families of a Service that prefers dual stack."""
    same = all(spec.get(field) == old.get(field) for field in ("type", "clusterIPs", "ipFamilies"))
    return same and spec.get("ipFamilyPolicy") == PREFER and old.get("ipFamilyPolicy", PREFER) == PREFER


def _default_policy(spec: Tree, old: Tree | None) -> Any:
    if old is not None and old.get("ipFamilyPolicy"):
        return old["ipFamilyPolicy"]
    return REQUIRE if is_headless(spec) and not spec.get("selector") else SINGLE


def _reduce(spec: Tree, old: Tree) -> None:
    """Release the second family if the client requests a single stack and changes nothing else of the families."""
    for field in ("clusterIPs", "ipFamilies"):
        if spec.get(field) == old.get(field) and len(spec.get(field, ())) > 1:
            spec[field] = spec[field][:1]


def _check_reduction(spec: Tree, old: Tree | None) -> Sequence[FieldError]:
    if old is None or spec["ipFamilyPolicy"] == SINGLE:
        return ()
    return [
        errors.invalid(
            _POLICY, spec["ipFamilyPolicy"], f"must be 'SingleStack' to release the secondary {noun}"
        )
        for field, noun in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family"))
        if 0 < len(spec.get(field, ())) < len(old.get(field, ()))
    ]


def _check_count(spec: Tree) -> Sequence[FieldError]:
    if spec["ipFamilyPolicy"] != SINGLE:
        return ()
    needed = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
    return [
        errors.invalid(_POLICY, SINGLE, f"{needed} {plural} are specified")
        for field, plural in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(field, ())) == 2
    ]


def _infer(spec: Tree, configured: Sequence[str]) -> Sequence[FieldError]:
    """Set the families that the request omits to those of its cluster IPs."""
    addresses, families, field_errors = spec.get("clusterIPs", []), [*spec.get("ipFamilies", [])], []
    if addresses and not is_headless(spec):
        for index, address in enumerate(addresses[len(families) :], start=len(families)):
            family = family_of(address)
            families.append(family)
            if family not in configured:
                path = ROOT.child("spec", "clusterIPs").index(index)
                field_errors.append(
                    errors.invalid(path, addresses, f"{family} is not configured on this cluster")
                )
        spec["ipFamilies"] = families
    return field_errors


def _check_configured(spec: Tree, configured: Sequence[str]) -> Sequence[FieldError]:
    field_errors = []
    if spec["ipFamilyPolicy"] == REQUIRE and len(configured) < 2:
        problem = "this cluster is not configured for dual-stack services"
        field_errors.append(errors.invalid(_POLICY, REQUIRE, problem))
    for index, family in enumerate(spec.get("ipFamilies", ())):
        if family not in configured:
            path = ROOT.child("spec", "ipFamilies").index(index)
            field_errors.append(errors.invalid(path, family, "not configured on this cluster"))
    return field_errors
