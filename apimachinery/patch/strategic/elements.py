"""The elements of lists that are merged: what they have to be, what names them, and which order they end up in.

`key` is the list's merge key, or empty for a list of primitives, whose elements name themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mockube.apimachinery import gotext
from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.patch.errors import PatchNotApplicable, Unmergeable
from mockube.apimachinery.schema.model import Shape, Type

Elements: TypeAlias = Sequence[Any]

_OBJECT = gofmt.go_type({})
_LIST = gofmt.go_type([])


def are_objects(*lists: Elements) -> bool:
    """Whether the elements are objects and not primitives. They must all be of one type, and none a list."""
    types = list(dict.fromkeys(gofmt.go_type(item) for elements in lists for item in elements))
    if not types:
        raise Unmergeable("no elements in any of the given slices")
    if types[0] == _LIST:
        raise PatchNotApplicable("lists of lists are not supported")
    if len(types) > 1:
        raise Unmergeable(
            f"list element types are not identical: {gofmt.format_verb_v(list(map(list, lists)))}"
        )
    return types[0] == _OBJECT


def wrong_type(example: Any, value: Any) -> Unmergeable:
    """`example` is an example of the type that the value should have."""
    return Unmergeable(f"expected a {gofmt.go_type(example)}, but received a {gofmt.go_type(value)}")


def name_of(item: Any, key: str) -> Any:
    name = _member(item, key) if key else item
    if isinstance(name, dict | list):
        raise Unmergeable(f"runtime error: hash of unhashable type {gofmt.go_type(name)}")
    return name


def _member(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise wrong_type({}, item)
    if key not in item:
        raise Unmergeable(f"map: {gofmt.format_verb_v(item)} does not contain declared merge key: {key}")
    return item[key]


def positions(elements: Elements, key: str) -> dict[Any, int]:
    """Return the first position of each name."""
    by_name: dict[Any, int] = {}
    for position, item in enumerate(elements):
        by_name.setdefault(name_of(item, key), position)
    return by_name


def arrange_elements(elements: Elements, patch_order: Elements, live: Elements, key: str) -> list[Any]:
    """Return the elements in order: those named in `patch_order` in its order, the others in the order of `live`.

    An element of `live` alone is placed as early as possible, but behind those before it in `live`.
    """
    order, live_order = positions(patch_order, key), positions(live, key)
    chosen: list[_Named] = []
    rest: list[_Named] = []
    for item in elements:
        name = name_of(item, key)
        (chosen if name in order else rest).append((name, item))
    chosen.sort(key=lambda named: order[named[0]])
    return _interleave(_sort_elements(rest, live_order), chosen, live_order)


_Named: TypeAlias = tuple[Any, Any]
"""An element after its name."""


def _sort_elements(elements: Sequence[_Named], order: Mapping[Any, int]) -> list[_Named]:
    """By the order, and then what it does not name, last first: upstream's sort turns that around."""
    known_elements = [named for named in elements if named[0] in order]
    unknown = [named for named in elements if named[0] not in order]
    return sorted(known_elements, key=lambda named: order[named[0]]) + unknown[::-1]


def _interleave(rest: Sequence[_Named], chosen: Sequence[_Named], live: Mapping[Any, int]) -> list[Any]:
    """Merge both lists, each in its order; an item of `rest` is first only if it is first in `live`."""
    merged: list[Any] = []
    index = 0
    for name, item in chosen:
        position = live.get(name, -1)
        while index < len(rest) and 0 <= live.get(rest[index][0], -1) < position:
            merged.append(rest[index][1])
            index += 1
        merged.append(item)
    return merged + [item for _, item in rest[index:]]


def member_type(parent: Type, name: str) -> Type:
    """The type of a struct's field."""
    if parent.shape is Shape.MAP:
        raise Unmergeable("merging an object in json but data type is not struct, instead is: map")
    field = parent.fields.get(name)
    if field is None:
        struct = parent.go.rpartition(".")[2]
        raise Unmergeable(
            f"unable to find api field in struct {struct} for the json field {gotext.quote(name)}"
        )
    return field.type


def list_type(parent: Type, name: str) -> Type:
    """The type of a struct's field that has to be a list."""
    member = member_type(parent, name)
    if member.shape is not Shape.LIST:
        raise Unmergeable("expected slice or array type, but got: struct")
    if member.items.shape is Shape.LIST:
        raise Unmergeable("unexpected slice of slice")
    return member
