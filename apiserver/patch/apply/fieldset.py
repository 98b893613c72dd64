"""Field sets: sets of the paths of fields, as structured-merge-diff's fieldpath.Set.

A set is a tree of path elements. The element `.` in a node means that the node's own path is in the set, with or without
paths below it: {"f:spec": {".": {}, "f:replicas": {".": {}}}} contains `.spec` and `.spec.replicas`. Every branch contains
a path, so the empty set is {}. Sets are immutable; an operation shares parts of its operands, and returns an operand itself
if it is the result, so that "no change" can be tested by identity.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from mockube.apimachinery.piecewise import sorted_in_pieces

from .elements import FIELD, Element, format_element, sort_key

SELF: Final = "."


class FieldSet(dict[Element, "FieldSet"]):
    """A field set, or a node of one."""

    __slots__ = ("tree",)

    tree: dict[str, Any]
    """The set in the form of `fieldsV1`; cached on first use."""


Path: TypeAlias = tuple[Element, ...]

EMPTY: Final = FieldSet()
LEAF: Final = FieldSet({SELF: EMPTY})
"""The set that contains only its own path."""


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
    """Return the set of fields with dotted names, such as "metadata.name"."""
    return of_paths(tuple(FIELD + step for step in name.split(".")) for name in names)


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Yield the paths in order: those of a node before those below it."""
    elements = sorted_in_pieces(fields.keys() - {SELF}, sort_key)
    for element in elements:
        if SELF in fields[element]:
            yield (*prefix, element)
    for element in elements:
        yield from paths(fields[element], (*prefix, element))


def format_path(path: Path) -> str:
    return "".join(map(format_element, path))


def has_path(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and SELF in node


def union(fields: FieldSet, other: FieldSet) -> FieldSet:
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
    """Return the union of many sets. They are joined pairwise, so that the result is not copied once for each set."""
    field_sets = list(sets)
    while len(field_sets) > 1:
        pairs = zip(field_sets[::2], field_sets[1::2], strict=False)
        field_sets = [union(first, other) for first, other in pairs] + field_sets[len(field_sets) & ~1 :]
    return field_sets[0] if field_sets else EMPTY


def intersection(fields: FieldSet, other: FieldSet) -> FieldSet:
    if fields is other:
        return fields
    smaller, larger = (fields, other) if len(fields) < len(other) else (other, fields)
    common = FieldSet()
    for element, node in smaller.items():
        if element == SELF and SELF in larger:
            common[SELF] = EMPTY
        elif element in larger and (both := intersection(node, larger[element])):
            common[element] = both
    return common


def difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths of `fields` that are not in `other`. Paths below a path in `other` stay."""
    return _subtract(fields, other, recursive=False) if fields and other else fields


def recursive_difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths of `fields` that are neither in `other` nor below a path in `other`."""
    return _subtract(fields, other, recursive=True) if fields and other else fields


def _subtract(fields: FieldSet, other: FieldSet, *, recursive: bool) -> FieldSet:
    rest: FieldSet | None = None
    # The cost is that of the smaller set: the fields of many managers are compared with one large change.
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
