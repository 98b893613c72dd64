"""The bounds that a schema sets to a number, by the rules and in the words of upstream's OpenAPI library.

Upstream reads a whole number that fits into 64 bits as int64, and every other number as float64. Which one a number is
decides how it is compared and shown.
"""

import math
from collections.abc import Iterable
from typing import Final

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gonumbers import Number, as_read, int64, is_whole, to_int
from mockube.apimachinery.paths import ROOT, Path
from mockube.apiserver.kinds.common.checks import Check, all_of
from mockube.apiserver.kinds.jsonschema.schema import Schema, is_int_or_string
from mockube.apiserver.kinds.jsonschema.values import shown_path, value_error

_BITS: Final = {"int32": 32, "int64": 64}
_FLOAT32_LIMIT: Final = 2.0**128 - 2.0**103
"""From here on a number is rounded to infinity when it is read as float32."""
_SAFE_INTEGER: Final = float(2**53 - 1)
_EPSILON: Final = 1e-9
_FLOATS: Final = frozenset({"float", "double"})


def is_integer(value: Number) -> bool:
    """Whether upstream takes the number for an integer; a relative error of 1e-9 is none above zero."""
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
            return is_whole(value) and -limit <= to_int(value) < limit
        return not self._is_float or abs(value) < _FLOAT32_LIMIT

    def errors(self, subject: str, value: Number, path: Path) -> Iterable[FieldError]:
        if self.contains(value):
            return ()
        problem = f"{subject} value must be of type {self._name} in {shown_path(path)}"
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
    return lambda value, path: inner(as_read(value), path)


def _multiple(limits: _Range, factor: float) -> Check:
    def check(value: Number, path: Path) -> Iterable[FieldError]:
        foreign = [*limits.errors("MultipleOf", factor, path)]
        if foreign or isinstance(value, float):
            return [*foreign, *_multiple_errors(value if not foreign else float(value), factor, path)]
        return _multiple_errors(value, int64(factor), path)

    return check


def _multiple_errors(value: Number, factor: Number, path: Path) -> Iterable[FieldError]:
    if factor <= 0:
        problem = (
            f"factor MultipleOf declared for {shown_path(path)} must be positive: {gotext.format_v(factor)}"
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
        foreign = [*limits.errors(f"{name} boundary", limit, path)]
        compared: Number = limit if foreign or isinstance(value, float) else int64(limit)
        number = float(value) if foreign else value
        holds = number > compared if comparison == "greater" else number < compared
        if holds or (number == compared and not exclusive):
            return foreign
        return [*foreign, value_error(path, number, problem.format(gotext.format_v(compared)))]

    return check
