"""Validation of the devices that a claim requests, and of the constraints on them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import ResultTypeError
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.device_expressions import MAX_COST, environment, sizes
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.cel.cost_estimate import estimate_cost
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check

from . import values
from .declared import declared_errors, without_older

MAX_ITEMS: Final = 32
_MAX_ALTERNATIVES: Final = 8


def _check_allocation(request: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "ExactCount":
        return checks.positive(count, path.child("count"))
    if mode != "All":
        error = errors.not_supported(path.child("allocationMode"), mode, ("All", "ExactCount"))
        return declared_errors([error], [error])
    problem = "must not be specified when allocationMode is 'All'"
    return (errors.invalid(path.child("count"), count, problem),) if count else ()


# --- selectors

_MAX_EXPRESSION_LENGTH: Final = 10 * 1024


def check_expression(text: str, path: Path) -> Iterable[FieldError]:
    if len(text.encode()) > _MAX_EXPRESSION_LENGTH:
        return (errors.too_long(path, _MAX_EXPRESSION_LENGTH),)
    try:
        compiled = environment().compile(text, lambda type_: type_ in (types.BOOL, types.ANY))
    except Issues as issues:
        return (errors.invalid(path, text, f"compilation failed: {issues}"),)
    except ResultTypeError as error:
        problem = f"must evaluate to bool or the unknown type, not {error.type}"
        return (errors.invalid(path, text, problem),)
    except ProgramError as error:
        return (errors.internal(path, f"program instantiation failed: {error}"),)
    if estimate_cost(compiled.expr, sizes).high > MAX_COST:
        return (errors.forbidden(path, "too complex, exceeds cost limit"),)
    return ()


_SELECTOR: Final = checks.require("cel", checks.field("expression", check_expression, absent=""))
check_selectors: Final = checks.field("selectors", values.declared_items(MAX_ITEMS, _SELECTOR))

_CHOICE: Final = checks.all_of(
    check_selectors, _check_allocation, checks.field("tolerations", checks.each_item(values.check_toleration))
)
_EXACT: Final = checks.all_of(checks.require("deviceClassName", values.check_subdomain), _CHOICE)
_NAME: Final = checks.field("name", values.check_label, absent="")
_ALTERNATIVES: Final = checks.field(
    "firstAvailable",
    values.declared_items(
        _MAX_ALTERNATIVES,
        _NAME,
        values.declared_class_name,
        _CHOICE,
        key=values.item_name,
        required=("name", "deviceClassName"),
    ),
)
_ONE_OF_BOTH: Final = checks.all_of(_ALTERNATIVES, checks.pointer("exactly", _EXACT))


def _check_request(request: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from _NAME(request, path)
    present = bool(request.get("firstAvailable")) + (request.get("exactly") is not None)
    detail = "exactly one of `exactly` or `firstAvailable` is required"
    if not present:
        yield errors.required(path, detail)
    elif present > 1:
        yield errors.invalid(path, None, f"{detail}, but multiple fields are set")
        yield from without_older(_ONE_OF_BOTH(request, path))
    else:
        yield from _ONE_OF_BOTH(request, path)


# --- references to requests

_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def request_names(devices: ReadOnlyTree) -> frozenset[str]:
    """Return the names of requests and their alternatives, to which other fields can refer."""
    names = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        names.add(name)
        names.update(
            f"{name}/{subrequest.get('name', '')}" for subrequest in request.get("firstAvailable") or ()
        )
    return frozenset(names)


def reference(requests: frozenset[str]) -> Callable[[str, Path], Iterator[FieldError]]:
    def check(name: str, path: Path) -> Iterator[FieldError]:
        if name.count("/") <= 1:
            for part in name.split("/"):
                yield from values.check_label(part, path)
        if name not in requests:
            yield errors.invalid(path, name, _NO_REQUEST)

    return check


def references(requests: frozenset[str]) -> Check:
    return checks.field(
        "requests", values.declared_items(MAX_ITEMS, reference(requests), key=values.item_value)
    )


# --- claims

check_configuration: Final = checks.require(
    "opaque", values.declared_driver, checks.field("parameters", values.check_parameters)
)


def _check_attribute(constraint: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the attribute that devices must have in common, and the one in which they must differ."""
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if match is distinct is None:
        yield errors.required(path, _NO_ATTRIBUTE)
    if match is not None:
        yield from values.declared_name(match, path.child("matchAttribute"))
    if distinct is not None:
        # Before the rules were declared, the second attribute was not checked.
        check = values.declared_name if match is None else values.newly_declared_name
        yield from check(distinct, path.child("distinctAttribute"))


_NO_ATTRIBUTE: Final = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)
"""Upstream's message if none is set."""


def check_devices(devices: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    request_references = references(request_names(devices))
    check = checks.all_of(
        checks.field(
            "requests",
            values.declared_items(MAX_ITEMS, _check_request, key=values.item_name, required=("name",)),
        ),
        checks.field("constraints", values.declared_items(MAX_ITEMS, request_references, _check_attribute)),
        checks.field("config", values.declared_items(MAX_ITEMS, request_references, check_configuration)),
    )
    yield from check(devices, path)
