"""The warnings of a kind: for a new object, for an update, and for an update of a subresource."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from mockube.apimachinery import quantity
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree


def _no_warnings(_tree: ReadOnlyTree) -> Iterable[str]:
    return ()


def _no_update_warnings(_new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterable[str]:
    return ()


class Warnings(Struct, frozen=True, kw_only=True):
    create: Callable[[ReadOnlyTree], Iterable[str]] = _no_warnings
    update: Callable[[ReadOnlyTree, ReadOnlyTree], Iterable[str]] = _no_update_warnings
    subresources: Mapping[str, Callable[[ReadOnlyTree, ReadOnlyTree], Iterable[str]]] = field(
        default_factory=dict
    )


def on_create_and_update(of: Callable[[ReadOnlyTree], Iterable[str]]) -> Warnings:
    """Return warnings that are the same for a new object and for each update."""
    return Warnings(create=of, update=lambda new, _old: of(new))


def fractional_byte_warnings(
    amounts: Mapping[str, Any] | None, path: Path, names: Iterable[str]
) -> Iterator[str]:
    for name in names if amounts else ():
        amount = quantity.from_json((amounts or {}).get(name))
        if not amount.is_whole:
            amount_text = quote(str(amount))
            yield f"{path.key(name)}: fractional byte value {amount_text} is invalid, must be an integer"
