"""Checks of lengths, patterns, numbers of items and enumerations by a schema, with kube-openapi's messages."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.gonumbers import as_decoded_by_go
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import contains_match
from mockube.apiserver.kinds.common.checks import Check, all_of

from .schema import Schema


def path_text(path: Path) -> str:
    """Return the path as in kube-openapi's messages."""
    return "" if path is ROOT else str(path)


def value_error(path: Path, value: Any, problem: str) -> FieldError:
    return errors.invalid(path, value, f"{path_text(path)} in body {problem}")


# --- texts


def check_string(schema: Schema) -> Check:
    """Return a check that reports the first violated bound; lengths count characters."""
    checks = [_max_length_check(schema["maxLength"])] if schema.get("maxLength") is not None else []
    checks += [_min_length_check(schema["minLength"])] if schema.get("minLength") is not None else []
    if schema.get("pattern"):
        checks.append(_pattern(schema["pattern"]))
    if len(checks) < 2:
        return all_of(*checks)

    def check(value: str, path: Path) -> Iterable[FieldError]:
        return next(
            (value_errors for value_check in checks if (value_errors := [*value_check(value, path)])), ()
        )

    return check


def _max_length_check(limit: int) -> Check:
    def check(value: str, path: Path) -> Iterable[FieldError]:
        return (errors.too_long(path, limit),) if len(value) > limit else ()

    return check


def _min_length_check(limit: int) -> Check:
    def check(value: str, path: Path) -> Iterable[FieldError]:
        if len(value) >= limit:
            return ()
        return (value_error(path, value, f"should be at least {limit} chars long"),)

    return check


def _pattern(pattern: str) -> Check:
    def check(value: str, path: Path) -> Iterable[FieldError]:
        try:
            matches, description = contains_match(pattern, value), pattern
        except RegexpError as error:
            # A definition with such a pattern is refused, but a stored one may have it.
            matches, description = False, f"{pattern}, but pattern is invalid: {error}"
        return () if matches else (value_error(path, value, f"should match '{description}'"),)

    return check


# --- lists and objects


def check_array(schema: Schema) -> Check:
    return all_of(*_minimum_length(schema, "minItems", "items"), *_maximum_length(schema, "maxItems"))


def check_object(schema: Schema) -> Check:
    return all_of(
        *_minimum_length(schema, "minProperties", "properties"), *_maximum_length(schema, "maxProperties")
    )


def _minimum_length(schema: Schema, name: str, unit: str) -> list[Check]:
    limit = schema.get(name)
    if limit is None:
        return []

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        if len(value) >= limit:
            return ()
        return (value_error(path, len(value), f"should have at least {limit} {unit}"),)

    return [check]


def _maximum_length(schema: Schema, name: str) -> list[Check]:
    limit = schema.get(name)
    if limit is None:
        return []

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return (errors.too_many(path, len(value), limit),) if len(value) > limit else ()

    return [check]


class _AllowedValues:
    """The values of an `enum`. Upstream converts a value to the type of an allowed one in Go before it compares them:
    a fraction is truncated, and a whole number becomes the character with this code point.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        scalars = [as_decoded_by_go(value) if value.__class__ in (int, float) else value for value in values]
        self._texts = frozenset(value for value in scalars if value.__class__ is str)
        self._booleans = frozenset(value for value in scalars if value.__class__ is bool)
        self._integers = frozenset(value for value in scalars if value.__class__ is int)
        self._floats = frozenset(value for value in scalars if value.__class__ is float)
        self._trees = frozenset(_text(value) for value in scalars if value.__class__ in (dict, list))

    def contains(self, value: Any) -> bool:
        if value.__class__ is str:
            return value in self._texts
        if value.__class__ is bool:
            return value in self._booleans
        if value is None:
            return False
        if value.__class__ in (int, float):
            return self._has_number(as_decoded_by_go(value))
        return bool(self._trees) and _text(value) in self._trees

    def _has_number(self, value: float) -> bool:
        if isinstance(value, float):
            return value in self._floats or (math.isfinite(value) and math.trunc(value) in self._integers)
        return value in self._integers or float(value) in self._floats or _character(value) in self._texts


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _character(number: int) -> str:
    is_valid = 0 <= number < 0xD800 or 0xDFFF < number < 0x110000
    return chr(number) if is_valid else "\N{REPLACEMENT CHARACTER}"


def enum_check(values: Sequence[Any]) -> Check:
    allowed = _AllowedValues(values)
    value_texts = [value if isinstance(value, str) else gotext.marshal(value) for value in values]
    detail = errors.not_supported(ROOT, None, value_texts).detail

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        if allowed.contains(value):
            return ()
        return (FieldError(type=ErrorType.NOT_SUPPORTED, field=str(path), value=value, detail=detail),)

    return check
