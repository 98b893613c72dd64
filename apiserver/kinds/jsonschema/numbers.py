"""Checks of numbers by a schema, with the rules and messages of kube-openapi.

Upstream decodes a whole number that fits into 64 bits as int64, and every other number as float64. The type of a number
determines how it is compared and printed.
"""

import math
from collections.abc import Iterable
from typing import Final

from mockube.apimachinery import errors, gonumbers, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gonumbers import Number
from mockube.apimachinery.paths import ROOT, Path
from mockube.apiserver.kinds.common.checks import Check, all_of

from .schema import Schema, is_int_or_string
from .values import path_text, value_error

_BITS: Final = {"int32": 32, "int64": 64}
_FLOAT32_LIMIT: Final = 2.0**128 - 2.0**103
"""The smallest number that is rounded to infinity as float32."""
_SAFE_INTEGER: Final = float(2**53 - 1)
_EPSILON: Final = 1e-9
_FLOATS: Final = frozenset({"float", "double"})


def is_integer(value: Number) -> bool:
    """Return whether upstream treats the number as an integer: above zero, a relative error below 1e-9 is ignored."""
    if isinstance(value, int):
        return True
    if not abs(value) <= _SAFE_INTEGER:
        return False
    integer = math.trunc(value)
    return value == integer or (integer > 0 and abs(value - integer) / (abs(value) + abs(integer)) < _EPSILON)


class _Range:
    """The range of numbers of a type and format."""

    def __init__(self, schema: Schema) -> None:
        kind, form = ("" if is_int_or_string(schema) else schema.get("type", "")), schema.get("format", "")
        self._bits = _BITS.get(form, 64) if kind == "integer" else 0
        self._is_float = kind == "number" and form == "float"
        known_formats = _BITS if kind == "integer" else _FLOATS if kind == "number" else ()
        self._name = f"{kind} with format {form}" if form in known_formats else f"{kind} (default format)"

    def contains(self, value: Number) -> bool:
        if self._bits:
            limit = 1 << (self._bits - 1)
            return gonumbers.is_whole(value) and -limit <= gonumbers.to_int(value) < limit
        return not self._is_float or abs(value) < _FLOAT32_LIMIT

    def errors(self, subject: str, value: Number, path: Path) -> Iterable[FieldError]:
        if self.contains(value):
            return ()
        problem = f"{subject} value must be of type {self._name} in {path_text(path)}"
        return (errors.invalid(ROOT, "", problem),)


def check_number(schema: Schema) -> Check:
    limits = _Range(schema)
    checks = [lambda value, path: limits.errors("Checked", value, path)]
    if schema.get("multipleOf") is not None:
        checks.append(_multiple(limits, float(schema["multipleOf"])))
    for name, comparison in (("minimum", "greater"), ("maximum", "less")):
        if schema.get(name) is not None:
            exclusive = bool(schema.get(f"exclusive{name.title()}"))
            checks.append(
                _bound_check(limits, name.title(), float(schema[name]), comparison, exclusive=exclusive)
            )
    inner = all_of(*checks)
    return lambda value, path: inner(gonumbers.as_decoded_by_go(value), path)


def _multiple(limits: _Range, factor: float) -> Check:
    def check(value: Number, path: Path) -> Iterable[FieldError]:
        range_errors = [*limits.errors("MultipleOf", factor, path)]
        if range_errors or isinstance(value, float):
            return [
                *range_errors,
                *_multiple_errors(value if not range_errors else float(value), factor, path),
            ]
        return _multiple_errors(value, gonumbers.int64(factor), path)

    return check


def _multiple_errors(value: Number, factor: Number, path: Path) -> Iterable[FieldError]:
    if factor <= 0:
        problem = (
            f"factor MultipleOf declared for {path_text(path)} must be positive: {gotext.format_v(factor)}"
        )
        return (errors.invalid(path, factor, problem),)
    if _is_multiple(value, factor):
        return ()
    return (value_error(path, value, f"should be a multiple of {gotext.format_v(factor)}"),)


def _is_multiple(value: Number, factor: Number) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return is_integer(1 / factor * value if factor < 1 else value / factor)


def _bound_check(
    limits: _Range,
    name: str,
    limit: float,
    comparison: str,
    *,
    exclusive: bool,
) -> Check:
    problem = (
        f"should be {comparison} than {{}}" if exclusive else f"should be {comparison} than or equal to {{}}"
    )

    def check(value: Number, path: Path) -> Iterable[FieldError]:
        range_errors = [*limits.errors(f"{name} boundary", limit, path)]
        bound: Number = limit if range_errors or isinstance(value, float) else gonumbers.int64(limit)
        number = float(value) if range_errors else value
        holds = number > bound if comparison == "greater" else number < bound
        if holds or (number == bound and not exclusive):
            return range_errors
        return [*range_errors, value_error(path, number, problem.format(gotext.format_v(bound)))]

    return check
