"""Quantities of resources, such as `100m` or `1.5Gi`: exact decimals, printed in Kubernetes' canonical form.

Parsing and printing follow upstream exactly, even where its behaviour looks accidental: some texts are printed as they
were written, and a number beyond `E` loses its suffix. Numbers are rounded away from zero to a billionth, so that a
request for a tiny amount does not become a request for nothing.
"""

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal, Inexact, InvalidOperation
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Any, Final, NamedTuple, TypeVar

from . import gotext

_Default = TypeVar("_Default", int, float, None)

NANO: Final = -9
MILLI: Final = -3

# The quantifiers are possessive: a text that does not match this way matches in no other way.
_PARTS = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)")

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

SPACE: Final = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters that are trimmed from a quantity in a JSON string. Upstream trims before it decodes escapes."""

_INT64_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14
_MAX_INT64: Final = Decimal(2**63 - 1)

# A text can have as many digits as fit into a request. The digits of a sum are limited: 1 + 1e99999999 is rounded up to
# its most significant digits.
_READ_DIGITS: Final = 10_000_000
_SUM_DIGITS: Final = 10_000
_READ_CONTEXT = Context(prec=_READ_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, InvalidOperation])
_ROUND_CONTEXT = Context(
    prec=_READ_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, rounding=ROUND_UP, traps=[InvalidOperation]
)
_SUM_CONTEXT = Context(
    prec=_SUM_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, rounding=ROUND_UP, traps=[InvalidOperation]
)


class QuantityError(ValueError):
    """A text is not a valid quantity; the message is upstream's."""


class Format(Enum):
    """The format of a quantity: the one it was written in, in which it is also printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class _Unit(NamedTuple):
    base: int
    exponent: int
    format: Format


_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES = {10: "Ki", 20: "Mi", 30: "Gi", 40: "Ti", 50: "Pi", 60: "Ei"}
_UNITS: Final = {
    **{suffix: _Unit(10, exponent, Format.DECIMAL_SI) for exponent, suffix in _DECIMAL_SUFFIXES.items()},
    **{suffix: _Unit(2, exponent, Format.BINARY_SI) for exponent, suffix in _BINARY_SUFFIXES.items()},
}


@total_ordering
class Quantity:
    """A number and its format. Quantities with the same number are equal: `1` and `1000m`."""

    __slots__ = ("_text", "format", "number")

    def __init__(self, number: Decimal | int, form: Format = Format.DECIMAL_SI, text: str = "") -> None:
        self.number: Final = Decimal(number)
        self.format: Final = form
        self._text: Final = text

    def __str__(self) -> str:
        return self._text or _canonical(self.number, self.format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.number == other.number if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.number < other.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __bool__(self) -> bool:
        return bool(self.number)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(_SUM_CONTEXT.add(self.number, other.number), self._format_with(other))

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(_SUM_CONTEXT.subtract(self.number, other.number), self._format_with(other))

    def __mul__(self, factor: int) -> "Quantity":
        return Quantity(_SUM_CONTEXT.multiply(self.number, Decimal(factor)), self.format)

    def __neg__(self) -> "Quantity":
        return Quantity(self.number.copy_negate(), self.format)

    def _format_with(self, other: "Quantity") -> Format:
        """Return the format of a sum: that of `self`, or the other's if `self` is 0."""
        return self.format if self.number else other.format

    @property
    def is_whole(self) -> bool:
        """Whether the number has no fraction."""
        return _exponent(self.number) >= 0 or self.number == self.number.to_integral_value()

    def round_up(self, scale: int) -> "Quantity":
        """Return the quantity rounded away from zero to a multiple of 10**scale."""
        rounded = _round_up(self.number, scale)
        return self if rounded is self.number else Quantity(rounded, self.format)

    def scaled_value(self, scale: int = 0) -> int:
        """Return the number in units of 10**scale, rounded away from zero and limited to 64 bits."""
        count = self.number.scaleb(-scale, _READ_CONTEXT).to_integral_value(ROUND_UP, _ROUND_CONTEXT)
        return int(_cap(count))


ZERO: Final = Quantity(0)


def parse(text: str) -> Quantity:
    """Parse a quantity; raise `QuantityError` if the text is invalid."""
    return _parse_cached(text) if len(text) <= _MAX_CACHED_LENGTH else _parse(text)


def _parse(text: str) -> Quantity:
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_WRONG_FORMAT)
    sign, integer, fraction, suffix = match.groups("")
    base, exponent, form = _parse_suffix(suffix)
    digits = (integer.lstrip("0") or "0") + fraction
    scale = -len(fraction) if base == 2 else exponent - len(fraction)
    number = Decimal(f"{sign}{digits}E{scale}")
    if base == 2:
        number = _READ_CONTEXT.multiply(number, 2**exponent)
    if _fits_int64(digits, scale, base, exponent):
        return Quantity(number, form, text if _is_text_canonical(digits, scale, base) else "")
    if not integer and not fraction:
        raise QuantityError(_WRONG_NUMBER)
    return _round(number, form)


# Most objects use a few common quantities. Long texts are rare and are not cached, to limit the memory.
_MAX_CACHED_LENGTH: Final = 24
_parse_cached = lru_cache(maxsize=16384)(_parse)


def from_json(value: Any) -> Quantity:
    """Return the quantity of a value in an object: a string, a number, or null for 0."""
    if isinstance(value, str):
        return parse(value.strip(SPACE))
    if value is None:
        return ZERO
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse(str(value))
    raise QuantityError(_WRONG_FORMAT)


