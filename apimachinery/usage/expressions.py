"""The expressions of kwok's ResourceUsages: CEL with arithmetic on quantities and functions of the time.

The variables are the objects `pod`, `node` and `container`; `metadata.labels` and `metadata.annotations` always exist.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from mockube.apimachinery import quantity
from mockube.apimachinery.cel import arithmetic, types
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.environment import CompiledExpression, Environment, Library
from mockube.apimachinery.cel.libraries.quantities import QuantityValue, quantity_value
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.standard import SINGLETONS
from mockube.apimachinery.cel.values import SECOND, CelError, CostExceeded, Duration, Timestamp
from mockube.apimachinery.quantity import NANO, Quantity, QuantityError
from mockube.apimachinery.randomness import Random, fraction
from mockube.apimachinery.timestamps import TimestampError, parse_time
from mockube.apimachinery.tree import ReadOnlyTree

COST_LIMIT: Final = 20_000
"""The cost limit of one evaluation: an expression is evaluated for every container, and blocks other work."""
MAX_EXPRESSIONS: Final = 1024
"""The maximum number of cached compiled expressions."""

_Q: Final = "kubernetes.Quantity"
_DECLARED: Final = declare(
    f"""
    Quantity usage_quantity (string) -> {_Q}
    Now usage_now () -> timestamp
    now usage_now_old () -> timestamp
    Rand usage_rand () -> double
    SinceSecond usage_since (dyn) -> double
    SinceSecond usage_since_method dyn.() -> double
    UnixSecond usage_unix (timestamp) -> double
    UnixSecond usage_unix_method timestamp.() -> double
    _+_ usage_add ({_Q}, {_Q}) -> {_Q}
    _-_ usage_subtract ({_Q}, {_Q}) -> {_Q}
    -_ usage_negate ({_Q}) -> {_Q}
    _*_ usage_multiply_int ({_Q}, int) -> {_Q}
    _*_ usage_multiply_uint ({_Q}, uint) -> {_Q}
    _*_ usage_multiply_double ({_Q}, double) -> {_Q}
    _/_ usage_divide_int ({_Q}, int) -> {_Q}
    _/_ usage_divide_uint ({_Q}, uint) -> {_Q}
    _/_ usage_divide_double ({_Q}, double) -> {_Q}
    _<_ usage_less ({_Q}, {_Q}) -> bool
    _<=_ usage_less_equals ({_Q}, {_Q}) -> bool
    _>_ usage_greater ({_Q}, {_Q}) -> bool
    _>=_ usage_greater_equals ({_Q}, {_Q}) -> bool
    """
)
_VARIABLES: Final = {"pod": types.DYN, "node": types.DYN, "container": types.DYN}


class UsageExpressionError(Exception):
    """An expression cannot be compiled or evaluated, or its value is not an amount."""


class Expressions:
    """An evaluator of expressions, with a cache of compiled ones."""

    def __init__(self, now: Callable[[], datetime], random: Random, *libraries: Library) -> None:
        """Add `libraries` to the functions of usage expressions."""
        functions: dict[str, Callable[..., Any]] = {
            "usage_quantity": _quantity,
            "usage_now": lambda: _timestamp(now()),
            "usage_now_old": lambda: _timestamp(now()),
            "usage_rand": lambda: fraction(random),
            "usage_since": lambda obj: _seconds_since(obj, now()),
            "usage_since_method": lambda obj: _seconds_since(obj, now()),
            "usage_unix": lambda time: time.nanoseconds / SECOND,
            "usage_unix_method": lambda time: time.nanoseconds / SECOND,
        }
        library = Library(_DECLARED, functions, _OPERATORS)
        self._environment = Environment(_VARIABLES, libraries=(library, *libraries))
        self._compile = lru_cache(MAX_EXPRESSIONS)(self._compile_text)

    def amount(self, text: str, pod: ReadOnlyTree, node: ReadOnlyTree, container: ReadOnlyTree) -> Quantity:
        """Evaluate an expression for a container and return the amount; raise `UsageExpressionError` if that fails."""
        return _amount(self.value(text, pod, node, container))

    def value(self, text: str, pod: ReadOnlyTree, node: ReadOnlyTree, container: ReadOnlyTree) -> Any:
        """Evaluate an expression for a container and return a value of any type; raise `UsageExpressionError` if that fails."""
        compiled = self._compile(text)
        if isinstance(compiled, str):
            raise UsageExpressionError(compiled)
        variables = {"pod": _with_maps(pod), "node": _with_maps(node), "container": container}
        try:
            value, _ = compiled.program.evaluate(variables, COST_LIMIT)
        except (CelError, CostExceeded) as error:
            raise UsageExpressionError(str(error)) from error
        return value

    def _compile_text(self, text: str) -> CompiledExpression | str:
        """Compile an expression, or return its error, so that the error is cached as well."""
        try:
            return self._environment.compile(text)
        except (Issues, ProgramError) as error:
            return str(error)


def _with_maps(obj: ReadOnlyTree) -> dict[str, Any]:
    """Return an object in which labels and annotations exist, as they do in Go."""
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {"annotations": {}, "labels": {}, **metadata}}


def _amount(value: Any) -> Quantity:
    if isinstance(value, QuantityValue):
        return value.quantity
    if isinstance(value, Duration):
        value = value.nanoseconds
    if isinstance(value, bool | int | float):
        try:
            return quantity.Quantity(Decimal(str(float(value)))).round_up(NANO)
        except (QuantityError, ArithmeticError) as error:
            raise UsageExpressionError(f"no amount: {value}") from error
    raise UsageExpressionError(f"unsupported type: {type(value).__name__}")


# --- functions


def _quantity(text: str) -> QuantityValue:
    try:
        return quantity_value(quantity.parse(text))
    except QuantityError as error:
        raise CelError(str(error)) from error


def _timestamp(time: datetime) -> Timestamp:
    return Timestamp(int(time.timestamp()) * SECOND + time.microsecond * 1000)


def _seconds_since(obj: Any, now: datetime) -> float:
    """Return the seconds since an object was created, or since a timestamp."""
    if isinstance(obj, Timestamp):
        return (_timestamp(now).nanoseconds - obj.nanoseconds) / SECOND
    try:
        created = obj["metadata"]["creationTimestamp"]
        return (now - parse_time(created)).total_seconds()
    except (KeyError, TypeError, TimestampError) as error:
        raise CelError("no such overload") from error


def _binary(
    operate_on_quantities: Callable[[Quantity, Any], Quantity | bool], otherwise: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    def operate(left: Any, right: Any) -> Any:
        if not isinstance(left, QuantityValue):
            return otherwise(left, right)
        result = operate_on_quantities(left.quantity, right)
        return quantity_value(result) if isinstance(result, Quantity) else result

    return operate


def _right_operand(right: Any) -> Quantity:
    if not isinstance(right, QuantityValue):
        raise CelError("no such overload")
    return right.quantity


def _multiply(left: Quantity, right: Any) -> Quantity:
    if isinstance(right, bool) or not isinstance(right, int | float):
        raise CelError("no such overload")
    return _scale(left, Decimal(str(right)))


def _divide(left: Quantity, right: Any) -> Quantity:
    if isinstance(right, bool) or not isinstance(right, int | float):
        raise CelError("no such overload")
    if not right:
        raise CelError("division by zero")
    return _scale(left, 1 / Decimal(str(right)))


def _scale(amount: Quantity, factor: Decimal) -> Quantity:
    try:
        return Quantity(amount.number * factor, amount.format).round_up(NANO)
    except ArithmeticError as error:
        raise CelError("quantity overflow") from error


def _negate(value: Any) -> Any:
    return quantity_value(-value.quantity) if isinstance(value, QuantityValue) else arithmetic.negate(value)


def _operators(standard: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    return {
        "-_": _negate,
        "_+_": _binary(lambda left, right: left + _right_operand(right), standard["_+_"]),
        "_-_": _binary(lambda left, right: left - _right_operand(right), standard["_-_"]),
        "_*_": _binary(_multiply, standard["_*_"]),
        "_/_": _binary(_divide, standard["_/_"]),
        "_<_": _binary(lambda left, right: left < _right_operand(right), standard["_<_"]),
        "_<=_": _binary(lambda left, right: left <= _right_operand(right), standard["_<=_"]),
        "_>_": _binary(lambda left, right: left > _right_operand(right), standard["_>_"]),
        "_>=_": _binary(lambda left, right: left >= _right_operand(right), standard["_>=_"]),
    }


_OPERATORS: Final = _operators(SINGLETONS)
