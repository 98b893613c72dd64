"""Comparison of two versions of an object: the sets of the paths that were removed, modified and added."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from . import fieldset
from .atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar, Untyped
from .elements import FIELD, Element
from .fieldset import FieldSet
from .typed_fields import all_fields

ABSENT: Final[Any] = object()
"""An absent value, which is different from null."""


class Comparison(NamedTuple):
    """The result of a comparison, as structured-merge-diff's typed.Comparison."""

    removed: FieldSet = fieldset.EMPTY
    modified: FieldSet = fieldset.EMPTY
    added: FieldSet = fieldset.EMPTY

    @property
    def changed_fields(self) -> FieldSet:
        return fieldset.union(self.modified, self.added)

    def exclude(self, ignored: FieldSet) -> "Comparison":
        """Return the changes without those at and below the given paths."""
        if not ignored:
            return self
        return Comparison(
            fieldset.recursive_difference(self.removed, ignored),
            fieldset.recursive_difference(self.modified, ignored),
            fieldset.recursive_difference(self.added, ignored),
        )


_UNCHANGED: Final = Comparison()
_REMOVED: Final = Comparison(removed=fieldset.LEAF)
_MODIFIED: Final = Comparison(modified=fieldset.LEAF)
_ADDED: Final = Comparison(added=fieldset.LEAF)


def compare(atom: Atom, before: Any, after: Any) -> Comparison:
    """Compare two values; raise `TypedError` if an item of a list has no path element."""
    if isinstance(atom, Scalar | ListAtom) or atom.atomic:
        changes = _compare(atom, before, after)
    else:
        # Whole objects usually differ: the quick check for equality is only for their parts.
        changes = _compare_maps(atom, before, after)
    return Comparison(
        fieldset.difference(changes.removed, fieldset.LEAF),
        fieldset.difference(changes.modified, fieldset.LEAF),
        fieldset.difference(changes.added, fieldset.LEAF),
    )


def _compare(atom: Atom, before: Any, after: Any) -> Comparison:
    if before is after:
        return _UNCHANGED
    if before is ABSENT:
        return Comparison(added=all_fields(atom, after))
    if after is ABSENT:
        return Comparison(removed=all_fields(atom, before))
    if isinstance(atom, Scalar) or atom.atomic:
        return _compare_whole(before, after)
    # Clients mostly send back what is stored, and this is faster than comparing every path.
    if orjson.dumps(before) == orjson.dumps(after):
        return _UNCHANGED
    if isinstance(atom, ListAtom):
        return _compare_lists(atom, before, after)
    return _compare_maps(atom, before, after)


def _compare_whole(before: Any, after: Any) -> Comparison:
    return _UNCHANGED if equal(before, after) else _MODIFIED


def equal(value: Any, other: Any) -> bool:
    """Return whether two values are equal: 1 equals 1.0, but not true."""
    if value is other:
        return True
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(equal(item, other[key]) for key, item in value.items())
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(equal, value, other))
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _compare_maps(atom: MapAtom | Untyped, before: Any, after: Any) -> Comparison:
    old: Mapping[str, Any] = before if isinstance(before, dict) else {}
    new: Mapping[str, Any] = after if isinstance(after, dict) else {}
    # For an untyped value, only one side may be an object; then the value itself is modified, too.
    own_change = (
        _UNCHANGED if isinstance(before, dict | None) and isinstance(after, dict | None) else _MODIFIED
    )
    if not old and not new:
        return _compare_whole(before, after)
    changes = []
    for name, item in old.items():
        other = new.get(name, ABSENT)
        if item is not other:
            changes.append((FIELD + name, _compare(atom.member(name) or DEDUCED, item, other)))
    for name, other in new.items():
        if name not in old:
            changes.append((FIELD + name, _compare(atom.member(name) or DEDUCED, ABSENT, other)))
    return _combine(changes, own_change)


def _combine(
    changes: Iterable[tuple[Element, Comparison]], own_change: Comparison = _UNCHANGED
) -> Comparison:
    """Return the changes of a value and of its children as one comparison, relative to the value."""
    removed, modified, added = map(FieldSet, own_change)
    for element, change in changes:
        if change.removed:
            removed[element] = change.removed
        if change.modified:
            modified[element] = change.modified
        if change.added:
            added[element] = change.added
    return Comparison(removed, modified, added)


# --- lists


def _compare_lists(atom: ListAtom, before: Any, after: Any) -> Comparison:
    old: Sequence[Any] = before if isinstance(before, list) else ()
    new: Sequence[Any] = after if isinstance(after, list) else ()
    if not old and not new:
        return _compare_whole(before, after)
    old_groups, new_groups = _group_by_element(atom, old), _group_by_element(atom, new)
    changes = [
        (element, _compare_items(atom.items, items, new_groups.get(element, ())))
        for element, items in old_groups.items()
    ]
    changes += [
        (element, _compare_items(atom.items, (), items))
        for element, items in new_groups.items()
        if element not in old_groups
    ]
    return _combine(changes)


def _group_by_element(atom: ListAtom, items: Sequence[Any]) -> Mapping[Element, Sequence[Any]]:
    """Group items by their path element. Stored lists can contain duplicates, although the type forbids them."""
    groups: dict[Element, list[Any]] = {}
    for element, item in zip(atom.elements(items), items, strict=True):
        groups.setdefault(element, []).append(item)
    return groups


def _compare_items(atom: Atom, old: Sequence[Any], new: Sequence[Any]) -> Comparison:
    """Compare the items with one path element. Duplicates are owned as a whole."""
    if len(old) <= 1 and len(new) <= 1:
        return _compare(atom, old[0] if old else ABSENT, new[0] if new else ABSENT)
    if len(old) > 1 and len(new) > 1:
        return _compare_whole(old, new)
    item_change, list_change = (
        (_compare_items(atom, old, ()), _ADDED) if len(new) > 1 else (_compare_items(atom, (), new), _REMOVED)
    )
    return Comparison(*map(fieldset.union, item_change, list_change))
