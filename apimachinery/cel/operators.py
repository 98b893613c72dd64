"""Calls as closures: strict calls, which evaluate all arguments first, and calls that may not evaluate one of them."""

from collections.abc import Callable, Sequence
from typing import Any

from .attributes import Frame, Run
from .cost.runtime import MEASURED_ARGUMENTS
from .values import CelError, CelPanic, Optional, Uint, equals, format_value, map_key

CallCost = int | Callable[[Sequence[Any], Any], int]
_PRIMITIVES = (bool, int, Uint, float, str)


def strict_call(function: Callable[..., Any], args: tuple[Run, ...], cost: CallCost) -> Run:
    """Return the evaluation of a call: of its arguments, then of the function, with the call's cost."""
    if not isinstance(cost, int):
        return _measured_call(function, args, cost)
    if len(args) == 1:
        return _unary(function, args[0], cost)
    if len(args) == 2:
        return _binary(function, args[0], args[1], cost)

    def call(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        frame[0] += cost
        return function(*values)

    return call


def _unary(function: Callable[..., Any], arg: Run, cost: int) -> Run:
    def call(frame: Frame) -> Any:
        value = arg(frame)
        frame[0] += cost
        return function(value)

    return call


def _binary(function: Callable[..., Any], left: Run, right: Run, cost: int) -> Run:
    def call(frame: Frame) -> Any:
        a = left(frame)
        b = right(frame)
        frame[0] += cost
        return function(a, b)

    return call


def _measured_call(
    function: Callable[..., Any], args: tuple[Run, ...], cost: Callable[[Sequence[Any], Any], int]
) -> Run:
    index, conversion = MEASURED_ARGUMENTS.get(cost, (len(args), ""))
    if index < len(args):
        return _call_of_measured(function, args, cost, index, conversion)

    def call(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        result = function(*values)
        frame[0] += cost(values, result)
        return result

    return call


def _call_of_measured(
    function: Callable[..., Any],
    args: tuple[Run, ...],
    cost: Callable[[Sequence[Any], Any], int],
    index: int,
    conversion: str,
) -> Run:
    """Return the evaluation of a call that ends the whole evaluation if the measured argument is an error."""
    before, after = args[:index], args[index + 1 :]

    def call(frame: Frame) -> Any:
        try:
            measured = args[index](frame)
        except CelError as error:
            raise CelPanic(f"interface conversion: {conversion}") from error
        values = [*(arg(frame) for arg in before), measured, *(arg(frame) for arg in after)]
        result = function(*values)
        frame[0] += cost(values, result)
        return result

    return call


def equality(left: Run, right: Run, cost: CallCost) -> Run:
    measure = cost if not isinstance(cost, int) else None
    fixed = cost if isinstance(cost, int) else 0

    def equal(frame: Frame) -> bool:
        a = left(frame)
        b = right(frame)
        frame[0] += measure((a, b), None) if measure is not None else fixed
        return equals(a, b)

    return equal


def inequality(left: Run, right: Run, cost: CallCost) -> Run:
    equal = equality(left, right, cost)
    return lambda frame: not equal(frame)


def logical_and(left: Run, right: Run) -> Run:
    return _logic(left, right, decisive=False)


def logical_or(left: Run, right: Run) -> Run:
    return _logic(left, right, decisive=True)


def _logic(left: Run, right: Run, *, decisive: bool) -> Callable[[Frame], bool]:
    """Return the evaluation of `&&` or `||`: a decisive operand determines the result, even if the other one fails."""

    def logic(frame: Frame) -> bool:
        error: CelError | None = None
        for operand in (left, right):
            try:
                value = operand(frame)
            except CelError as failure:
                error = error or failure
                continue
            if value is decisive:
                return bool(value)
            if not isinstance(value, bool):
                error = error or CelError("no such overload")
        if error is not None:
            raise error
        return not decisive

    return logic


def not_strictly_false(operand: Run) -> Run:
    def check(frame: Frame) -> bool:
        frame[0] += 1
        try:
            value = operand(frame)
        except CelError:
            return True
        return value if isinstance(value, bool) else True

    return check


def optional_or(left: Run, right: Run, *, unwrap: bool) -> Run:
    """Return the evaluation of `or` or `orValue`: the second operand is evaluated only if the first one is absent."""

    def run(frame: Frame) -> Any:
        first = left(frame)
        if type(first) is not Optional:
            raise CelError("no such overload")
        if first.present:
            return first.value if unwrap else first
        second = right(frame)
        if not unwrap and type(second) is not Optional:
            raise CelError("no such overload")
        return second

    return run


def create_list(elements: tuple[Run, ...], optional: frozenset[int]) -> Run:
    if not optional:

        def create(frame: Frame) -> list[Any]:
            items = [element(frame) for element in elements]
            frame[0] += 10
            return items

        return create
    return _create_list_with_optionals(elements, optional)


def _create_list_with_optionals(elements: tuple[Run, ...], optional: frozenset[int]) -> Run:
    def create(frame: Frame) -> list[Any]:
        items: list[Any] = []
        for i, element in enumerate(elements):
            value = element(frame)
            if i not in optional:
                items.append(value)
            elif type(value) is not Optional:
                raise CelError(
                    f"cannot initialize optional list element from non-optional value {format_value(value)}"
                )
            elif value.present:
                items.append(value.value)
        frame[0] += 10
        return items

    return create


def create_map(entries: tuple[tuple[Run, Run, bool], ...]) -> Run:
    def create(frame: Frame) -> dict[Any, Any]:
        items: dict[Any, Any] = {}
        for key_run, value_run, optional in entries:
            key = key_run(frame)
            value = value_run(frame)
            if optional and type(value) is not Optional:
                raise CelError(
                    f"cannot initialize optional entry '{format_value(key)}' from non-optional value {format_value(value)}"
                )
            if optional and not value.present:
                items.pop(map_key(key), None)
                continue
            items[map_key(key)] = value.value if optional else value
        frame[0] += 30
        return items

    return create


def create_struct(make: Callable[[dict[str, Any]], Any], entries: tuple[tuple[str, Run, bool], ...]) -> Run:
    def create(frame: Frame) -> Any:
        fields: dict[str, Any] = {}
        for name, run, optional in entries:
            value = run(frame)
            if optional and type(value) is not Optional:
                raise CelError(
                    f"cannot initialize optional entry '{name}' from non-optional value {format_value(value)}"
                )
            if optional and not value.present:
                fields.pop(name, None)
                continue
            fields[name] = value.value if optional else value
        frame[0] += 40
        return make(fields)

    return create


def constant_membership(element: Run, items: list[Any]) -> Run | None:
    """Return the evaluation of `in` for a list of constants, which costs nothing; None if they are not all primitive values."""
    if not items:
        return lambda _: False
    if not all(type(item) in _PRIMITIVES for item in items):
        return None
    constants = {map_key(item) for item in items if item == item}  # noqa: PLR0124 -- NaN is not

    def member(frame: Frame) -> bool:
        value = element(frame)
        return type(value) in _PRIMITIVES and map_key(value) in constants

    return member
