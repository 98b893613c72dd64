"""The fields of a new object that its creator owns, written as `fieldsV1` in one walk.

The result is that of comparing the object with the empty one, removing the fields that cannot be owned, and encoding the
rest. Most parts of an object are not in the empty one, and all their paths are owned. The functions that write them are
built once for each resource.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.piecewise import sorted_in_pieces
from mockube.apimachinery.tree import ReadOnlyTree

from . import fieldset
from .atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar, Untyped
from .compare import compare
from .elements import FIELD, Element, sort_key
from .fieldset import FieldSet
from .fieldsv1 import encode
from .managers import NEVER_OWNED, VersionConverter

Fields: TypeAlias = dict[str, Any]
"""A set of fields in the form of `fieldsV1`, sorted. Parts are shared and never changed."""

FieldsWriter: TypeAlias = Callable[[Any], Fields]
"""A function that returns the fields of a value; it raises `TypedError` if an item of a list has no path element."""

_LEAF: Final[Fields] = {}

_PLANS: Final = 256
_MAX_NAMES_LENGTH: Final = 1000
"""The number of cached plans of one type (one per combination of members), and the maximum length of the names in one."""

_SPEC: Final = "spec"
_SPECS: Final = 40
_MAX_SPEC_BYTES: Final = 16 * 1024
"""The number of specs of one kind whose fields are cached, and the maximum length of their JSON."""

_NEVER: Final = fieldset.difference(NEVER_OWNED, fieldset.of_fields("metadata"))
"""The fields that are never owned. The empty object has metadata, which is therefore not a changed field itself."""


def writer(versions: VersionConverter, empty: ReadOnlyTree) -> FieldsWriter:
    """Return the function that writes the fields of a new object."""
    assert "metadata" in empty
    own = versions.own
    never = fieldset.union(_NEVER, versions.reset_fields.get(own, fieldset.EMPTY))
    write = _shared_object_writer(versions.atoms[own], empty, never)
    # Many objects, such as the pods of a ReplicaSet, have the same spec.
    write_spec = memoize(_SPECS, max_length=_MAX_SPEC_BYTES)(lambda text: write({_SPEC: orjson.loads(text)}))

    def write_object(new: ReadOnlyTree) -> Fields:
        tree = versions.to_version(own, new)
        if _SPEC not in tree:
            return write(tree)
        rest = {name: item for name, item in tree.items() if name != _SPEC}
        text = orjson.dumps(tree[_SPEC])
        is_short = len(text) <= _MAX_SPEC_BYTES
        fields = write(rest) | (write_spec(text) if is_short else write({_SPEC: tree[_SPEC]}))
        return {element: fields[element] for element in sorted(fields)}

    return write_object


def _shared_object_writer(atom: Atom, before: ReadOnlyTree, never: FieldSet) -> FieldsWriter:
    """Return the writer of an object that is also in the empty object, perhaps with members."""
    assert isinstance(atom, MapAtom | Untyped)
    members = _Members(atom)
    shared = {
        name: _shared_object_writer(member, old_value, never.get(FIELD + name, fieldset.EMPTY))
        for name, old_value in before.items()
        if isinstance(old_value, dict) and _is_granular(member := atom.member(name) or DEDUCED)
    }
    list_names = {
        name
        for name, old_value in before.items()
        if old_value is None and _is_granular_list(atom.member(name))
    }

    def write_changed(name: str, item: Any, write_new: FieldsWriter) -> Fields:
        """Return the fields of a member that differ from the empty object; {} if there are none."""
        element = FIELD + name
        if name in shared and isinstance(item, dict):
            child_fields = shared[name](item)
            return {element: child_fields} if child_fields else child_fields
        if name in list_names and item and isinstance(item, list):
            child_fields = {**write_new(item)}
            del child_fields[fieldset.SELF]
            return {element: child_fields}
        old = {name: before[name]} if name in before else {}
        return encode(compare(atom, old, {name: item}).exclude(never).changed_fields)

    def write(after: ReadOnlyTree) -> Fields:
        fields: Fields = {}
        for name in sorted_in_pieces(after):
            element, write_new = members[name]
            ignored = never.get(element, fieldset.EMPTY)
            if fieldset.SELF in ignored and write_new is _write_leaf:
                continue
            if name in before or (ignored and fieldset.SELF not in ignored):
                written = write_changed(name, after[name], write_new)
            else:
                written = {element: write_new(after[name])}
            # Ignored members are processed as well, because an item in them may have no path element.
            if fieldset.SELF not in ignored:
                fields |= written
        return fields

    return write


def _is_granular_list(atom: Atom | None) -> bool:
    """Return whether the items of a list are owned individually. If such a list replaces null, the list itself is not owned."""
    return isinstance(atom, ListAtom) and not atom.atomic


def _is_granular(atom: Atom) -> bool:
    return isinstance(atom, MapAtom | Untyped) and not atom.atomic


# --- values that are not in the empty object


def _new_value_writer(atom: Atom) -> FieldsWriter:
    if isinstance(atom, Scalar) or atom.atomic:
        return _write_leaf
    return _list_writer(atom) if isinstance(atom, ListAtom) else _map_writer(atom)


def _write_leaf(_value: Any) -> Fields:
    return _LEAF


class _Members(dict[str, tuple[Element, FieldsWriter]]):
    """The path element and the writer of each member of an object; those of declared members are cached on first use."""

    def __init__(self, atom: MapAtom | Untyped) -> None:
        super().__init__()
        self._atom = atom
        self._other: FieldsWriter | None = None

    def __missing__(self, name: str) -> tuple[Element, FieldsWriter]:
        # Created on first use, because types can contain themselves.
        member = self._atom.member(name) or DEDUCED
        if self._atom.declares(name):
            self[name] = FIELD + name, _new_value_writer(member)
            return self[name]
        self._other = self._other or _new_value_writer(member)
        return FIELD + name, self._other


class _Plan(NamedTuple):
    """The steps that write an object with a given combination of members."""

    fields: Fields
    """The fields of all members, sorted, without those of their children."""
    members_with_children: Sequence[tuple[str, Element, FieldsWriter]]
    """The members that can have children."""


def _map_writer(atom: MapAtom | Untyped) -> FieldsWriter:
    members = _Members(atom)
    plans: dict[tuple[str, ...], _Plan] = {}

    def plan(names: tuple[str, ...]) -> _Plan:
        steps = [(name, *members[name]) for name in sorted_in_pieces(names)]
        fields = {fieldset.SELF: _LEAF} | {element: _LEAF for _, element, _ in steps}
        new_plan = _Plan(fields, [step for step in steps if step[2] is not _write_leaf])
        # Structs have few combinations of members, but the keys of maps are arbitrary.
        if sum(map(len, names)) <= _MAX_NAMES_LENGTH:
            if len(plans) >= _PLANS:
                plans.clear()
            plans[names] = new_plan
        return new_plan

    def write(value: Any) -> Fields:
        if not value or value.__class__ is not dict:
            return _LEAF
        names = tuple(value)
        fields, members_with_children = plans.get(names) or plan(names)
        if not members_with_children:
            return fields
        fields = fields.copy()
        for name, element, write_member in members_with_children:
            fields[element] = write_member(value[name])
        return fields

    return write


def _list_writer(atom: ListAtom) -> FieldsWriter:
    write_item = _new_value_writer(atom.items)

    def write(value: Any) -> Fields:
        if not value:
            return _LEAF
        items: Fields = {}
        for element, item in zip(atom.elements(value), value, strict=True):
            # Duplicate items are one path without children.
            items[element] = _LEAF if element in items else write_item(item)
        return {fieldset.SELF: _LEAF} | {
            element: items[element] for element in sorted_in_pieces(items, sort_key)
        }

    return write
