"""Errors of single fields of an object, with upstream's messages (apimachinery's field.Error).

`FieldError` is a record, not an exception: a validation collects many, and `mockube.apimachinery.status.invalid` makes
one exception of them. This module formats errors; the rules are in the modules that validate.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import Struct

from . import gotext
from .cancellation import raise_if_cancelled
from .paths import Path

MAX_VALUE_TEXT: Final = 64 * 1024
"""The maximum number of characters of a value or a detail in one error. Upstream has no limit."""

MAX_TEXT: Final = 256 * 1024
"""The maximum number of characters of all errors in one response. Further errors are only counted."""


Error = TypeVar("Error")


class ErrorType(Enum):
    """The type of a field error: `reason` is that of the status cause, `text` begins the message."""

    NOT_FOUND = "FieldValueNotFound", "Not found"
    REQUIRED = "FieldValueRequired", "Required value"
    DUPLICATE = "FieldValueDuplicate", "Duplicate value"
    INVALID = "FieldValueInvalid", "Invalid value"
    NOT_SUPPORTED = "FieldValueNotSupported", "Unsupported value"
    FORBIDDEN = "FieldValueForbidden", "Forbidden"
    TOO_LONG = "FieldValueTooLong", "Too long"
    TOO_MANY = "FieldValueTooMany", "Too many"
    INTERNAL = "InternalError", "Internal error"
    TYPE_INVALID = "FieldValueTypeInvalid", "Invalid value"

    def __init__(self, reason: str, text: str) -> None:
        self.reason = reason
        self.text = text


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""A `value` that stands for none: the message contains no value."""


class DisplayedValue(Struct, frozen=True):
    """A `value` that is not JSON, with the text that the message shows for it."""

    text: str


class FieldError(Struct, frozen=True, kw_only=True):
    """An error of one field. The keys of an object in `value` are printed in the object's order."""

    type: ErrorType
    field: str
    value: Any = OMITTED
    detail: str = ""

    def __post_init__(self) -> None:
        """Stop the validation in a thread whose request is over: rules that report many errors report them one by one."""
        raise_if_cancelled()

    def body(self) -> str:
        """Return the message without the field's name, as in a status cause."""
        parts = [self.type.text]
        if self.value is not OMITTED:
            parts.append(_format_value(self.value))
        if self.detail:
            parts.append(shorten(self.detail, MAX_VALUE_TEXT))
        return ": ".join(parts)

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        excess = len(value) - MAX_VALUE_TEXT
        return (
            gotext.quote(value)
            if excess <= 0
            else f"{gotext.quote(value[:-excess])}... ({excess} more characters)"
        )
    if isinstance(value, bool | int | float):
        return gotext.format_v(value)
    if isinstance(value, DisplayedValue):
        return shorten(value.text, MAX_VALUE_TEXT)
    return gotext.marshal_prefix(value, MAX_VALUE_TEXT)


def shorten(text: str, limit: int) -> str:
    """Return the text, or its beginning and the number of omitted characters."""
    excess = len(text) - limit
    return text if excess <= 0 else f"{text[:limit]}... ({excess} more characters)"


def required(path: Path, detail: str = "") -> FieldError:
    return FieldError(type=ErrorType.REQUIRED, field=str(path), detail=detail)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(type=ErrorType.FORBIDDEN, field=str(path), detail=detail)


def invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(type=ErrorType.INVALID, field=str(path), value=value, detail=detail)


def type_invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(type=ErrorType.TYPE_INVALID, field=str(path), value=value, detail=detail)


def duplicate(path: Path, value: Any, detail: str = "") -> FieldError:
    return FieldError(type=ErrorType.DUPLICATE, field=str(path), value=value, detail=detail)


def not_found(path: Path, value: Any) -> FieldError:
    return FieldError(type=ErrorType.NOT_FOUND, field=str(path), value=value)


def not_supported(path: Path, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error of an unsupported value. `supported` is printed in the given order: upstream sorts only some lists."""
    names = ", ".join(map(gotext.quote, supported))
    detail = f"supported values: {names}" if names else ""
    return FieldError(type=ErrorType.NOT_SUPPORTED, field=str(path), value=value, detail=detail)


def too_long(path: Path, limit: int, unit: str = "byte") -> FieldError:
    """Return the error of a value that is too long, without the value. `unit` is the singular of the counted unit."""
    return FieldError(
        type=ErrorType.TOO_LONG, field=str(path), detail=f"may not be more than {_pluralize(limit, unit)}"
    )


def too_many(path: Path, count: int, limit: int) -> FieldError:
    return FieldError(
        type=ErrorType.TOO_MANY,
        field=str(path),
        value=count,
        detail=f"must have at most {_pluralize(limit, 'item')}",
    )


def internal(path: Path, problem: str) -> FieldError:
    return FieldError(type=ErrorType.INTERNAL, field=str(path), detail=problem)


def _pluralize(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def aggregate(errors: Iterable[object]) -> str:
    """Return one message for many errors: each text once, in brackets if there are several (utilerrors.Aggregate)."""
    return join_messages(*format_within_limit([*errors], str))


def format_within_limit(
    errors: Sequence[Error], format_error: Callable[[Error], str]
) -> tuple[list[str], int]:
    """Return the texts that fit into one response, and the number of further errors, which are not formatted."""
    remaining, texts = MAX_TEXT, []
    for error in errors:
        texts.append(format_error(error))
        remaining -= len(texts[-1])
        if remaining <= 0:
            break
    return texts, len(errors) - len(texts)


def join_messages(texts: Iterable[str], omitted_count: int = 0) -> str:
    """Join the texts of errors into one message, which ends with the number of omitted errors."""
    unique = list(dict.fromkeys(texts))
    if omitted_count:
        unique.append(omitted_errors_text(omitted_count))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""


def omitted_errors_text(omitted_count: int) -> str:
    """Return the text that replaces the omitted errors."""
    return f"{omitted_count} more error{'' if omitted_count == 1 else 's'}"
