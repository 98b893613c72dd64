"""Amounts that should be whole numbers of bytes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apimachinery import quantity
from apimachinery.gotext import quote
from apimachinery.paths import Path


def of_amounts(amounts: Mapping[str, Any] | None, path: Path, names: Iterable[str]) -> Iterator[str]:
    for name in names if amounts else ():
        amount = quantity.from_json((amounts or {}).get(name))
        if amount.number % 1:
            shown = quote(str(amount))
            yield f"{path.key(name)}: fractional byte value {shown} is invalid, must be an integer"
