"""Validation of the capacities of a device, and of the policies of requests for parts of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.quantity import Quantity, from_json
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.resource.values import items

_MAX_OPTIONS: Final = 10
_ONE_POLICY: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def check_unshared(capacity: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check a capacity of a device that is allocated as a whole."""
    if capacity.get("requestPolicy") is None:
        return ()
    return (errors.forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true"),)


def check_shared(capacity: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
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

    def check_option(value: Any, at: Path) -> Iterable[FieldError]:
        if not capacity_value < from_json(value):
            return ()
        return (
            errors.invalid(
                at, str(from_json(value)), f"option is larger than capacity value: {capacity_value}"
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
    min_path, max_path, step = path.child("min"), path.child("max"), limits.get("step")
    if limits.get("min") is None:
        yield errors.required(min_path, "required when validRange is defined")
        return
    low, high = from_json(limits["min"]), limits.get("max")
    if capacity_value < low:
        yield errors.invalid(min_path, str(low), f"min is larger than capacity value: {capacity_value}")
    if default < low:
        yield errors.invalid(min_path, str(default), f"default is less than min: {low}")
    if high is not None:
        high = from_json(high)
        if high < low:
            yield errors.invalid(max_path, str(low), f"min is larger than max: {high}")
        if capacity_value < high:
            yield errors.invalid(max_path, str(high), f"max is larger than capacity value: {capacity_value}")
        if high < default:
            yield errors.invalid(max_path, str(default), f"default is more than max: {high}")
    if step is not None:
        yield from _check_steps(default, capacity_value, (low, high, from_json(step)), path.child("step"))


def _check_steps(
    default: Quantity,
    capacity_value: Quantity,
    limits: tuple[Quantity, Quantity | None, Quantity],
    path: Path,
) -> Iterator[FieldError]:
    low, high, step = limits
    if capacity_value < low + step:
        problem = f"one step {low + step} is larger than capacity value: {capacity_value}"
        yield errors.invalid(path, str(step), problem)
    size = step.scaled_value()
    for value in (default,) if high is None else (default, high):
        # Upstream divides by the step. If it is 0, its request fails.
        if not size or (value.scaled_value() - low.scaled_value()) % size:
            problem = f"value is not a multiple of a given step ({step}) from ({low})"
            yield errors.invalid(path, str(value), problem)
