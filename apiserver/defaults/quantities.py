"""Amounts in a list of resources: nothing finer than a thousandth."""

from functools import lru_cache
from typing import Final

from apimachinery import quantity
from apiserver.defaults.table import Tree


def round_up(resources: Tree) -> None:
    """Round each amount away from zero to whole thousandths."""
    for name, amount in resources.items():
        resources[name] = _round_usual(amount) if len(amount) <= _USUAL_LENGTH else _round(amount)


def _round(amount: str) -> str:
    return str(quantity.parse(amount).round_up(quantity.MILLI))


# The same few amounts are in almost every object; a long text is a rarity that shall not fill the memory.
_USUAL_LENGTH: Final = 24
_round_usual = lru_cache(maxsize=4096)(_round)
