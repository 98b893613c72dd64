"""The edit of an object by somebody else: the field that can most likely have another value, and its value before."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

_PARTS: Final = ("spec", "data", "stringData")
_ORDER: Final = (int, bool, str)
"""The types of values, from those that a schema accepts most likely with another value."""


class Edit(Struct, frozen=True, kw_only=True):
    """Two merge patches: one that changes a field, and one that changes it back."""

    text: str
    forward: Mapping[str, Any]
    back: Mapping[str, Any]


def edit_of(tree: ReadOnlyTree) -> Edit | None:
    """Return an edit of an object; None if it has no field that can be edited."""
    fields = [found for part in _PARTS for found in _scalars((part,), tree.get(part))]
    if not fields:
        return None
    path, value = min(
        fields, key=lambda field: (field[0][-1] != "replicas", _ORDER.index(type(field[1])), field[0])
    )
    other = _other(value)
    return Edit(
        text=f"{'.'.join(path)} is set to {other!r}", forward=_nested(path, other), back=_nested(path, value)
    )


def _scalars(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _scalars((*path, name), member)
    elif type(value) in _ORDER:
        yield path, value


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}-edited"


def _nested(path: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    nested = value
    for name in reversed(path):
        nested = {name: nested}
    return dict(nested)
