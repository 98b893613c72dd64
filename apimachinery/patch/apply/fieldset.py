"""Sets of fields: which places in an object, without their values.

A set is a tree of steps. The step `.` in a node means that the place itself is in the set, beside or without places
below it: {"f:spec": {".": {}, "f:replicas": {".": {}}}} has `.spec` and `.spec.replicas`. No branch is without a
place, so the empty set is {}. Sets are never changed once they are made; the operations share what they can, and
give back an operand itself where that is the result, so that "nothing changed" is seen by identity.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch.apply.elements import FIELD, Element, format_element, sort_key
from mockube.apimachinery.pieces import sorted_in_pieces

SELF: Final = "."


class FieldSet(dict[Element, "FieldSet"]):
    """A set, or a node of one."""

    __slots__ = ("tree",)

    tree: dict[str, Any]
    """As `fieldsV1` has it; cached on first use."""


Path: TypeAlias = tuple[Element, ...]

EMPTY: Final = FieldSet()
LEAF: Final = FieldSet({SELF: EMPTY})
"""The set of one place, seen from there."""


def is_leaf(fields: FieldSet) -> bool:
    return len(fields) == 1 and SELF in fields


def of_paths(paths: Iterable[Path]) -> FieldSet:
    root = FieldSet()
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, FieldSet())
        node[SELF] = EMPTY
    return root


def of_fields(*names: str) -> FieldSet:
    """The set of the fields so named, with dots: "metadata.name"."""
    return of_paths(tuple(FIELD + step for step in name.split(".")) for name in names)


def paths(fields: FieldSet, above: Path = ()) -> Iterator[Path]:
    """Every place, in order, those of a node before those below it."""
    elements = sorted_in_pieces(fields.keys() - {SELF}, sort_key)
    for element in elements:
        if SELF in fields[element]:
            yield (*above, element)
    for element in elements:
        yield from paths(fields[element], (*above, element))


def format_path(path: Path) -> str:
    return "".join(map(format_element, path))


def has_path(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and SELF in node


def union(fields: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either."""
    if fields is other or not other:
        return fields
    if not fields:
        return other
    both: FieldSet | None = None
    for element, node in other.items():
        own_node = fields.get(element)
        merged = node if own_node is None else union(own_node, node)
        if merged is not own_node:
            both = FieldSet(fields) if both is None else both
            both[element] = merged
    return fields if both is None else both


def union_of(sets: Iterable[FieldSet]) -> FieldSet:
    """What is in any. Sets of about the same size are joined, so that many small ones are not copied once for each."""
    field_sets = list(sets)
    while len(field_sets) > 1:
        pairs = zip(field_sets[::2], field_sets[1::2], strict=False)
        field_sets = [union(first, other) for first, other in pairs] + field_sets[len(field_sets) & ~1 :]
    return field_sets[0] if field_sets else EMPTY


def intersection(fields: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both."""
    if fields is other:
        return fields
    few, many = (fields, other) if len(fields) < len(other) else (other, fields)
    common = FieldSet()
    for element, node in few.items():
        if element == SELF and SELF in many:
            common[SELF] = EMPTY
        elif element in many and (both := intersection(node, many[element])):
            common[element] = both
    return common


def difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `fields` alone. A place and the places below it are different things."""
    return _subtract(fields, other, recursive=False) if fields and other else fields


def recursive_difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `fields` and neither in `other` nor below a place in `other`."""
    return _subtract(fields, other, recursive=True) if fields and other else fields


def _subtract(fields: FieldSet, other: FieldSet, *, recursive: bool) -> FieldSet:
    rest: FieldSet | None = None
    # The common elements are found by the smaller set: what many managers own is compared with one large change.
    for element in fields.keys() & other.keys():
        own_node, node = fields[element], other[element]
        is_removed = element == SELF or (recursive and SELF in node)
        remaining = EMPTY if is_removed else _subtract(own_node, node, recursive=recursive)
        if is_removed or remaining is not own_node:
            rest = FieldSet(fields) if rest is None else rest
            if remaining:
                rest[element] = remaining
            else:
                del rest[element]
    return fields if rest is None else rest
