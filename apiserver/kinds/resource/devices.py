"""Validation of the devices of a ResourceSlice, and of the counters that they share."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.quantity import ZERO, Quantity, from_json
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.selectors import check_node_selector

from .declared import declare
from .values import (
    check_effect,
    check_label,
    check_qualified_name,
    check_subdomain,
    declared_items,
    declared_label,
    declared_name_of,
    entries,
    items,
)

_MAX_DESCRIPTIONS: Final = 32
_MAX_VALUES: Final = 48
_MAX_TAINTS: Final = 16
_MAX_CONDITIONS: Final = 4
_MAX_CONSUMPTIONS: Final = 2
_MAX_COUNTERS: Final = 32
_MAX_VALUE_LENGTH: Final = 64

# --- capacities, and policies of requests for parts of them

_MAX_OPTIONS: Final = 10
_MAX_AMOUNT: Final = from_json(2**63 - 1)
NOT_A_STEP: Final = "must be greater than zero"
TOO_LARGE: Final = f"must not be larger than {2**63 - 1}"
_ONE_POLICY: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def _check_unshared(capacity: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check a capacity of a device that is allocated as a whole."""
    if capacity.get("requestPolicy") is None:
        return ()
    return (errors.forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true"),)


def _check_shared(capacity: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check a capacity of a device that several claims may share."""
    policy = capacity.get("requestPolicy")
    if policy is None:
        return ()
    path, capacity_value = path.child("requestPolicy"), from_json(capacity.get("value") or "0")
    values, limits, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and limits is not None:
        return (errors.forbidden(path, _ONE_POLICY),)
    name = "validValues" if values else "validRange"
    if not values and limits is None:
        return ()
    if default is None:
        return (errors.required(path.child("default"), f"required when {name} is defined"),)
    if values:
        return _check_values(from_json(default), capacity_value, values, path.child(name))
    return _check_range(from_json(default), capacity_value, limits, path.child(name))


def _check_values(
    default: Quantity, capacity_value: Quantity, values: Sequence[Any], path: Path
) -> Iterator[FieldError]:
    amounts = [from_json(value) for value in values]
    for index, (previous, amount) in enumerate(pairwise(amounts), 1):
        if amount < previous:
            problem = "values must be sorted in ascending order"
            yield errors.invalid(path.index(index), str(amount), problem)

    def check_option(value: Any, option_path: Path) -> Iterable[FieldError]:
        if not capacity_value < from_json(value):
            return ()
        return (
            errors.invalid(
                option_path, str(from_json(value)), f"option is larger than capacity value: {capacity_value}"
            ),
        )

    yield from items(_MAX_OPTIONS, check_option, key=lambda value: str(from_json(value).scaled_value()))(
        values, path
    )
    if default not in amounts[:_MAX_OPTIONS] or len(amounts) > _MAX_OPTIONS:
        problem = "default value is not valid according to the requestPolicy"
        yield errors.invalid(path, str(default), problem)


def _check_range(
    default: Quantity, capacity_value: Quantity, limits: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    min_path, max_path, default_path = path.child("min"), path.child("max"), path.child("default")
    step = limits.get("step")
    if limits.get("min") is None:
        yield errors.required(min_path, "required when validRange is defined")
        return
    low, high = from_json(limits["min"]), limits.get("max")
    if capacity_value < low:
        yield errors.invalid(min_path, str(low), f"min is larger than capacity value: {capacity_value}")
    if default < low:
        yield errors.invalid(default_path, str(default), f"default is less than min: {low}")
    if high is not None:
        high = from_json(high)
        if high < low:
            yield errors.invalid(max_path, str(low), f"min is larger than max: {high}")
        if capacity_value < high:
            yield errors.invalid(max_path, str(high), f"max is larger than capacity value: {capacity_value}")
        if high < default:
            yield errors.invalid(default_path, str(default), f"default is more than max: {high}")
    if step is not None:
        amounts = {"default": default, "min": low, "max": high, "step": from_json(step)}
        yield from _check_steps(capacity_value, amounts, path)


def _check_steps(
    capacity_value: Quantity, amounts: dict[str, Quantity | None], path: Path
) -> Iterator[FieldError]:
    default, low, high, step = amounts.values()
    assert default is not None
    assert low is not None
    assert step is not None
    step_path = path.child("step")
    if step <= ZERO:
        yield errors.invalid(step_path, str(step), NOT_A_STEP)
        return
    if capacity_value < low + step:
        problem = f"one step {low + step} is larger than capacity value: {capacity_value}"
        yield errors.invalid(step_path, str(step), problem)
    unusable = [*_check_amounts(amounts, path)]
    yield from unusable
    if unusable:
        return
    for value in (default,) if high is None else (default, high):
        if (value.scaled_value() - low.scaled_value()) % step.scaled_value():
            problem = f"value is not a multiple of a given step ({step}) from ({low})"
            yield errors.invalid(step_path, str(value), problem)


def _check_amounts(amounts: dict[str, Quantity | None], path: Path) -> Iterator[FieldError]:
    """Check that the parts of a range are numbers that upstream calculates with."""
    for name, amount in amounts.items():
        if amount is not None and amount < ZERO:
            yield errors.invalid(path.child(name), str(amount), checks.NOT_NEGATIVE)
        elif amount is not None and amount > _MAX_AMOUNT:
            yield errors.invalid(path.child(name), str(amount), TOO_LARGE)


# --- attributes

_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_NOT_A_VERSION: Final = "must be a string compatible with semver.org spec 2.0.0"


def _is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


_VALUES: Final = checks.all_of(
    checks.pointer("string", checks.max_bytes(_MAX_VALUE_LENGTH)),
    checks.pointer(
        "version", checks.require_that(_is_version, _NOT_A_VERSION), checks.max_bytes(_MAX_VALUE_LENGTH)
    ),
)
_KINDS: Final = ("int", "bool", "string", "version")


_LISTS: Final = ("ints", "bools", "strings", "versions")
_MEMBERS: Final = ", ".join(f"`{name}`" for name in (*_KINDS, *_LISTS))


def _check_attribute(attribute: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from _VALUES(attribute, path)
    yield from _ONE_VALUE(attribute, path)


def _check_one_value(attribute: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    present = [name for name in _KINDS if attribute.get(name) is not None]
    if len(present) == 1:
        return ()
    if present:
        text = f"{{{', '.join(present)}}}"
        return (errors.invalid(path, text, f"must specify exactly one of: {_MEMBERS}"),)
    return (errors.invalid(path, "", f"must specify one of: {_MEMBERS}"),)


def _check_number_of_values(attribute: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    present = sum(attribute.get(name) is not None for name in _KINDS)
    if present == 1:
        return ()
    value = internal("resource.DeviceAttribute", attribute) if present else ""
    return (errors.invalid(path, value, "exactly one value must be specified"),)


_ONE_VALUE: Final = declare(_check_one_value, _check_number_of_values)


def _check_attributes(device: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > _MAX_DESCRIPTIONS:
        problem = f"the total number of attributes and capacities must not exceed {_MAX_DESCRIPTIONS}"
        yield errors.invalid(path, count, problem)
    if len(attributes) > _MAX_VALUES:
        problem = f"the total number of attribute values must not exceed {_MAX_VALUES}"
        yield errors.invalid(path, len(attributes), problem)
    yield from entries(None, check_qualified_name, _check_attribute)(attributes, path.child("attributes"))


def _check_capacity(device: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    check = _check_shared if device.get("allowMultipleAllocations") else _check_unshared
    return entries(None, check_qualified_name, check)(device.get("capacity") or {}, path.child("capacity"))


# --- taints and conditions

TAINT_KEY: Final = checks.all_of(
    checks.field("key", check_label_name, absent=""),
    checks.optional("value", checks.report(names.check_label_value)),
)
TAINT: Final = checks.all_of(TAINT_KEY, declare(checks.require("effect", check_effect)))
_TAINTS: Final = checks.field("taints", items(_MAX_TAINTS, TAINT))
_CONDITIONS, _FAILURES = "bindingConditions", "bindingFailureConditions"


def check_binding(device: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    conditions, failures = device.get(_CONDITIONS) or (), device.get(_FAILURES) or ()
    for name, values in ((_CONDITIONS, conditions), (_FAILURES, failures)):
        yield from declared_items(_MAX_CONDITIONS, check_label_name)(values, path.child(name))
    yield from _check_distinct(conditions, (), path.child(_CONDITIONS))
    yield from _check_distinct(failures, conditions, path.child(_FAILURES))
    for name, other in ((_CONDITIONS, _FAILURES), (_FAILURES, _CONDITIONS)):
        if device.get(other) and not device.get(name):
            yield errors.invalid(path.child(name), device.get(name), f"{name} are required to use {other}")


def _check_distinct(values: Sequence[str], others: Sequence[str], path: Path) -> Iterator[FieldError]:
    seen, other_values = set[str](), {*others}
    for index, value in enumerate(values):
        if value in seen:
            yield errors.duplicate(path.index(index), value)
        seen.add(value)
        if value in other_values:
            problem = f"{_FAILURES} must not overlap with {_CONDITIONS}"
            yield errors.invalid(path.index(index), value, problem)


# --- counters


def _check_counter(_counter: Any, _path: Path) -> Iterable[FieldError]:
    return ()


_IS_PRESENT: Final = checks.require("counters")


def _check_counters(struct: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    counters = struct.get("counters")
    if not counters:
        return declare(_IS_PRESENT)(struct, path)
    return entries(_MAX_COUNTERS, declared_label, _check_counter)(counters, path.child("counters"))


_CONSUMPTION: Final = checks.all_of(declared_name_of("counterSet"), _check_counters)
_CONSUMPTIONS: Final = checks.field(
    "consumesCounters",
    declared_items(
        _MAX_CONSUMPTIONS,
        _CONSUMPTION,
        key=lambda consumption: consumption.get("counterSet", ""),
        required=("counterSet",),
    ),
)
check_counter_set: Final = checks.all_of(declared_name_of("name"), _check_counters)

# --- nodes

_ONE_NODE_FIELD: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)
_NO_NODE_FIELD: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes")


def refuse_false(name: str) -> Check:
    """Return the check that a flag is not false."""
    return checks.pointer(
        name, checks.require_that(lambda value: value, "must be either unset or set to true")
    )


def node_name(problem: str) -> Check:
    """Return the check of a node's name; `problem` is the message of an empty one."""

    def check(name: str, path: Path) -> Iterable[FieldError]:
        return check_subdomain(name, path) if name else (errors.invalid(path, name, problem),)

    return checks.pointer("nodeName", check)


_NODES: Final = checks.all_of(
    node_name("must not be empty"),
    checks.pointer("nodeSelector", check_node_selector),
    refuse_false("allNodes"),
)


def is_set(struct: ReadOnlyTree, name: str) -> bool:
    """Return whether a field that selects nodes is set."""
    return struct.get(name) is not None if name == "nodeSelector" else bool(struct.get(name))


def _check_own_nodes(device: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from _NODES(device, path)
    present = [f"`{name}`" for name in _NODE_FIELDS if is_set(device, name)]
    if not present:
        yield errors.required(path, _ONE_NODE_FIELD)
    elif len(present) > 1:
        yield errors.invalid(path, f"{{{', '.join(present)}}}", _ONE_NODE_FIELD)


def _check_no_nodes(device: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if all(device.get(name) is None for name in _NODE_FIELDS):
        return ()
    return (errors.invalid(path, None, _NO_NODE_FIELD),)


# --- a device


def device(*, chooses_nodes: bool, old_devices: Mapping[str, ReadOnlyTree]) -> Check:
    """Return the check of a device. Taints and capacities that the old devices have, by name, are not checked again."""
    check_nodes = _check_own_nodes if chooses_nodes else _check_no_nodes

    def unless_same(name: str, check: Check) -> Check:
        def check_changed(device: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
            old = old_devices.get(device.get("name", ""))
            is_unchanged = old is not None and (old.get(name) or None) == (device.get(name) or None)
            return () if is_unchanged else check(device, path)

        return check_changed

    return checks.all_of(
        checks.field("name", check_label, absent=""),
        _check_attributes,
        unless_same("capacity", _check_capacity),
        unless_same("taints", _TAINTS),
        _CONSUMPTIONS,
        check_nodes,
        check_binding,
    )
