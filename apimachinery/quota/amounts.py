"""Arithmetic with amounts by resource name (apiserver's pkg/quota/v1)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import Quantity

Amounts: TypeAlias = Mapping[str, Quantity]

ONE: Final = Quantity(1)


def read(resource_list: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: quantity.from_json(amount) for name, amount in (resource_list or {}).items()}


def to_tree(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def add(first: Amounts, second: Amounts) -> dict[str, Quantity]:
    total = {**first}
    for name, amount in second.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def subtract(first: Amounts, second: Amounts) -> dict[str, Quantity]:
    """Return `first - second`, with 0 for every negative difference and for names that only `second` has."""
    rest = {name: amount - second[name] if name in second else amount for name, amount in first.items()}
    difference = {name: max(quantity.ZERO, amount) for name, amount in rest.items()}
    return {**dict.fromkeys(second, quantity.ZERO), **difference}


def mask(amounts: Amounts, names: Collection[str]) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if name in names}


def maximum(first: Amounts, second: Amounts) -> dict[str, Quantity]:
    total = {**first}
    for name, amount in second.items():
        total[name] = max(total[name], amount) if name in total else amount
    return total


def without_zeros(amounts: Amounts) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if amount}


def exceeding_names(amounts: Amounts, limits: Amounts) -> set[str]:
    return {name for name, amount in amounts.items() if name in limits and amount > limits[name]}


def pretty_print(amounts: Amounts) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))


def format_names(names: Iterable[str]) -> str:
    return ",".join(sorted(names))
