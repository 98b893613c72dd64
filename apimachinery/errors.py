"""Field errors: what is wrong with one field of an object, in upstream's words.

`FieldError` is a record, not an exception: a validation collects many and `mockube.apimachinery.status.invalid`
raises them as one. The module formats errors; the rules are in the modules that validate.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import Struct

from mockube.apimachinery import gotext
from mockube.apimachinery.paths import Path

MAX_VALUE_TEXT: Final = 64 * 1024
"""Characters of a value or a detail that one error shows. Upstream shows all, though that be megabytes."""

MAX_TEXT: Final = 256 * 1024
"""Characters of all errors of one answer: when that many are shown, the others are counted."""


Error = TypeVar("Error")


class ErrorType(Enum):
    """The reason a client sees in a status cause. `text` begins the message."""

    NOT_FOUND = "FieldValueNotFound", "Not found"
    REQUIRED = "FieldValueRequired", "Required value"
    DUPLICATE = "FieldValueDuplicate", "Duplicate value"
    INVALID = "FieldValueInvalid", "Invalid value"
    NOT_SUPPORTED = "FieldValueNotSupported", "Unsupported value"
    FORBIDDEN = "FieldValueForbidden", "Forbidden"
    TOO_LONG = "FieldValueTooLong", "Too long"
    TOO_SHORT = "FieldValueTooShort", "Too short"
    TOO_MANY = "FieldValueTooMany", "Too many"
    INTERNAL = "InternalError", "Internal error"
    TYPE_INVALID = "FieldValueTypeInvalid", "Invalid value"

    def __init__(self, reason: str, text: str) -> None:
        self.reason = reason
        self.text = text


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""As a value: the message shows none."""


class DisplayedValue(Struct, frozen=True):
    """As a value: the text that shows it, which is not JSON."""

    text: str


class FieldError(Struct, frozen=True, kw_only=True):
    """One thing wrong at one place. An object in `value` is shown with its keys in the order they have."""

    type: ErrorType
    field: str
    value: Any = OMITTED
    detail: str = ""

    def body(self) -> str:
        """The message without the field's name, as a status cause carries it."""
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
    """A text, or its beginning and how much is left out."""
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
    """`supported` is shown in the order given: upstream sorts some lists and not others."""
    names = ", ".join(map(gotext.quote, supported))
    detail = f"supported values: {names}" if names else ""
    return FieldError(type=ErrorType.NOT_SUPPORTED, field=str(path), value=value, detail=detail)


def too_long(path: Path, limit: int, unit: str = "byte") -> FieldError:
    """`unit` is the singular of what is counted. The value itself is never shown."""
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
    """Many errors as one message: each text once, in brackets if there are several."""
    return join_messages(*within_limit([*errors], str))


def within_limit(errors: Sequence[Error], show: Callable[[Error], str]) -> tuple[list[str], int]:
    """Return the texts that fit into one response, and the number of further errors, whose texts are not made."""
    remaining, texts = MAX_TEXT, []
    for error in errors:
        texts.append(show(error))
        remaining -= len(texts[-1])
        if remaining <= 0:
            break
    return texts, len(errors) - len(texts)


def join_messages(texts: Iterable[str], omitted_count: int = 0) -> str:
    """Join texts of errors into one message, which ends with the number of further ones."""
    different = list(dict.fromkeys(texts))
    if omitted_count:
        different.append(more(omitted_count))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""


def more(omitted_count: int) -> str:
    """What stands for errors that are not shown."""
    return f"{omitted_count} more error{'' if omitted_count == 1 else 's'}"
