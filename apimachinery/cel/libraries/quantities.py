"""Quantities of resources: `quantity('1.5Gi')`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery import quantity as quantities
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import INT_MAX, INT_MIN, CelError, Opaque

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


class QuantityValue(Opaque):
    __slots__ = ("quantity",)
    type_name = "kubernetes.Quantity"

    def __init__(self, quantity: quantities.Quantity) -> None:
        self.quantity = quantity

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, QuantityValue):
            raise CelError("no such overload")
        return self.quantity == other.quantity

    def __str__(self) -> str:
        return str(self.quantity)


def _quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(quantities.parse(text))
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


def _is_integer(value: QuantityValue) -> bool:
    number = value.quantity
    return number.is_whole and INT_MIN <= number.number <= INT_MAX


def _as_integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value.quantity.number)


def _quantity_of_int(number: int) -> quantities.Quantity:
    return quantities.Quantity(number, quantities.Format.DECIMAL_EXPONENT)


def _sign(value: QuantityValue) -> int:
    return int(value.quantity.number > 0) - int(value.quantity.number < 0)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": _is_quantity,
    "quantity_sign": _sign,
    "quantity_is_greater_than": lambda left, right: _compare(left, right) > 0,
    "quantity_is_less_than": lambda left, right: _compare(left, right) < 0,
    "quantity_compare_to": _compare,
    "quantity_get_float": lambda value: float(value.quantity.number),
    "quantity_get_int": _as_integer,
    "quantity_is_integer": _is_integer,
    "quantity_add": lambda left, right: QuantityValue(left.quantity + right.quantity),
    "quantity_add_int": lambda left, right: QuantityValue(left.quantity + _quantity_of_int(right)),
    "quantity_sub": lambda left, right: QuantityValue(left.quantity - right.quantity),
    "quantity_sub_int": lambda left, right: QuantityValue(left.quantity - _quantity_of_int(right)),
}