def number_or(value: Any, default: _Default) -> float | _Default:
    """Return the number of a quantity in an object; a default for none, and for one that is not valid."""
    try:
        return default if value is None else float(from_json(value).number)
    except QuantityError:
        return default


def scaled_value_or(value: Any, default: _Default, scale: int = 0) -> int | _Default:
    """Return a quantity in an object in units of 10**scale; a default for none, and for one that is not valid."""
    try:
        return default if value is None else from_json(value).scaled_value(scale)
    except QuantityError:
        return default


def _parse_suffix(suffix: str) -> _Unit:
    if suffix in _UNITS:
        return _UNITS[suffix]
    if suffix[0] not in "eE":
        raise QuantityError(_WRONG_SUFFIX)
    try:
        exponent = gotext.parse_int(suffix[1:])
    except gotext.NumberError:
        raise QuantityError(_WRONG_SUFFIX) from None
    # Upstream keeps the low 32 bits of the exponent.
    return _Unit(10, (exponent + 2**31) % 2**32 - 2**31, Format.DECIMAL_EXPONENT)


def _fits_int64(digits: str, scale: int, base: int, exponent: int) -> bool:
    """Return whether upstream parses the number as an int64 amount, without rounding or capping."""
    if base == 10:
        return len(digits) <= _INT64_DIGITS and scale >= NANO
    return scale == 0 and len(digits) + exponent * 3 // 10 <= _BINARY_DIGITS


class Int64Amount(NamedTuple):
    """A 64-bit number times a power of ten: upstream's int64Amount."""

    value: int
    scale: int

    def plus(self, other: "Int64Amount") -> "Int64Amount | None":
        """Return the sum, or None if it does not fit into 64 bits."""
        if not other.value or not self.value:
            return other if other.value else self
        scale = min(self.scale, other.scale)
        parts = [amount.value * 10 ** (amount.scale - scale) for amount in (self, other)]
        fits = all(-(2**63) <= number < 2**63 for number in (*parts, sum(parts)))
        return Int64Amount(sum(parts), scale) if fits else None

    def int64_value(self) -> int | None:
        """Return the integer, or None if upstream returns none: for a negative scale, even in `1000m`, or more than 64 bits."""
        number = self.value * 10**self.scale if self.scale >= 0 else 2**63
        return number if -(2**63) <= number < 2**63 else None


def amount_of(text: str) -> Int64Amount | None:
    """Return the amount of a valid text, or None if upstream uses a decimal (infDecAmount) for it."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    sign, integer, fraction, suffix = match.groups("")
    base, exponent, _ = _parse_suffix(suffix)
    digits = (integer.lstrip("0") or "0") + fraction
    scale = -len(fraction) if base == 2 else exponent - len(fraction)
    if not _fits_int64(digits, scale, base, exponent):
        return None
    value = int(sign + digits) * (2**exponent if base == 2 else 1)
    return Int64Amount(value, scale)


def int64_value(text: str, scale: int) -> int:
    """Return a valid quantity in units of 10**scale as upstream computes it: a large number keeps only its low 64 bits."""
    amount, number = amount_of(text), parse(text).number
    power = _exponent(number) - scale
    if amount is not None or power < 0:
        count = parse(text).scaled_value(scale)
        return 0 if amount is not None and abs(count) >= _MAX_INT64 else count
    unscaled = int(number.scaleb(-_exponent(number), _READ_CONTEXT))
    return _low_64_bits(_low_64_bits(unscaled) * (10**power if power < _INT64_POWERS else -(2**63)))


_INT64_POWERS: Final = 19
"""The number of powers of ten that fit into 64 bits."""


def _low_64_bits(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _is_text_canonical(digits: str, scale: int, base: int) -> bool:
    """Return whether upstream considers a text canonical by its quick check, and so keeps it."""
    if base == 2:
        return int(digits) % 8 != 0
    return scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _round(number: Decimal, form: Format) -> Quantity:
    number = _round_up(number, NANO)
    if form is Format.BINARY_SI:
        number = _cap(number)
        if 0 < number.copy_abs() < 1:
            form = Format.DECIMAL_SI
    return Quantity(number, form)


def _round_up(number: Decimal, scale: int) -> Decimal:
    if _exponent(number) >= scale:
        return number
    return number.quantize(Decimal(1).scaleb(scale), context=_ROUND_CONTEXT)


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # quantities are finite numbers
    return exponent


def _cap(number: Decimal) -> Decimal:
    return max(min(number, _MAX_INT64), -_MAX_INT64)


def _canonical(number: Decimal, form: Format) -> str:
    """Return the canonical form: no fraction, and the largest unit that needs none."""
    if not number:
        return "0"
    if form is Format.BINARY_SI and number.copy_abs() >= 1024 and number == number.to_integral_value():
        return _binary(int(number))
    number = number.normalize(_READ_CONTEXT)
    exponent = _exponent(number) // 3 * 3
    return f"{number.scaleb(-exponent, _READ_CONTEXT):f}{_decimal_suffix(exponent, form)}"


def _decimal_suffix(exponent: int, form: Format) -> str:
    if form is Format.DECIMAL_EXPONENT:
        return f"e{exponent}" if exponent else ""
    return _DECIMAL_SUFFIXES.get(exponent, "")


def _binary(number: int) -> str:
    exponent = 0
    while number % 1024 == 0:
        number //= 1024
        exponent += 10
    return f"{Decimal(number):f}{_BINARY_SUFFIXES.get(exponent, '')}"
