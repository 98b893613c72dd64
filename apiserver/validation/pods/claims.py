"""Claims of a pod to other resources than volumes."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.pods.annotations import MIRROR
from apiserver.validation.rules import Tree, every, pointer, valid

_LABEL: Final = valid(names.check_dns1123_label)
_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)

_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_NAMES: Final = every(*(pointer(name, _SUBDOMAIN) for name in _SOURCES))


def claim_names(spec: Tree) -> frozenset[str]:
    return frozenset(claim["name"] for claim in spec.get("resourceClaims", ()) if claim.get("name"))


def check_resource_claims(spec: Tree, metadata: Tree | None, path: Path) -> Iterator[FieldError]:
    path = path.child("resourceClaims")
    is_static = MIRROR in ((metadata or {}).get("annotations") or {})
    seen: set[str] = set()
    for index, claim in enumerate(spec.get("resourceClaims", ())):
        if is_static:
            yield errors.forbidden(ROOT.key(""), "static pods do not support resource claims")
        else:
            yield from _check_claim(claim, path.index(index), seen)


def _check_claim(claim: Tree, path: Path, seen: set[str]) -> Iterator[FieldError]:
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
