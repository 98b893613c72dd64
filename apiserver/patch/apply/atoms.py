"""Atoms: the merge rules of types, as structured-merge-diff's schema.Atom.

An atom is a map, a list or a scalar. A value without a schema has an `Untyped` atom, which is deduced from the value:
objects merge member by member, and lists are replaced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

from mockube.apimachinery import gotext
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.schema.model import Field, SchemaType, Shape

from .elements import FIELD, INDEX, KEY, Element, format_element, of_keys, of_value, quote_text

_NAMES: Final = 1024
_MAX_NAME_LENGTH: Final = 100
"""The size of the cache of elements of each list with a single key, and the maximum length of a cached key."""

RAW_EXTENSION: Final = "runtime.RawExtension"
"""Arbitrary JSON with one owner for the whole value. All other arbitrary JSON is owned member by member."""


class TypedError(ValueError):
    """A value does not conform to its type. The message is the library's: one or several errors with their paths."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        lines = [f"{path}: {message}" if path else message for path, message in errors]
        super().__init__(lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]))


class Unaddressable(Exception):
    """An item of a list has no path element."""


class Scalar(Enum):
    """The atoms of primitive values."""

    NUMERIC = "numeric"
    STRING = "string"
    BOOLEAN = "boolean"
    UNTYPED = "untyped"


class MapAtom:
    """The atom of an object. An atomic one has one owner; otherwise each member has its own."""

    __slots__ = ("_atoms", "_element", "_fields", "atomic")

    def __init__(self, kind: SchemaType) -> None:
        self.atomic = kind.map_type == "atomic"
        self._fields = kind.fields
        self._element = None if kind.element is None else atom_of_type(kind.element)
        self._atoms: dict[str, Atom] = {}

    def declares(self, name: str) -> bool:
        """Return whether a member is a field of a struct, rather than a key of a map."""
        return name in self._fields

    def member(self, name: str) -> "Atom | None":
        """Return the atom of a member; None if the type has no such member."""
        if name in self._atoms:
            return self._atoms[name]
        if name not in self._fields:
            return self._element
        # Created on first use, because types can contain themselves.
        return self._atoms.setdefault(name, atom_of_type(self._fields[name].type))


