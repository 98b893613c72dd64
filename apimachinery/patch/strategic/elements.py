"""The elements of lists that are merged: what they have to be, what names them, and which order they end up in.

`key` is the list's merge key, or empty for a list of primitives, whose elements name themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from apimachinery.patch import gofmt
from apimachinery.patch.errors import Inapplicable, Unmergeable

Elements: TypeAlias = Sequence[Any]

_OBJECT = gofmt.go_type({})
_LIST = gofmt.go_type([])


def are_objects(*lists: Elements) -> bool:
    """Whether the elements are objects and not primitives. They must all be of one type, and none a list."""
    types = list(dict.fromkeys(gofmt.go_type(item) for elements in lists for item in elements))
    if not types:
        raise Unmergeable("no elements in any of the given slices")
    if types[0] == _LIST:
        raise Inapplicable("lists of lists are not supported")
    if len(types) > 1:
        raise Unmergeable(f"list element types are not identical: {gofmt.plain(list(map(list, lists)))}")
    return types[0] == _OBJECT


def wrong_type(wanted: Any, value: Any) -> Unmergeable:
    """`wanted` is an example of what the value should be."""
    return Unmergeable(f"expected a {gofmt.go_type(wanted)}, but received a {gofmt.go_type(value)}")


def name_of(item: Any, key: str) -> Any:
    name = _member(item, key) if key else item
    if isinstance(name, dict | list):
        raise Unmergeable(f"runtime error: hash of unhashable type {gofmt.go_type(name)}")
    return name


def _member(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise wrong_type({}, item)
    if key not in item:
        raise Unmergeable(f"map: {gofmt.plain(item)} does not contain declared merge key: {key}")
    return item[key]


def positions(elements: Elements, key: str) -> dict[Any, int]:
    """Where each name comes first."""
    found: dict[Any, int] = {}
    for position, item in enumerate(elements):
        found.setdefault(name_of(item, key), position)
    return found


def arranged(elements: Elements, wanted: Elements, live: Elements, key: str) -> list[Any]:
    """The elements in order: those named in `wanted` in its order, the others in the order of `live`.

    An element of `live` alone comes as early as it can without passing one that stood before it in `live`.
    """
    order, live_order = positions(wanted, key), positions(live, key)
    chosen: list[Any] = []
    rest: list[Any] = []
    for item in elements:
        (chosen if name_of(item, key) in order else rest).append(item)
    return _interleaved(_sorted(rest, live_order, key), _sorted(chosen, order, key), live_order, key)


def _sorted(elements: Elements, order: Mapping[Any, int], key: str) -> list[Any]:
    """By the order, and then what it does not name, last first: upstream's sort turns that around."""
    named = [item for item in elements if name_of(item, key) in order]
    unnamed = [item for item in elements if name_of(item, key) not in order]
    return sorted(named, key=lambda item: order[name_of(item, key)]) + unnamed[::-1]


def _interleaved(rest: Elements, chosen: Elements, live: Mapping[Any, int], key: str) -> list[Any]:
    """Both lists as one, each in its order; one of `rest` goes first only if it stood first in `live`."""
    merged: list[Any] = []
    taken = 0
    for item in chosen:
        position = live.get(name_of(item, key), -1)
        while taken < len(rest) and 0 <= live.get(name_of(rest[taken], key), -1) < position:
            merged.append(rest[taken])
            taken += 1
        merged.append(item)
    return merged + list(rest[taken:])
