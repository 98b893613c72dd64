"""The function `format`: its formatting clauses, and the types of their arguments at compile time and run time."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.cel import conversions, times
from mockube.apimachinery.cel.values import (
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    from_map_key,
    type_name,
)

_CLAUSE = re.compile(r"%(?:(%)|(\.[0-9]*)?(.?))", re.DOTALL)
_SUPERSCRIPTS = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_SPECIAL_NUMBERS = frozenset(("NaN", "Infinity", "-Infinity"))
DEFAULT_PRECISION: Final = 6
_STRING_TYPES = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
WRONG_TYPE: Final = {
    "s": f"string clause can only be used on {_STRING_TYPES}, was given {{}}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
Clause = Callable[[str, int, int], str]
"""Formats an argument: it takes the clause's letter, its precision, and the argument's index."""


class FormatError(CelError):
    """A format string or an argument is invalid; at compile time, `argument` is the node of that argument."""

    def __init__(self, message: str, argument: Any = None) -> None:
        super().__init__(message)
        self.argument = argument


def interpolate(text: str, count: int, clause: Clause) -> tuple[str, int]:
    """Return the text with its clauses replaced, and the number of clauses."""
    parts: list[str] = []
    offset = clause_count = 0
    while offset < len(text):
        start = text.find("%", offset)
        if start < 0:
            break
        parts.append(text[offset:start])
        match = _CLAUSE.match(text, start)
        assert match is not None
        if match[1]:
            parts.append("%")
        else:
            if clause_count >= count:
                raise FormatError(f"index {clause_count} out of range")
            parts.append(_clause(match, start + 1 == len(text), clause_count, clause))
            clause_count += 1
        offset = match.end()
    return "".join(parts) + text[offset:], clause_count


def _clause(match: re.Match[str], is_at_end: bool, index: int, clause: Clause) -> str:  # noqa: FBT001 -- private
    if is_at_end:
        raise FormatError("unexpected end of string")
    letter, precision = match[3], match[2]
    prefix = "could not parse formatting clause"
    if precision is not None and not letter:
        raise FormatError(
            f"{prefix}: error while parsing precision: could not find end of precision specifier"
        )
    if precision is not None and (precision == "." or len(precision) > 10):
        reason = f'error while converting precision to integer: strconv.Atoi: parsing "{precision[1:]}": '
        reason += "value out of range" if precision[1:] else "invalid syntax"
        raise FormatError(f"{prefix}: error while parsing precision: {reason}")
    if letter.lower() not in WRONG_TYPE or (letter.isupper() and letter != "X"):
        raise FormatError(f'{prefix}: unrecognized formatting clause "{letter}"')
    digits = int(precision[1:]) if precision else DEFAULT_PRECISION
    try:
        return clause(letter, min(digits, 1000), index)
    except FormatError as error:
        raise FormatError(f"error during formatting: {error}", error.argument) from error


def format_text(text: str, args: Sequence[Any]) -> str:
    return interpolate(text, len(args), lambda letter, digits, i: _PRINTERS[letter](args[i], digits))[0]


def _wrong_type_error(clause: str, value: Any) -> FormatError:
    return FormatError(WRONG_TYPE[clause].format(type_name(value)))


def _string(value: Any, _digits: int = 0) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_element, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_key(from_map_key(key)), _element(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if kind is TypeValue:
        return str(value.name)
    overload = _STRING_CONVERSIONS.get(kind)
    if overload is None:
        raise _wrong_type_error("s", value)
    try:
        return str(conversions.FUNCTIONS[overload](value))
    except CelError as error:
        raise FormatError(f'could not convert argument "{error}" to string') from error


_STRING_CONVERSIONS: dict[type, str] = {
    bool: "bool_to_string",
    int: "int64_to_string",
    Uint: "uint64_to_string",
    float: "double_to_string",
    bytes: "bytes_to_string",
    Duration: "duration_to_string",
    Timestamp: "timestamp_to_string",
}


def _key(key: Any) -> str:
    if type(key) is str:
        return gotext.quote(key)
    if type(key) in (bool, int, Uint):
        return _string(key)
    raise FormatError(f"no formatting function for map key of type {type_name(key)}")


def _element(value: Any) -> str:
    """Return an element of a list or a map in the notation of an expression."""
    kind = type(value)
    if kind is str:
        return gotext.quote(value)
    if kind is bytes:
        return f"b{gotext.quote(_string(value))}"
    if kind is Timestamp:
        return f'timestamp("{times.text(value)}")'
    if kind is Duration:
        return f'duration("{times.duration_text(value)}")'
    if kind is float:
        digits = _go_fixed(value, DEFAULT_PRECISION)
        return f'"{digits}"' if value != value or abs(value) == float("inf") else digits  # noqa: PLR0124 -- NaN
    if value is None or kind in _STRING_CONVERSIONS or kind is TypeValue or isinstance(value, (list, dict)):
        return _string(value)
    raise FormatError(f"no formatting function for {type_name(value)}")


def _go_fixed(value: float, digits: int) -> str:
    if value != value:  # noqa: PLR0124 -- NaN
        return "NaN"
    if abs(value) == float("inf"):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.{digits}f}"


def _decimal(value: Any, _digits: int) -> str:
    if type(value) not in (int, Uint):
        raise _wrong_type_error("d", value)
    return str(int(value))


def _number(clause: str, value: Any) -> float:
    if type(value) is str and value in _SPECIAL_NUMBERS:
        return float(value)
    if type(value) is not float:
        raise _wrong_type_error(clause, value)
    return float(value)


def _format_special(value: float) -> str | None:
    if value != value:  # noqa: PLR0124 -- NaN
        return "NaN"
    if abs(value) == float("inf"):
        return "∞" if value > 0 else "-∞"
    return None


def _format_fixed(value: Any, digits: int) -> str:
    number = _number("f", value)
    return _format_special(number) or f"{number:,.{digits}f}"


def _format_scientific(value: Any, digits: int) -> str:
    """Return a number with six digits; as upstream, the precision is used as the minimum width."""
    number = _number("e", value)
    special = _format_special(number)
    if special is not None:
        return special.rjust(digits)
    mantissa, _, exponent = f"{number:.{DEFAULT_PRECISION}e}".partition("e")
    power = ("-" if exponent[0] == "-" else "") + exponent[1:].rjust(2, "0")
    return f"{mantissa}\N{MULTIPLICATION SIGN}10{power.translate(_SUPERSCRIPTS)}".rjust(digits)


def _binary(value: Any, _digits: int) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) not in (int, Uint):
        raise _wrong_type_error("b", value)
    return f"{int(value):b}"


def _hex(value: Any, _digits: int) -> str:
    if type(value) is str:
        return value.encode(errors="surrogatepass").hex()
    if type(value) is bytes:
        return value.hex()
    if type(value) not in (int, Uint):
        raise _wrong_type_error("x", value)
    return f"{int(value):x}"


def _octal(value: Any, _digits: int) -> str:
    if type(value) not in (int, Uint):
        raise _wrong_type_error("o", value)
    return f"{int(value):o}"


_PRINTERS: dict[str, Callable[[Any, int], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _format_fixed,
    "e": _format_scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value, digits: _hex(value, digits).upper(),
    "o": _octal,
}
