"""The elements of merged lists: their types, names and order.

`key` is the list's merge key; it is empty for a list of primitives, whose elements are their own names.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mockube.apimachinery import gotext
from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.patch.errors import PatchNotApplicable, Unmergeable
from mockube.apimachinery.schema.model import SchemaType, Shape

Elements: TypeAlias = Sequence[Any]

_OBJECT = gofmt.go_type({})
_LIST = gofmt.go_type([])


def are_objects(*lists: Elements) -> bool:
    """Return whether the elements are objects rather than primitives. They must have one type, which is not a list."""
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
    """Return the error of a value that does not have the type of `example`."""
    return Unmergeable(f"expected a {gofmt.go_type(example)}, but received a {gofmt.go_type(value)}")


def name_of(item: Any, key: str) -> Any:
    if item.__class__ is dict and key and (name := item.get(key)).__class__ is str:  # nearly always
        return name
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
    """Return the first position of each element's name."""
    by_name: dict[Any, int] = {}
    for position, item in enumerate(elements):
        by_name.setdefault(name_of(item, key), position)
    return by_name


def arrange_elements(elements: Elements, patch_order: Elements, live: Elements, key: str) -> list[Any]:
    """Sort elements: those named in `patch_order` have its order, the others that of `live`.

    An element that is only in `live` is placed as early as possible after its predecessors in `live`.
    """
    order, live_order = positions(patch_order, key), positions(live, key)
    in_patch_order: list[_Named] = []
    rest: list[_Named] = []
    for item in elements:
        name = name_of(item, key)
        (in_patch_order if name in order else rest).append((name, item))
    in_patch_order.sort(key=lambda named: order[named[0]])
    return _interleave(_sort_elements(rest, live_order), in_patch_order, live_order)


_Named: TypeAlias = tuple[Any, Any]
"""An element's name and the element."""


def _sort_elements(elements: Sequence[_Named], order: Mapping[Any, int]) -> list[_Named]:
    """Sort elements by `order`. Those without a position come last, reversed, as in upstream's sort."""
    known_elements = [named for named in elements if named[0] in order]
    unknown = [named for named in elements if named[0] not in order]
    return sorted(known_elements, key=lambda named: order[named[0]]) + unknown[::-1]


def _interleave(
    rest: Sequence[_Named], in_patch_order: Sequence[_Named], live: Mapping[Any, int]
) -> list[Any]:
    """Merge two sorted lists. An item of `rest` precedes one of `in_patch_order` only if it does so in `live`."""
    merged: list[Any] = []
    index = 0
    for name, item in in_patch_order:
        position = live.get(name, -1)
        while index < len(rest) and 0 <= live.get(rest[index][0], -1) < position:
            merged.append(rest[index][1])
            index += 1
        merged.append(item)
    return merged + [item for _, item in rest[index:]]


def member_type(parent: SchemaType, name: str) -> SchemaType:
    """Return the type of a struct's field."""
    if parent.shape is Shape.MAP:
        raise Unmergeable("merging an object in json but data type is not struct, instead is: map")
    field = parent.fields.get(name)
    if field is None:
        struct = parent.go.rpartition(".")[2]
        raise Unmergeable(
            f"unable to find api field in struct {struct} for the json field {gotext.quote(name)}"
        )
    return field.type


def list_type(parent: SchemaType, name: str) -> SchemaType:
    """Return the type of a struct's field, which must be a list."""
    member = member_type(parent, name)
    if member.shape is not Shape.LIST:
        raise Unmergeable("expected slice or array type, but got: struct")
    if member.items.shape is Shape.LIST:
        raise Unmergeable("unexpected slice of slice")
    return member
