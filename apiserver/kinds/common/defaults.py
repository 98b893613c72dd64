"""Tables of defaults: by the name of a struct's OpenAPI definition, the steps that set its defaults.

Trees are in normal form: an empty field is absent unless Go always writes it, and a struct that is not a pointer is
always present. So `setdefault` is right for every field that Go does not always write.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from mockube.apimachinery import quantity
from mockube.apimachinery.tree import Tree

Fill: TypeAlias = Callable[[Tree], None]
"""Sets defaults that depend on other fields, in the struct or below it."""

Literals: TypeAlias = Mapping[str, Any]
"""Default values by field: set if the field is absent, or if it is empty and not a pointer."""

Steps: TypeAlias = tuple[Fill | Literals, ...]

Table: TypeAlias = Mapping[str, Steps | None]

FILLED_BY_OWNER: Final[Steps] = ({},)
"""The struct has no own defaults, but an enclosing struct sets defaults in it."""

NOWHERE: Final = None
"""The struct and its parts have no defaults: upstream defines none for its group."""


def defaults_table(package: str, entries: Mapping[str, Fill | Literals | Steps | None]) -> Table:
    """Return a table of one package's structs by their short names; a single step is allowed without a tuple."""
    return {
        f"{package}.{struct}": entry if isinstance(entry, tuple) or entry is NOWHERE else (entry,)
        for struct, entry in entries.items()
    }


_BEHIND_LABELS: Final = ("annotations", "ownerReferences", "finalizers", "managedFields")


def set_labels(metadata: Tree, labels: Mapping[str, str]) -> None:
    """Set the labels of an object, at their position in Go's encoding."""
    metadata["labels"] = dict(sorted(labels.items()))
    for field in _BEHIND_LABELS:
        if field in metadata:
            metadata[field] = metadata.pop(field)


def restore_template_labels(new: Tree, _old: Tree, _request: object) -> None:
    """Give an object without labels those of its template: upstream does so whenever it reads a stored object."""
    template_metadata = new.get("spec", {}).get("template", {}).get("metadata") or {}
    if template_metadata.get("labels") and not new["metadata"].get("labels"):
        set_labels(new["metadata"], template_metadata["labels"])


def round_up(resources: Tree) -> None:
    """Round each amount away from zero to whole thousandths."""
    for name, amount in resources.items():
        resources[name] = _round_usual(amount) if len(amount) <= _USUAL_LENGTH else _round(amount)


def _round(amount: str) -> str:
    return str(quantity.parse(amount).round_up(quantity.MILLI))


# Almost all objects have the same few amounts. Long texts are rare, and are not cached.
_USUAL_LENGTH: Final = 24
_round_usual = lru_cache(maxsize=4096)(_round)
