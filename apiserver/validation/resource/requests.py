"""What a claim asks for: devices, one way or another, and what they have in common."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
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

MOST: Final = 32
_MOST_ALTERNATIVES: Final = 8
_LONGEST_EXPRESSION: Final = 10 * 1024


def _check_allocation(request: Tree, path: Path) -> Iterable[FieldError]:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "ExactCount":
        return positive(count, path.child("count"))
    if mode != "All":
        return (errors.not_supported(path.child("allocationMode"), mode, ("All", "ExactCount")),)
    problem = "must not be specified when allocationMode is 'All'"
    return (errors.invalid(path.child("count"), count, problem),) if count else ()


_SELECTOR: Final = required("cel", field("expression", no_longer_than(_LONGEST_EXPRESSION), absent=""))
check_selectors: Final = field("selectors", items(MOST, _SELECTOR))

_EXACT: Final = every(
    required("deviceClassName", check_subdomain),
    check_selectors,
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
    return field("requests", items(MOST, reference(requests)), unique())


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
        field("requests", items(MOST, _check_request), unique("name")),
        field("constraints", items(MOST, named, _check_attribute)),
        field("config", items(MOST, named, check_configuration)),
    )
    yield from check(devices, path)
