"""The edits of the resource by somebody: its fields, each with another value, and with its value before."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.operators.field_edits import FieldEdit, field_edits

_PARTS: Final = ("spec", "data", "stringData")
_ORDER: Final = (int, bool, str)
"""The types of values, from those that a schema accepts most likely with another value."""


class Edit(Struct, frozen=True, kw_only=True):
    """Two merge patches: one that changes a field, and one that changes it back."""

    text: str
    forward: Mapping[str, Any]
    back: Mapping[str, Any]


def edits_of(tree: ReadOnlyTree) -> Sequence[Edit]:
    """Return an edit of each field of an object but those in lists, the one that is accepted most likely first."""
    edits = [each for each in field_edits(tree) if each.path[0] in _PARTS and not _is_in_list(each)]
    edits.sort(key=lambda each: (each.path[-1] != "replicas", _ORDER.index(type(each.before)), each.path))
    return [
        Edit(text=str(each), forward=_merge_patch(each, each.after), back=_merge_patch(each, each.before))
        for each in edits
    ]


def _is_in_list(edit: FieldEdit) -> bool:
    return any(isinstance(part, int) for part in edit.path)


def _merge_patch(edit: FieldEdit, value: Any) -> Mapping[str, Any]:
    return meta.with_value({}, [*map(str, edit.path)], value)
