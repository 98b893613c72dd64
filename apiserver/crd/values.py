"""The bounds that a schema sets to a text, a number, a list or an object by itself, whatever is in it."""

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any, Final

from apimachinery import durations, errors
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apimachinery.schema import base64text
from apimachinery.timestamps import parse_time
from apiserver.crd.schema import Schema
from apiserver.validation.rules import Check, every

_INT32: Final = 2**31
_INT64: Final = 2**63
_WHOLE: Final = {"int32": range(-_INT32, _INT32), "int64": range(-_INT64, _INT64)}


def said(path: Path) -> str:
    """The path as the library's messages have it."""
    return "" if path is ROOT else str(path)


def _refuses(path: Path, value: Any, problem: str) -> FieldError:
    return errors.invalid(path, value, f"{said(path)} in body {problem}")


def _bound(schema: Schema, name: str, holds: Callable[[Any, Any], bool], problem: str) -> list[Check]:
    """A check of one bound, if the schema sets it; `{}` in the problem is the bound."""
    limit = schema.get(name)
    if limit is None:
        return []

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return () if holds(value, limit) else (_refuses(path, value, problem.format(limit)),)

    return [check]


# --- texts


def check_string(schema: Schema) -> Check:
    checks = _bound(
        schema,
        "minLength",
        lambda text, least: len(text) >= least,
        "should be at least {} chars long",
    )
    if schema.get("maxLength") is not None:
        checks.append(_longest(schema["maxLength"]))
    if schema.get("pattern"):
        checks.append(_pattern(schema["pattern"]))
    return every(*checks)


def _longest(limit: int) -> Check:
    def check(value: str, path: Path) -> Iterable[FieldError]:
        return (errors.too_long(path, limit),) if len(value) > limit else ()

    return check


def _pattern(text: str) -> Check:
    # In Go's language $ is the very end; in Python a line break may follow it.
    compiled = re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", text))

    def check(value: str, path: Path) -> Iterable[FieldError]:
        if compiled.search(value):
            return ()
        return (_refuses(path, value, f"should match '{text}'"),)

    return check


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def is_one(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return is_one


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date-time": _parses(parse_time),
    "date": _matches(r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])"),
    "duration": _parses(durations.parse_duration),
    "byte": _parses(base64text.canonical),
    "ipv4": _parses(IPv4Address),
    "ipv6": _parses(IPv6Address),
    "cidr": lambda text: "/" in text and _parses(lambda given: ip_network(given, strict=False))(text),
    "uuid": _matches(r"(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}"),
    "email": _matches(r"[^@\s]+@[^@\s]+"),
    "hostname": _matches(
        r"[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
    ),
}
"""Formats that are looked at; upstream passes over those that it does not know."""


def has_format(text: str, form: str) -> bool:
    is_one = _FORMATS.get(form)
    return is_one is None or is_one(text)


# --- numbers


def check_number(schema: Schema) -> Check:
    checks = [_within(schema["format"])] if schema.get("format") in _WHOLE else []
    below = (
        "should be less than {}" if schema.get("exclusiveMaximum") else "should be less than or equal to {}"
    )
    above = (
        "should be greater than {}"
        if schema.get("exclusiveMinimum")
        else "should be greater than or equal to {}"
    )
    strictly_below, strictly_above = (
        bool(schema.get("exclusiveMaximum")),
        bool(schema.get("exclusiveMinimum")),
    )
    checks += _bound(schema, "multipleOf", lambda number, of: number % of == 0, "should be a multiple of {}")
    checks += _bound(
        schema,
        "maximum",
        lambda number, most: number < most or (number == most and not strictly_below),
        below,
    )
    checks += _bound(
        schema,
        "minimum",
        lambda number, least: number > least or (number == least and not strictly_above),
        above,
    )
    return every(*checks)


def _within(form: str) -> Check:
    def check(value: float, path: Path) -> Iterable[FieldError]:
        if value in _WHOLE[form]:
            return ()
        problem = f"Checked value must be of type integer with format {form} in {path}"
        return (errors.invalid(ROOT, "", problem),)

    return check


# --- lists and objects


def check_array(schema: Schema) -> Check:
    checks = _bound(
        schema, "minItems", lambda value, least: len(value) >= least, "should have at least {} items"
    )
    return every(*checks, *_most(schema, "maxItems"))


def check_object(schema: Schema) -> Check:
    checks = _bound(
        schema,
        "minProperties",
        lambda value, least: len(value) >= least,
        "should have at least {} properties",
    )
    return every(*checks, *_most(schema, "maxProperties"))


def _most(schema: Schema, name: str) -> list[Check]:
    limit = schema.get(name)
    if limit is None:
        return []

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return (errors.too_many(path, len(value), limit),) if len(value) > limit else ()

    return [check]
