"""Fields that a server accepted and did not keep, although it gave no warning: their feature gate is off.

What was sent is compared with what the server would store. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.importing.cleaning import SERVER_METADATA

_NOT_KEPT_METADATA: Final = {*SERVER_METADATA, "namespace"}
"""Servers drop the namespace of a cluster-scoped object, which charts often have."""
_NOT_KEPT: Final = {"apiVersion", "kind", "status"}
_WRITE_ONLY: Final = {("v1", "Secret"): {"stringData"}}
"""Fields that a server moves into other fields."""


class DroppedField(NamedTuple):
    """A field that was not stored."""

    path: str
    inner_path: str
    """The path of the only field in it, or again of the only field in that; `path` if there are several."""
    value: Any
    """The value at the inner path."""


def dropped_fields(sent: ReadOnlyTree, stored: ReadOnlyTree) -> Iterator[DroppedField]:
    """Yield the fields with a value that the stored object does not have, without those of the server.

    A zero is a value if it is the only one in a dropped field: whether the server tells it from none depends on the type.
    """
    ignored = _NOT_KEPT | _WRITE_ONLY.get((sent["apiVersion"], sent["kind"]), set())
    for name, value in sent.items():
        if name == "metadata":
            own = {key: item for key, item in value.items() if key not in _NOT_KEPT_METADATA}
            yield from _dropped(own, stored.get(name), name)
        elif name not in ignored:
            yield from _dropped(value, stored.get(name), name)


def _dropped(sent: Any, stored: Any, path: str) -> Iterator[DroppedField]:
    if stored is None:
        if _has_value(sent):
            yield _dropped_field(sent, path)
    elif isinstance(sent, dict) and isinstance(stored, dict):
        for name, value in sent.items():
            yield from _dropped(value, stored.get(name), f"{path}.{name}")
    elif isinstance(sent, list) and isinstance(stored, list):
        yield from _dropped_of_list(sent, stored, path)


def _dropped_field(value: Any, path: str) -> DroppedField:
    inner_path = path
    while isinstance(value, dict) and len(value) == 1:
        ((name, value),) = value.items()
        inner_path = f"{inner_path}.{name}"
    return DroppedField(path, inner_path, value)


def _dropped_of_list(sent: Sequence[Any], stored: Sequence[Any], path: str) -> Iterator[DroppedField]:
    """Compare elements by their indexes; if some are missing and all have names, by their names."""
    names = [_name(item) for item in sent] if len(sent) > len(stored) else [None]
    if None in names:
        stored_items: Sequence[Any] = [*stored, *[None] * (len(sent) - len(stored))]
    else:
        stored_by_name = {_name(item): item for item in stored}
        stored_items = [stored_by_name.get(name) for name in names]
    for index, item in enumerate(sent):
        yield from _dropped(item, stored_items[index], f"{path}[{index}]")


def _name(item: Any) -> str | None:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _has_value(value: Any) -> bool:
    """Return whether a value is neither null nor empty: servers leave out empty collections."""
    if isinstance(value, dict):
        return (len(value) == 1 and any(map(_has_value, value.values()))) or any(
            map(_has_nonzero, value.values())
        )
    if isinstance(value, list):
        return any(map(_has_nonzero, value))
    return value is not None


def _has_nonzero(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nonzero, value.values()))
    if isinstance(value, list):
        return any(map(_has_nonzero, value))
    return bool(value)
