"""What the creator of an object owns: its `fieldsV1`, written in one walk.

The result is that of comparing the object with the empty one, removing what cannot be owned, and encoding the rest.
Most of an object is nowhere in the empty one: every place of it is owned. The functions that write it are made once
for each resource, and then cost little.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.patch.apply.atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar, Untyped
from mockube.apimachinery.patch.apply.compare import compare
from mockube.apimachinery.patch.apply.elements import FIELD, Element, sort_key
from mockube.apimachinery.patch.apply.fieldset import EMPTY, SELF, FieldSet, difference, of_fields, union
from mockube.apimachinery.patch.apply.fieldsv1 import encode
from mockube.apimachinery.patch.apply.managers import NEVER_OWNED, Json, Versions
from mockube.apimachinery.pieces import sorted_in_pieces

Fields: TypeAlias = dict[str, Any]
"""A set of fields as `fieldsV1` has it, in order. Parts are shared, and so never changed."""

Write: TypeAlias = Callable[[Any], Fields]
"""Writes the fields of a value; `TypedError` if an item of a list has no keys to be found by."""

_LEAF: Final[Fields] = {}

_PLANS: Final = 256
_MAX_NAMES_LENGTH: Final = 1000
"""Combinations of members of one type whose plans are cached, and the length of all their names."""

_SPEC: Final = "spec"
_SPECS: Final = 40
_MAX_SPEC_BYTES: Final = 16 * 1024
"""Specs of one kind whose fields are cached, and the length of their texts."""

_NEVER: Final = difference(NEVER_OWNED, of_fields("metadata"))
"""The empty object has metadata, which is therefore never written as a whole."""


def writer(versions: Versions, empty: Json) -> Write:
    """What writes the fields of a new object."""
    assert "metadata" in empty
    own = versions.own
    never = union(_NEVER, versions.reset_fields.get(own, EMPTY))
    write = _write_of_shared(versions.atoms[own], empty, never)
    # Of many objects that are made alike, such as the pods of a ReplicaSet, the spec is the same.
    write_spec = memoize(_SPECS, max_length=_MAX_SPEC_BYTES)(lambda text: write({_SPEC: orjson.loads(text)}))

    def write_object(new: Json) -> Fields:
        tree = versions.to_version(own, new)
        if _SPEC not in tree:
            return write(tree)
        rest = {name: item for name, item in tree.items() if name != _SPEC}
        text = orjson.dumps(tree[_SPEC])
        is_short = len(text) <= _MAX_SPEC_BYTES
        fields = write(rest) | (write_spec(text) if is_short else write({_SPEC: tree[_SPEC]}))
        return {element: fields[element] for element in sorted(fields)}

    return write_object


def _write_of_shared(atom: Atom, before: Json, never: FieldSet) -> Write:
    """Of an object that the empty one has, too, maybe with something in it."""
    assert isinstance(atom, MapAtom | Untyped)
    members = _Members(atom)
    shared = {
        name: _write_of_shared(member, was, never.get(FIELD + name, EMPTY))
        for name, was in before.items()
        if isinstance(was, dict) and _is_granular(member := atom.member(name) or DEDUCED)
    }
    list_names = {
        name for name, was in before.items() if was is None and _is_granular_list(atom.member(name))
    }

    def write_changed(name: str, item: Any, write_new: Write) -> Fields:
        """The member with its fields, if it has any."""
        element = FIELD + name
        if name in shared and isinstance(item, dict):
            below = shared[name](item)
            return {element: below} if below else below
        if name in list_names and item and isinstance(item, list):
            below = {**write_new(item)}
            del below[SELF]
            return {element: below}
        old = {name: before[name]} if name in before else {}
        return encode(compare(atom, old, {name: item}).exclude(never).changed_fields)

    def write(after: Json) -> Fields:
        fields: Fields = {}
        for name in sorted_in_pieces(after):
            element, write_new = members[name]
            ignored = never.get(element, EMPTY)
            if SELF in ignored and write_new is _leaf:
                continue
            if name in before or (ignored and SELF not in ignored):
                written = write_changed(name, after[name], write_new)
            else:
                written = {element: write_new(after[name])}
            # What is ignored is looked at all the same: there may be no name for something in it.
            if SELF not in ignored:
                fields |= written
        return fields

    return write


def _is_granular_list(atom: Atom | None) -> bool:
    """Return whether it is a list with places of its own; if it replaces null, the list itself is no place."""
    return isinstance(atom, ListAtom) and not atom.atomic


def _is_granular(atom: Atom) -> bool:
    return isinstance(atom, MapAtom | Untyped) and not atom.atomic


# --- what the empty object does not have


def _write_of_new(atom: Atom) -> Write:
    if isinstance(atom, Scalar) or atom.atomic:
        return _leaf
    return _items(atom) if isinstance(atom, ListAtom) else _object(atom)


def _leaf(_value: Any) -> Fields:
    return _LEAF


class _Members(dict[str, tuple[Element, Write]]):
    """The step to each member of an object, and what writes it; declared ones are cached on first use."""

    def __init__(self, atom: MapAtom | Untyped) -> None:
        super().__init__()
        self._atom = atom
        self._other: Write | None = None

    def __missing__(self, name: str) -> tuple[Element, Write]:
        # Types may contain themselves, so that nothing is made before it is needed.
        member = self._atom.member(name) or DEDUCED
        if self._atom.declares(name):
            self[name] = FIELD + name, _write_of_new(member)
            return self[name]
        self._other = self._other or _write_of_new(member)
        return FIELD + name, self._other


class _Plan(NamedTuple):
    """How an object is written that has certain members."""

    fields: Fields
    """All its steps in order, as if there were nothing below them."""
    deeper: Sequence[tuple[str, Element, Write]]
    """The members below which there may be more."""


def _object(atom: MapAtom | Untyped) -> Write:
    members = _Members(atom)
    plans: dict[tuple[str, ...], _Plan] = {}

    def plan(names: tuple[str, ...]) -> _Plan:
        steps = [(name, *members[name]) for name in sorted_in_pieces(names)]
        fields = {SELF: _LEAF} | {element: _LEAF for _, element, _ in steps}
        new_plan = _Plan(fields, [step for step in steps if step[2] is not _leaf])
        # Members occur in few combinations, but the keys of maps are arbitrary.
        if sum(map(len, names)) <= _MAX_NAMES_LENGTH:
            if len(plans) >= _PLANS:
                plans.clear()
            plans[names] = new_plan
        return new_plan

    def write(value: Any) -> Fields:
        if not value or value.__class__ is not dict:
            return _LEAF
        names = tuple(value)
        fields, deeper = plans.get(names) or plan(names)
        if not deeper:
            return fields
        fields = fields.copy()
        for name, element, write_member in deeper:
            fields[element] = write_member(value[name])
        return fields

    return write


def _items(atom: ListAtom) -> Write:
    write_item = _write_of_new(atom.items)

    def write(value: Any) -> Fields:
        if not value:
            return _LEAF
        items: Fields = {}
        for element, item in zip(atom.elements(value), value, strict=True):
            # What is there more than once is one place, and nothing below it.
            items[element] = _LEAF if element in items else write_item(item)
        return {SELF: _LEAF} | {element: items[element] for element in sorted_in_pieces(items, sort_key)}

    return write
