"""Resource quantities: `quantity('1.5Gi')`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery import quantity as quantities
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError, Opaque

DECLARED: Final = declare(
    """
    quantity string_to_quantity (string) -> kubernetes.Quantity
    isQuantity is_quantity_string (string) -> bool
    sign quantity_sign (kubernetes.Quantity) -> int
    isGreaterThan quantity_is_greater_than kubernetes.Quantity.(kubernetes.Quantity) -> bool
    isLessThan quantity_is_less_than kubernetes.Quantity.(kubernetes.Quantity) -> bool
    compareTo quantity_compare_to kubernetes.Quantity.(kubernetes.Quantity) -> int
    asApproximateFloat quantity_get_float kubernetes.Quantity.() -> double
    asInteger quantity_get_int kubernetes.Quantity.() -> int
    isInteger quantity_is_integer kubernetes.Quantity.() -> bool
    add quantity_add kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity
    add quantity_add_int kubernetes.Quantity.(int) -> kubernetes.Quantity
    sub quantity_sub kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity
    sub quantity_sub_int kubernetes.Quantity.(int) -> kubernetes.Quantity
    """
)
_FLOAT_DIGITS: Final = 290
"""Numbers with more digits are converted directly, because a scaled float would overflow."""


class QuantityValue(Opaque):
    __slots__ = ("amount", "is_sum", "quantity")
    type_name = "kubernetes.Quantity"

    def __init__(self, quantity: quantities.Quantity, amount: quantities.Int64Amount | None = None) -> None:
        self.quantity = quantity
        self.amount = amount
        """The amount that determines whether it is an integer; None if upstream uses a decimal (infDecAmount) for it."""
        self.is_sum = False
        """Whether it is the result of an addition or subtraction, with which upstream does not compare other quantities."""

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, QuantityValue) or other.is_sum:
            raise CelError("no such overload")
        return self.quantity == other.quantity

    def __str__(self) -> str:
        return str(self.quantity)


def quantity_value(quantity: quantities.Quantity) -> QuantityValue:
    """Return the CEL value of a quantity of an object."""
    return QuantityValue(quantity, quantities.amount_of(str(quantity)))


def _quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(quantities.parse(text), quantities.amount_of(text))
    except quantities.QuantityError as error:
        raise CelError(str(error)) from error


def _is_quantity(text: str) -> bool:
    try:
        quantities.parse(text)
    except quantities.QuantityError:
        return False
    return True


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    a, b = left.quantity.number, right.quantity.number
    return int(a > b) - int(a < b)


def _integer(value: QuantityValue) -> int | None:
    return value.amount.int64_value() if value.amount is not None else None


def _as_integer(value: QuantityValue) -> int:
    number = _integer(value)
    if number is None:
        raise CelError("cannot convert value to integer")
    return number


def _value_of_int(number: int) -> QuantityValue:
    quantity = quantities.Quantity(number, quantities.Format.DECIMAL_EXPONENT)
    return QuantityValue(quantity, quantities.Int64Amount(number, 0))


def _sum(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    amount = None
    if left.amount is not None and right.amount is not None:
        amount = left.amount.plus(right.amount)
    return _result(left.quantity + right.quantity, amount)


def _difference(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    amount = None
    if left.amount is not None and right.amount is not None:
        amount = left.amount.plus(quantities.Int64Amount(-right.amount.value, right.amount.scale))
    return _result(left.quantity - right.quantity, amount)


def _result(quantity: quantities.Quantity, amount: quantities.Int64Amount | None) -> QuantityValue:
    result = QuantityValue(quantity, amount)
    result.is_sum = True
    return result


def _as_float(value: QuantityValue) -> float:
    """Return the quantity as upstream computes it: a rounded number times a power of ten."""
    if value.amount is not None:
        number, exponent = value.amount
        return float(number) * float(f"1e{exponent}") if exponent else float(number)
    decimal = value.quantity.number
    if decimal.adjusted() > _FLOAT_DIGITS:
        return float(decimal)
    return float(int(decimal.scaleb(-quantities.NANO))) * 10.0**quantities.NANO


def _sign(value: QuantityValue) -> int:
    return int(value.quantity.number > 0) - int(value.quantity.number < 0)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": _is_quantity,
    "quantity_sign": _sign,
    "quantity_is_greater_than": lambda left, right: _compare(left, right) > 0,
    "quantity_is_less_than": lambda left, right: _compare(left, right) < 0,
    "quantity_compare_to": _compare,
    "quantity_get_float": _as_float,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda value: _integer(value) is not None,
    "quantity_add": _sum,
    "quantity_add_int": lambda left, right: _sum(left, _value_of_int(right)),
    "quantity_sub": _difference,
    "quantity_sub_int": lambda left, right: _difference(left, _value_of_int(right)),
}
