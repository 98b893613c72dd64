"""Quantities of resources, `100m` or `1.5Gi`: exact decimals that print in Kubernetes' canonical form.

What a text means and how it is printed after a round trip is upstream's, down to what looks like accident there: some
texts are kept as they were written, and beyond `E` a number loses its suffix. Numbers finer than a billionth are
rounded away from zero: a request for a little is not a request for nothing.
"""

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal, Inexact, InvalidOperation
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Any, Final, NamedTuple

from mockube.apimachinery import gotext

NANO: Final = -9
MILLI: Final = -3

# No part gives back what it took: where the rest does not fit then, it fits in no other way.
_PARTS = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)")

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

SPACE: Final = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""What JSON may have around a quantity, within its quotes: upstream does not undo escapes before it trims."""

_INT64_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14
_MAX_INT64: Final = Decimal(2**63 - 1)

# A text may have as many digits as fit into a request. A sum may not: that of 1 and 1e99999999 is rounded up to the
# most significant digits rather than written out.
_READ_DIGITS: Final = 10_000_000
_SUM_DIGITS: Final = 10_000
_READING = Context(prec=_READ_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, InvalidOperation])
_ROUNDING = Context(
    prec=_READ_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, rounding=ROUND_UP, traps=[InvalidOperation]
)
_SUMS = Context(prec=_SUM_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, rounding=ROUND_UP, traps=[InvalidOperation])


class QuantityError(ValueError):
    """A text is not a quantity, in upstream's words."""


class Format(Enum):
    """How a quantity was written, and so how it is printed."""

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
    """A number and the way to print it. Quantities are equal if their numbers are: `1` and `1000m`."""

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
        return Quantity(_SUMS.add(self.number, other.number), self._format_with(other))

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(_SUMS.subtract(self.number, other.number), self._format_with(other))

    def __mul__(self, factor: int) -> "Quantity":
        return Quantity(_SUMS.multiply(self.number, Decimal(factor)), self.format)

    def __neg__(self) -> "Quantity":
        return Quantity(self.number.copy_negate(), self.format)

    def _format_with(self, other: "Quantity") -> Format:
        """Nothing is written in no way: it takes the other's."""
        return self.format if self.number else other.format

    @property
    def is_whole(self) -> bool:
        """Whether it has no fraction."""
        return _exponent(self.number) >= 0 or self.number == self.number.to_integral_value()

    def round_up(self, scale: int) -> "Quantity":
        """At most so fine as 10**scale, rounded away from zero."""
        rounded = _round_up(self.number, scale)
        return self if rounded is self.number else Quantity(rounded, self.format)

    def scaled_value(self, scale: int = 0) -> int:
        """Return the value in units of 10**scale, rounded away from zero and limited to 64 bits."""
        count = self.number.scaleb(-scale, _READING).to_integral_value(ROUND_UP, _ROUNDING)
        return int(_cap(count))


ZERO: Final = Quantity(0)


def parse(text: str) -> Quantity:
    """Return the quantity of a text; raise `QuantityError` if there is none."""
    return _parse_usual(text) if len(text) <= _USUAL_LENGTH else _parse(text)


def _parse(text: str) -> Quantity:
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_WRONG_FORMAT)
    sign, integer, fraction, suffix = match.groups("")
    base, exponent, form = _interpret(suffix)
    digits = (integer.lstrip("0") or "0") + fraction
    scale = -len(fraction) if base == 2 else exponent - len(fraction)
    number = Decimal(f"{sign}{digits}E{scale}")
    if base == 2:
        number = _READING.multiply(number, 2**exponent)
    if _fits_int64(digits, scale, base, exponent):
        return Quantity(number, form, text if _is_kept(digits, scale, base) else "")
    if not integer and not fraction:
        raise QuantityError(_WRONG_NUMBER)
    return _round(number, form)


# Most objects have one of a few quantities; long texts are rare, and are not cached, to limit the memory.
_USUAL_LENGTH: Final = 24
_parse_usual = lru_cache(maxsize=16384)(_parse)


def from_json(value: Any) -> Quantity:
    """The quantity in an object: a text, or a number without quotes."""
    if isinstance(value, str):
        return parse(value.strip(SPACE))
    if value is None:
        return ZERO
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse(str(value))
    raise QuantityError(_WRONG_FORMAT)


def _interpret(suffix: str) -> _Unit:
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
    """Whether upstream counts in 64 bits, and neither rounds nor caps."""
    if base == 10:
        return len(digits) <= _INT64_DIGITS and scale >= NANO
    return scale == 0 and len(digits) + exponent * 3 // 10 <= _BINARY_DIGITS


class Int64Amount(NamedTuple):
    """A number in 64 bits times a power of ten, as upstream counts while it can."""

    value: int
    scale: int

    def plus(self, other: "Int64Amount") -> "Int64Amount | None":
        """Return the sum, or None if 64 bits do not hold it."""
        if not other.value or not self.value:
            return other if other.value else self
        scale = min(self.scale, other.scale)
        parts = [amount.value * 10 ** (amount.scale - scale) for amount in (self, other)]
        fits = all(-(2**63) <= number < 2**63 for number in (*parts, sum(parts)))
        return Int64Amount(sum(parts), scale) if fits else None

    def int64_value(self) -> int | None:
        """Return the integer, or None where upstream sees none: not in `1000m` either."""
        number = self.value * 10**self.scale if self.scale >= 0 else 2**63
        return number if -(2**63) <= number < 2**63 else None


def amount_of(text: str) -> Int64Amount | None:
    """Return the amount that a valid text is read as, or None if upstream takes a decimal for it."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    sign, integer, fraction, suffix = match.groups("")
    base, exponent, _ = _interpret(suffix)
    digits = (integer.lstrip("0") or "0") + fraction
    scale = -len(fraction) if base == 2 else exponent - len(fraction)
    if not _fits_int64(digits, scale, base, exponent):
        return None
    value = int(sign + digits) * (2**exponent if base == 2 else 1)
    return Int64Amount(value, scale)


def milli_value(text: str) -> int:
    """A thousand times a valid quantity, as upstream computes it in 64 bits: what does not fit loses its upper digits."""
    amount, number = amount_of(text), parse(text).number
    power = _exponent(number) - MILLI
    if amount is not None or power < 0:
        count = parse(text).scaled_value(MILLI)
        return 0 if amount is not None and abs(count) >= _MAX_INT64 else count
    unscaled = int(number.scaleb(-_exponent(number), _READING))
    return _low_64_bits(_low_64_bits(unscaled) * (10**power if power < _INT64_POWERS else -(2**63)))


_INT64_POWERS: Final = 19
"""How many powers of ten 64 bits hold."""


def _low_64_bits(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _is_kept(digits: str, scale: int, base: int) -> bool:
    """Whether upstream takes a text for canonical already, without looking closely."""
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
    return number.quantize(Decimal(1).scaleb(scale), context=_ROUNDING)


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # quantities are finite numbers
    return exponent


def _cap(number: Decimal) -> Decimal:
    return max(min(number, _MAX_INT64), -_MAX_INT64)


def _canonical(number: Decimal, form: Format) -> str:
    """No fraction, and the largest unit that needs none."""
    if not number:
        return "0"
    if form is Format.BINARY_SI and number.copy_abs() >= 1024 and number == number.to_integral_value():
        return _binary(int(number))
    number = number.normalize(_READING)
    exponent = _exponent(number) // 3 * 3
    return f"{number.scaleb(-exponent, _READING):f}{_decimal_suffix(exponent, form)}"


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
