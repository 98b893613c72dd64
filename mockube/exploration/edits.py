"""The edits of an object by somebody else: its fields, each with another value, and with its value before."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

_PARTS: Final = ("spec", "data", "stringData")
_ORDER: Final = (int, bool, str)
"""The types of values, from those that a schema accepts most likely with another value."""


class Edit(Struct, frozen=True, kw_only=True):
    """Two merge patches: one that changes a field, and one that changes it back."""

    text: str
    forward: Mapping[str, Any]
    back: Mapping[str, Any]


def edits_of(tree: ReadOnlyTree) -> Sequence[Edit]:
    """Return an edit of each field of an object, the one that is accepted most likely first."""
    fields = [found for part in _PARTS for found in _scalars((part,), tree.get(part))]
    fields.sort(key=lambda field: (field[0][-1] != "replicas", _ORDER.index(type(field[1])), field[0]))
    is_secret = (meta.api_version(tree), meta.kind(tree)) == ("v1", "Secret")
    return [_edit(path, value, is_encoded=is_secret and path[0] == "data") for path, value in fields]


def _edit(path: tuple[str, ...], value: Any, *, is_encoded: bool) -> Edit:
    other = base64.b64encode(f"{value}-edited".encode()).decode() if is_encoded else _other(value)
    text = "another value" if is_encoded else repr(other)
    return Edit(
        text=f"{'.'.join(path)} is set to {text}", forward=_nested(path, other), back=_nested(path, value)
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
