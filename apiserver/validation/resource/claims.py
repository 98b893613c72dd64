"""ResourceClaims, templates of them, and DeviceClasses."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Create, Update, Validation
from apiserver.validation.objectmeta import named_by
from apiserver.validation.objects import again, created, together, within
from apiserver.validation.resource.values import (
    check_driver,
    check_fully_qualified_name,
    check_label,
    check_parameters,
    check_subdomain,
    check_toleration,
    items,
)
from apiserver.validation.rules import (
    IMMUTABLE,
    Check,
    Tree,
    each,
    every,
    field,
    no_longer_than,
    pointer,
    positive,
    required,
    unique,
)
from apiserver.validation.volumes.claims import check_template_metadata

_GROUP: Final = "resource.k8s.io"
_MOST: Final = 32
_MOST_ALTERNATIVES: Final = 8
_LONGEST_EXPRESSION: Final = 10 * 1024


# --- requests


def _check_allocation(request: Tree, path: Path) -> Iterable[FieldError]:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "ExactCount":
        return positive(count, path.child("count"))
    if mode != "All":
        return (errors.not_supported(path.child("allocationMode"), mode, ("All", "ExactCount")),)
    problem = "must not be specified when allocationMode is 'All'"
    return (errors.invalid(path.child("count"), count, problem),) if count else ()


_SELECTOR: Final = required("cel", field("expression", no_longer_than(_LONGEST_EXPRESSION), absent=""))
_SELECTORS: Final = field("selectors", items(_MOST, _SELECTOR))

_EXACT: Final = every(
    required("deviceClassName", check_subdomain),
    _SELECTORS,
    _check_allocation,
    field("tolerations", each(check_toleration)),
)
_NAME: Final = field("name", check_label, absent="")
_ALTERNATIVES: Final = field("firstAvailable", items(_MOST_ALTERNATIVES, _NAME, _EXACT), unique("name"))


def _check_request(request: Tree, path: Path) -> Iterator[FieldError]:
    yield from _NAME(request, path)
    yield from _ALTERNATIVES(request, path)
    yield from pointer("exactly", _EXACT)(request, path)
    present = bool(request.get("firstAvailable")) + (request.get("exactly") is not None)
    detail = "exactly one of `exactly` or `firstAvailable` is required"
    if not present:
        yield errors.required(path, detail)
    elif present > 1:
        yield errors.invalid(path, None, f"{detail}, but multiple fields are set")


# --- references to requests

_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def request_names(devices: Tree) -> frozenset[str]:
    """What may stand for a request, or for one of its alternatives."""
    found = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        found.add(name)
        found.update(f"{name}/{one.get('name', '')}" for one in request.get("firstAvailable") or ())
    return frozenset(found)


def reference(requests: frozenset[str]) -> Callable[[str, Path], Iterator[FieldError]]:
    def check(name: str, path: Path) -> Iterator[FieldError]:
        if name.count("/") <= 1:
            for part in name.split("/"):
                yield from check_label(part, path)
        if name not in requests:
            yield errors.invalid(path, name, _NO_REQUEST)

    return check


def references(requests: frozenset[str]) -> Check:
    return field("requests", items(_MOST, reference(requests)), unique())


# --- claims

check_configuration: Final = required("opaque", check_driver, field("parameters", check_parameters))


def _check_attribute(constraint: Tree, path: Path) -> Iterable[FieldError]:
    """Either must all devices have the same value, or no two."""
    if constraint.get("distinctAttribute") is not None:
        return pointer("distinctAttribute", check_fully_qualified_name)(constraint, path)
    attribute, path = constraint.get("matchAttribute"), path.child("matchAttribute")
    return (errors.required(path),) if attribute is None else check_fully_qualified_name(attribute, path)


def check_devices(devices: Tree, path: Path) -> Iterator[FieldError]:
    named = references(request_names(devices))
    check = every(
        field("requests", items(_MOST, _check_request), unique("name")),
        field("constraints", items(_MOST, named, _check_attribute)),
        field("config", items(_MOST, named, check_configuration)),
    )
    yield from check(devices, path)


_CLAIM_SPEC: Final = field("devices", check_devices, absent={})
_CLAIM: Final = created(field("spec", _CLAIM_SPEC, absent={}))
_TEMPLATE: Final = created(
    field(
        "spec",
        field("metadata", check_template_metadata, absent={}),
        field("spec", _CLAIM_SPEC, absent={}),
        absent={},
    )
)


def _fixed_spec(struct: str) -> Update:
    def update(new: Tree, old: Tree) -> Iterable[FieldError]:
        spec = within(new, "spec")
        if spec == within(old, "spec"):
            return ()
        return (errors.invalid(ROOT.child("spec"), internal(struct, spec), IMMUTABLE),)

    return update


def _fixed(create: Create, struct: str, subresources: Mapping[str, Update] | None = None) -> Validation:
    update = together(_fixed_spec(struct), again(create))
    return Validation(create=create, update=update, subresources=subresources or {})


# --- classes

_CLASS: Final = created(
    field("spec", _SELECTORS, field("config", items(_MOST, check_configuration)), absent={})
)


def _check_class_name(name: str) -> list[str]:
    return names.check_dns1123_subdomain(name, names.BYTES)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind(_GROUP, "ResourceClaim"): _fixed(_CLAIM, "resource.ResourceClaimSpec"),
    GroupKind(_GROUP, "ResourceClaimTemplate"): _fixed(_TEMPLATE, "resource.ResourceClaimTemplateSpec"),
    GroupKind(_GROUP, "DeviceClass"): Validation(
        name=named_by(_check_class_name), create=_CLASS, update=again(_CLASS)
    ),
}
