"""A table of defaults: by the name of a struct's OpenAPI definition, the steps that fill it in.

Trees are in normal form here. What is empty is absent, unless Go always writes the field, and structs that are no
pointers are always there. So `setdefault` is right for every field but those that Go always writes.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from mockube.apimachinery import quantity
from mockube.apimachinery.tree import Tree

Fill: TypeAlias = Callable[[Tree], None]
"""Fills in what depends on other fields, in the struct or below it."""

Literals: TypeAlias = Mapping[str, Any]
"""By field, what is written if it is absent, or empty without being a pointer."""

Steps: TypeAlias = tuple[Fill | Literals, ...]

Table: TypeAlias = Mapping[str, Steps | None]

FILLED_BY_OWNER: Final[Steps] = ({},)
"""The struct has no own defaults, but an enclosing struct sets defaults in it."""

NOWHERE: Final = None
"""The struct and its parts have no defaults: upstream defines none for its group."""


def of(package: str, entries: Mapping[str, Fill | Literals | Steps | None]) -> Table:
    """Return a table of one package's structs by their short names; a single step is allowed without a tuple."""
    return {
        f"{package}.{struct}": entry if isinstance(entry, tuple) or entry is NOWHERE else (entry,)
        for struct, entry in entries.items()
    }


_BEHIND_LABELS: Final = ("annotations", "ownerReferences", "finalizers", "managedFields")


def set_labels(metadata: Tree, labels: Mapping[str, str]) -> None:
    """Give an object labels, where Go would write them."""
    metadata["labels"] = dict(sorted(labels.items()))
    for field in _BEHIND_LABELS:
        if field in metadata:
            metadata[field] = metadata.pop(field)


def round_up(resources: Tree) -> None:
    """Round each amount away from zero to whole thousandths."""
    for name, amount in resources.items():
        resources[name] = _round_usual(amount) if len(amount) <= _USUAL_LENGTH else _round(amount)


def _round(amount: str) -> str:
    return str(quantity.parse(amount).round_up(quantity.MILLI))


# The same few amounts are in almost every object; a long text is a rarity that shall not fill the memory.
_USUAL_LENGTH: Final = 24
_round_usual = lru_cache(maxsize=4096)(_round)
