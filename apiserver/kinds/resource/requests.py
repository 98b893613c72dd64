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
from mockube.apiserver.kinds.common.checks import (
    Check,
    all_of,
    each_item,
    field,
    pointer,
    positive,
    require,
)
from mockube.apiserver.kinds.resource.declared import declared_errors, without_older
from mockube.apiserver.kinds.resource.values import (
    check_label,
    check_parameters,
    check_subdomain,
    check_toleration,
    declared_class_name,
    declared_driver,
    declared_items,
    declared_name,
    item_name,
    item_value,
)

MAX_ITEMS: Final = 32
_MAX_ALTERNATIVES: Final = 8


def _check_allocation(request: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "ExactCount":
        return positive(count, path.child("count"))
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


_SELECTOR: Final = require("cel", field("expression", check_expression, absent=""))
check_selectors: Final = field("selectors", declared_items(MAX_ITEMS, _SELECTOR))

_CHOICE: Final = all_of(check_selectors, _check_allocation, field("tolerations", each_item(check_toleration)))
_EXACT: Final = all_of(require("deviceClassName", check_subdomain), _CHOICE)
_NAME: Final = field("name", check_label, absent="")
_ALTERNATIVES: Final = field(
    "firstAvailable",
    declared_items(
        _MAX_ALTERNATIVES,
        _NAME,
        declared_class_name,
        _CHOICE,
        key=item_name,
        required=("name", "deviceClassName"),
    ),
)
_ONE_OF_BOTH: Final = all_of(_ALTERNATIVES, pointer("exactly", _EXACT))


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
                yield from check_label(part, path)
        if name not in requests:
            yield errors.invalid(path, name, _NO_REQUEST)

    return check


def references(requests: frozenset[str]) -> Check:
    return field("requests", declared_items(MAX_ITEMS, reference(requests), key=item_value))


# --- claims

check_configuration: Final = require("opaque", declared_driver, field("parameters", check_parameters))


def _check_attribute(constraint: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the attribute that devices must have in common, or in which they must differ."""
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            return declared_name(constraint[name], path.child(name))
    return (errors.required(path, _NO_ATTRIBUTE),)


_NO_ATTRIBUTE: Final = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)
"""Upstream's message if none is set."""


def check_devices(devices: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    request_references = references(request_names(devices))
    check = all_of(
        field("requests", declared_items(MAX_ITEMS, _check_request, key=item_name, required=("name",))),
        field("constraints", declared_items(MAX_ITEMS, request_references, _check_attribute)),
        field("config", declared_items(MAX_ITEMS, request_references, check_configuration)),
    )
    yield from check(devices, path)