class ListAtom:
    """The atom of a list. An atomic one has one owner; otherwise each item has its own. Keys or values identify items."""

    __slots__ = ("_defaults", "_element_by_single_key", "atomic", "items", "keys")

    def __init__(self, kind: SchemaType) -> None:
        self.atomic = kind.list_type == "atomic"
        self.items = atom_of_type(kind.items)
        self.keys = kind.map_keys if kind.list_type == "map" else ()
        self._defaults = _defaults(self.keys, kind.items.fields)
        self._element_by_single_key = _element_by_single_key(self.keys[0]) if len(self.keys) == 1 else None

    def element(self, item: Any) -> Element:
        """Return the path element of an item; raise `Unaddressable` if there is none."""
        if (
            self._element_by_single_key is not None
            and type(item) is dict
            and type(name := item.get(self.keys[0])) is str
        ):
            return self._element_by_single_key(name)
        return self._element_by_keys(item) if self.keys else _element_by_value(item)

    def elements(self, items: Sequence[Any]) -> list[Element]:
        """Return the path elements of all items; raise `TypedError` if this is not a list, or an item has no path element."""
        if not isinstance(items, list | tuple):
            raise TypedError([("", f"expected list, got &{{{gofmt.format_verb_v(items)}}}")])
        steps = []
        errors = []
        for position, item in enumerate(items):
            try:
                steps.append(self.element(item))
            except Unaddressable as error:
                errors.append(("", f"element {position}: {error}"))
        if errors:
            raise TypedError(errors)
        return steps

    def _element_by_keys(self, item: Any) -> Element:
        if item is None:
            raise Unaddressable("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise Unaddressable("associative list with keys may not have non-map elements")
        named = self._defaults | {key: item[key] for key in self.keys if key in item}
        if not named:
            keys = " ".join(map(gotext.quote, self.keys))
            raise Unaddressable(
                f"associative list with keys has an element that omits all key fields [{keys}]"
                " (and doesn't have default values for any key fields)"
            )
        return of_keys(named)


def _element_by_single_key(key: str) -> Callable[[str], Element]:
    """Return a function from the value of a list's single key, a string, to the path element."""
    prefix = f"{KEY}{{{quote_text(key)}:"
    return memoize(_NAMES, max_length=_MAX_NAME_LENGTH)(lambda name: f"{prefix}{quote_text(name)}}}")


def _defaults(keys: Sequence[str], fields: Mapping[str, Field]) -> dict[str, Any]:
    defaults = {key: fields[key].default for key in keys if key in fields}
    return {key: default for key, default in defaults.items() if default is not None}


def _element_by_value(item: Any) -> Element:
    if isinstance(item, dict):
        raise Unaddressable("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise Unaddressable("not supported: associative list with lists as elements")
    if item is None:
        raise Unaddressable("associative list without keys has an element that's an explicit null")
    return of_value(item)


class Untyped:
    """The atom of a value without a schema. An object is owned member by member, or as a whole if it is atomic."""

    __slots__ = ("atomic",)

    def __init__(self, *, atomic: bool) -> None:
        self.atomic = atomic

    def declares(self, _name: str) -> bool:
        return False

    def member(self, _name: str) -> "Untyped":
        return self


DEDUCED: Final = Untyped(atomic=False)
RAW: Final = Untyped(atomic=True)

Atom: TypeAlias = MapAtom | ListAtom | Scalar | Untyped

_SCALARS: Final[Mapping[Shape, Scalar]] = {
    Shape.STRING: Scalar.STRING,
    Shape.BYTES: Scalar.STRING,
    Shape.INTEGER: Scalar.NUMERIC,
    Shape.NUMBER: Scalar.NUMERIC,
    Shape.BOOLEAN: Scalar.BOOLEAN,
    Shape.QUANTITY: Scalar.UNTYPED,
    Shape.TIME: Scalar.UNTYPED,
    Shape.MICRO_TIME: Scalar.UNTYPED,
    Shape.SCALAR: Scalar.UNTYPED,
}


def atom_of_type(kind: SchemaType | None) -> Atom:
    """Return the atom of a type; for None, everything is deduced from the value."""
    if kind is None:
        return DEDUCED
    if kind.shape in (Shape.ANY, Shape.INT_OR_STRING):  # OpenAPI has no type for either
        return RAW if kind.go == RAW_EXTENSION else DEDUCED
    if kind.shape in (Shape.STRUCT, Shape.MAP):
        return MapAtom(kind)
    return ListAtom(kind) if kind.shape is Shape.LIST else _SCALARS[kind.shape]


def child_atom(atom: Atom | None, element: Element) -> Atom | None:
    """Return the atom of a child by its path element; None if the type has no such child."""
    if isinstance(atom, MapAtom | Untyped) and element.startswith(FIELD):
        return atom.member(element.removeprefix(FIELD))
    return atom.items if isinstance(atom, ListAtom) else None


def atomic_paths(atom: Atom, value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the atomic values. Values below the keys of a map, rather than in fields, are not visited."""
    if isinstance(value, dict) and isinstance(atom, MapAtom | Untyped):
        if atom.atomic:
            yield path
        for name, item in value.items():
            member = atom.member(name) if atom.declares(name) else None
            if member is not None:
                yield from atomic_paths(member, item, path + format_element(FIELD + name))
    elif isinstance(value, list) and isinstance(atom, ListAtom | Untyped):
        if isinstance(atom, Untyped) or atom.atomic:
            yield path
        items = RAW if isinstance(atom, Untyped) else atom.items
        for index, item in enumerate(value):
            yield from atomic_paths(items, item, path + format_element(f"{INDEX}{index}"))
