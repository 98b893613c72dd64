"""Statuses of a pod's claims to other resources than volumes, made by it or for it."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.rules import Tree, pointer, required, valid

_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)
_LABEL: Final = valid(names.check_dns1123_label)


def check_claim_statuses(status: Tree, spec: Tree, path: Path) -> Iterator[FieldError]:
    path = path.child("resourceClaimStatuses")
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims", ())}
    seen: set[str] = set()
    for index, of_claim in enumerate(status.get("resourceClaimStatuses", ())):
        at, name = path.index(index), of_claim.get("name", "")
        if name not in claims:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            yield errors.invalid(at.child("name"), name, problem)
        if name in seen:
            yield errors.duplicate(at.child("name"), name)
        seen.add(name)
        yield from pointer("resourceClaimName", _SUBDOMAIN)(of_claim, at)


_NO_SUCH_RESOURCE: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)
_NO_SUCH_CONTAINER: Final = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_MAPPED: Final = ("containerName", "resourceName", "requestName")


def check_extended_claim(status: Tree, spec: Tree, path: Path) -> Iterator[FieldError]:
    claim, path = status.get("extendedResourceClaimStatus"), path.child("extendedResourceClaimStatus")
    if claim is None:
        return
    mappings, at = claim.get("requestMappings") or (), path.child("requestMappings")
    if not mappings:
        yield errors.required(at, "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(mappings):
        yield from _check_mapping(mapping, at.index(index), spec)
        yield from _LABEL(mapping.get("requestName", ""), path.child("requestName"))
        key = tuple(mapping.get(name, "") for name in _MAPPED)
        if key in seen:
            for name in _MAPPED:
                yield errors.duplicate(at.index(index).child(name), mapping.get(name, ""))
        seen.add(key)
    yield from required("resourceClaimName", _SUBDOMAIN)(claim, path)


def _check_mapping(mapping: Tree, path: Path, spec: Tree) -> Iterator[FieldError]:
    """Of the requests of a container to what it is that serves them."""
    containers = {
        container.get("name", ""): container
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    }
    container, resource = mapping.get("containerName", ""), mapping.get("resourceName", "")
    if container not in containers:
        yield errors.invalid(path.child("containerName"), container, _NO_SUCH_CONTAINER)
    elif resource not in ((containers[container].get("resources") or {}).get("requests") or ()):
        yield errors.invalid(path.child("resourceName"), resource, _NO_SUCH_RESOURCE)
