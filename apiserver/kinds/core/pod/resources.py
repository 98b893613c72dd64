"""Validation of resource requests and limits, of the pod and its containers, and of resource claims."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, TypeAlias

from mockube.apimachinery import errors, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.apiserver.kinds.common import resource_names
from mockube.apiserver.kinds.common.checks import all_of, pointer, report
from mockube.apiserver.kinds.common.internal import internal

from .context import WINDOWS, PodContext
from .pod_level import aggregate

_LABEL: Final = report(names.check_dns1123_label)
_SUBDOMAIN: Final = report(names.check_dns1123_subdomain)

_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_NAMES: Final = all_of(*(pointer(name, _SUBDOMAIN) for name in _SOURCES))


def claim_names(spec: ReadOnlyTree) -> frozenset[str]:
    return frozenset(claim["name"] for claim in spec.get("resourceClaims", ()) if claim.get("name"))


def check_resource_claims(
    spec: ReadOnlyTree, metadata: ReadOnlyTree | None, path: Path
) -> Iterator[FieldError]:
    path = path.child("resourceClaims")
    is_static = ANNOTATION_MIRROR_POD in ((metadata or {}).get("annotations") or {})
    seen: set[str] = set()
    for index, claim in enumerate(spec.get("resourceClaims", ())):
        if is_static:
            yield errors.forbidden(ROOT.key(""), "static pods do not support resource claims")
        else:
            yield from _check_claim(claim, path.index(index), seen)


def _check_claim(claim: ReadOnlyTree, path: Path, seen: set[str]) -> Iterator[FieldError]:
    name = claim.get("name", "")
    if not name:
        yield errors.required(path.child("name"))
    elif name in seen:
        yield errors.duplicate(path.child("name"), name)
    else:
        yield from _LABEL(name, path.child("name"))
        seen.add(name)
    present = [source for source in _SOURCES if claim.get(source) is not None]
    if len(present) > 1:
        problem = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield errors.invalid(path, internal("core.PodResourceClaim", claim), problem)
    if not present:
        problem = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield errors.invalid(path, internal("core.PodResourceClaim", claim), problem)
    yield from _NAMES(claim, path)


CheckName: TypeAlias = Callable[[str, Path], Iterable[FieldError]]

_SMALL: Final = frozenset({resource_names.CPU, resource_names.MEMORY})


def _check_named(name: str, amount: str, path: Path, check_name: CheckName) -> Iterator[FieldError]:
    yield from check_name(name, path)
    yield from resource_names.check_amount(name, amount, path)


def _check_pages(name: str, amount: str, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    if not resource_names.is_huge_page(name) or pod_context.options.huge_pages:
        return
    if not resource_names.is_divisible(name, quantity.parse(amount)):
        yield errors.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")


def _check_against_limit(name: str, amount: str, limits: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that a request is at most the limit, and equal to it for resources that do not allow overcommit."""
    limit = limits.get(name)
    if limit is None:
        if not resource_names.is_overcommit_allowed(name):
            detail = "Limit must be set for non overcommitable resources"
            yield errors.required(path.child("limits"), detail)
        return
    request, maximum = quantity.parse(amount), quantity.parse(limit)
    if request != maximum and not resource_names.is_overcommit_allowed(name):
        yield errors.invalid(path.child("requests"), amount, f"must be equal to {name} limit of {limit}")
    elif request > maximum:
        problem = f"must be less than or equal to {name} limit of {limit}"
        yield errors.invalid(path.child("requests"), amount, problem)


def check_requirements(
    requirements: ReadOnlyTree,
    path: Path,
    pod_context: PodContext,
    check_name: CheckName = resource_names.check_container_name,
) -> Iterator[FieldError]:
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    for name, amount in limits.items():
        field_path = path.child("limits").key(name)
        yield from _check_named(name, amount, field_path, check_name)
        yield from _check_pages(name, amount, field_path, pod_context)
    for name, amount in requests.items():
        field_path = path.child("requests").key(name)
        yield from _check_named(name, amount, field_path, check_name)
        yield from _check_against_limit(name, amount, limits, path)
        yield from _check_pages(name, amount, field_path, pod_context)
    if any(map(resource_names.is_huge_page, chain(limits, requests))) and not _SMALL & {*limits, *requests}:
        yield errors.forbidden(path, "HugePages require cpu or memory")
    yield from _check_claims(requirements.get("claims") or (), path.child("claims"), pod_context)


# --- claims


def _check_claims(
    claims: Iterable[ReadOnlyTree], path: Path, pod_context: PodContext
) -> Iterator[FieldError]:
    """Check that claims are declared and unique: a claim is used as a whole or by request, and no part of it twice."""
    seen: set[str] = set()
    request_counts: Counter[str] = Counter()
    for index, claim in enumerate(claims):
        name, claim_path = claim.get("name", ""), path.index(index)
        if not name:
            yield errors.required(claim_path)
            continue
        yield from _check_repeated(name, claim.get("request", ""), claim_path, seen, request_counts)
        if name not in pod_context.claims:
            error_type, detail = errors.ErrorType.NOT_FOUND, pod_context.undeclared_claim
            yield FieldError(type=error_type, field=str(claim_path), value=name, detail=detail)


def _check_repeated(
    name: str, request: str, path: Path, seen: set[str], request_counts: Counter[str]
) -> Iterator[FieldError]:
    """Check a use of a claim. `request_counts` has the number of different seen requests of each claim."""
    if name in seen:
        yield errors.duplicate(path, name)
        return
    key = name
    if request:
        yield from report(names.check_dns1123_label)(request, path.child("request"))
        key = f"{name}/{request}"
    if key in seen:
        yield errors.duplicate(path, key)
    elif request:
        request_counts[name] += 1
    else:
        for _ in range(request_counts[name]):
            yield errors.duplicate(path, name)
    seen.add(key)


# --- pods as a whole


def check_pod_resources(pod_context: PodContext, path: Path) -> Iterable[FieldError]:
    resources, path = pod_context.spec.get("resources"), path.child("resources")
    if resources is None:
        return ()
    if pod_context.os == WINDOWS:
        return (errors.forbidden(path, "may not be set for a windows pod"),)
    field_errors = []
    if resources.get("claims") is not None:
        detail = "claims may not be set for Resources at pod-level"
        field_errors.append(errors.forbidden(path.child("claims"), detail))
    field_errors += check_requirements(resources, path, pod_context, resource_names.check_pod_name)
    return [*field_errors, *_check_containers_fit(pod_context.spec, resources, path)]


def _check_containers_fit(spec: ReadOnlyTree, resources: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that the sum of the containers' requests, and each container's limits, are within the pod's."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in aggregate(spec, "requests").items():
        yield from _check_covered("requests", name, amount, requests, path)
    for name, amount in aggregate(spec, "limits").items():
        if resource_names.is_huge_page(name):
            yield from _check_covered("limits", name, amount, limits, path)
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and quantity.parse(amount) > quantity.parse(limits[name]):
                field_path = path.child("containers").index(index).key(name).child("limits")
                problem = f"must be less than or equal to pod limits of {limits[name]}"
                yield errors.invalid(field_path, amount, problem)


def _check_covered(
    field: str, name: str, amount: str, of_pod: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    if name in of_pod and quantity.parse(amount) > quantity.parse(of_pod[name]):
        problem = f"must be greater than or equal to aggregate container {field} of {amount}"
        yield errors.invalid(path.child(field).key(name), of_pod[name], problem)
