"""The field set of a value, and the removal of a field set from a value (typed.ToFieldSet, RemoveItems)."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import fieldset
from .atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar, Untyped, child_atom
from .elements import FIELD
from .fieldset import FieldSet


def applied_fields(atom: Atom, value: Any) -> FieldSet:
    """Return the fields that an applier of this configuration owns.

    These are the primitive and atomic values, the items of other lists, the keys of other maps, and empty or null values.
    """
    if isinstance(atom, Scalar) or atom.atomic:
        return fieldset.LEAF
    if isinstance(atom, ListAtom):
        return _items(atom, value or ())
    if isinstance(value, dict):
        return _members(atom, value)
    # Null has no fields of its own; a primitive or list without a schema is one field.
    return fieldset.EMPTY if value is None else fieldset.LEAF


def _members(atom: MapAtom | Untyped, value: Mapping[str, Any]) -> FieldSet:
    fields = FieldSet()
    for name, item in value.items():
        node = applied_fields(atom.member(name) or DEDUCED, item)
        if item is None or item == {} or not atom.declares(name):
            node = fieldset.union(node, fieldset.LEAF)
        if node:
            fields[FIELD + name] = node
    return fields


def _items(atom: ListAtom, items: Sequence[Any]) -> FieldSet:
    fields = FieldSet()
    for element, item in zip(atom.elements(items), items, strict=True):
        # Duplicate items are one path without children.
        fields[element] = (
            fieldset.LEAF
            if element in fields
            else fieldset.union(applied_fields(atom.items, item), fieldset.LEAF)
        )
    return fields


def all_fields(atom: Atom, value: Any) -> FieldSet:
    """Return the fields that a manager owns after adding this value: all values in it, with every object and list."""
    if isinstance(atom, Scalar) or atom.atomic or not value:
        return fieldset.LEAF
    fields = FieldSet(fieldset.LEAF)
    if isinstance(atom, ListAtom):
        for element, item in zip(atom.elements(value), value, strict=True):
            fields[element] = fieldset.LEAF if element in fields else all_fields(atom.items, item)
    elif isinstance(value, dict):
        for name, item in value.items():
            fields[FIELD + name] = all_fields(atom.member(name) or DEDUCED, item)
    return fields


def ensure_named_fields(atom: Atom | None, fields: FieldSet) -> FieldSet:
    """Return the set with all declared parent fields of its paths (EnsureNamedFieldsAreMembers)."""
    with_parents = FieldSet(fields)
    for element, node in fields.items():
        if element != fieldset.SELF and not fieldset.is_leaf(node):
            with_parents[element] = ensure_named_fields(child_atom(atom, element), node)
            if isinstance(atom, MapAtom) and atom.declares(element.removeprefix(FIELD)):
                with_parents[element] = fieldset.union(with_parents[element], fieldset.LEAF)
    return with_parents


def remove(atom: Atom, value: Any, fields: FieldSet) -> Any:
    """Return a value without the given fields.

    A value without remaining fields becomes None, as does an atomic value of which a part is to be removed.
    """
    if isinstance(atom, ListAtom):
        return _remove_items(atom, value, fields) if isinstance(value, list) else None
    if isinstance(value, dict) and isinstance(atom, MapAtom | Untyped):
        return _remove_members(atom, value, fields)
    return value if isinstance(atom, Scalar | Untyped) and not isinstance(value, list) else None


def _remove_members(
    atom: MapAtom | Untyped, value: Mapping[str, Any], fields: FieldSet
) -> dict[str, Any] | None:
    if atom.atomic:
        return None
    rest = dict(value)
    for element, node in fields.items():
        name = element.removeprefix(FIELD)
        if name not in rest or not element.startswith(FIELD):
            continue
        if fieldset.SELF in node:
            del rest[name]
        else:
            rest[name] = remove(atom.member(name) or DEDUCED, rest[name], node)
    return rest or None


def _remove_items(atom: ListAtom, items: Sequence[Any], fields: FieldSet) -> list[Any] | None:
    if atom.atomic:
        return None
    rest = []
    for element, item in zip(atom.elements(items), items, strict=True):
        node = fields.get(element, fieldset.EMPTY)
        if fieldset.SELF not in node:
            rest.append(remove(atom.items, item, node) if node else item)
    return rest or None
