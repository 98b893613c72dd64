"""What Go's decoder would complain about in a document, to the letter and in its order.

The slow half of decoding: it runs only if something is wrong, and then walks the document again as Go does. Go
keeps the first wrong kind of JSON and reads on; it gives up at once where a type reads its own JSON; and if nothing
of that sort was wrong, it lists the fields that it does not know and those that come twice.

A document is a tree, or what `document.py` makes of a text, which alone can have fields that come twice.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import gotext
from mockube.apimachinery.paths import format_step
from mockube.apimachinery.schema import either
from mockube.apimachinery.schema.document import Literal, Members
from mockube.apimachinery.schema.model import Field, Shape, Type
from mockube.apimachinery.schema.normal import WrongKind, scalar_reader

MAX_STRICT_ERRORS: Final = 100

UNTYPED: Final = Type(shape=Shape.ANY, go="interface {}")
"""The type of a document of which nothing is known, but that no field of it should come twice."""

_KINDS: Final = {
    dict: "object",
    Members: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    Literal: "number",
}
"""What Go calls a JSON value, by the class that it has here."""

_READS_ITSELF: Final = {
    Shape.QUANTITY: "",
    Shape.INT_OR_STRING: "int32",
    Shape.TIME: "string",
    Shape.MICRO_TIME: "string",
}
"""The types that read their own JSON, and the Go type that each first reads it into."""

_SHOWS_NUMBER: Final = frozenset((Shape.INTEGER, Shape.NUMBER, Shape.INT_OR_STRING))
"""Types that take numbers: Go's error names the number that does not fit."""

_READ_AS: Final = {
    ("[]uint8", "array"): Type(shape=Shape.LIST, go="[]uint8", element=Type(shape=Shape.INTEGER, go="uint8")),
    (UNTYPED.go, "object"): Type(shape=Shape.MAP, element=UNTYPED),
    (UNTYPED.go, "array"): Type(shape=Shape.LIST, element=UNTYPED),
}
"""The Go types that read one kind of JSON as another type."""


class Faults(Struct, frozen=True, kw_only=True):
    error: str = ""
    """Why the document cannot be decoded; then there is no other error."""
    strict: tuple[str, ...] = ()
    """What strict decoding refuses, at most `MAX_STRICT_ERRORS` of it."""


class _Location(Struct, frozen=True):
    """Where the walk is: for type errors by Go's fields, for strict errors by the document's path."""

    struct: str = ""
    fields: tuple[str, ...] = ()
    path: str = ""

    def field(self, struct: Type, field: Field) -> "_Location":
        fields = (*self.fields, *field.embedded, field.name)
        return _Location(struct.go.rpartition(".")[2], fields, self.member(field.name))

    def key(self, key: str) -> "_Location":
        return _Location(self.struct, self.fields, self.member(key))

    def index(self, index: int) -> "_Location":
        return _Location(self.struct, self.fields, f"{self.path}[{index}]")

    def member(self, name: str) -> str:
        # Below a long key there may be many places, each with a path.
        step = format_step(name)
        return f"{self.path}.{step}" if self.path else step


class _TypeError(Struct, frozen=True):
    value: str
    go: str
    struct: str = ""
    fields: tuple[str, ...] = ()

    def at(self, location: _Location) -> "_TypeError":
        return _TypeError(self.value, self.go, location.struct, location.fields + self.fields)

    def __str__(self) -> str:
        into = f"struct field {self.struct}.{'.'.join(self.fields)}" if self.fields else "value"
        return f"json: cannot unmarshal {self.value} into Go {into} of type {self.go}"


_Complaint: TypeAlias = _TypeError | str


class _GaveUp(Exception):
    def __init__(self, complaint: _Complaint, location: _Location) -> None:
        self.complaint = _at(complaint, location)


def _at(complaint: _Complaint, location: _Location) -> _Complaint:
    return complaint.at(location) if isinstance(complaint, _TypeError) else complaint


def find(of: Type, document: Any) -> Faults:
    walk = _Walk()
    error = walk.complaint(of, document)
    return Faults(strict=tuple(walk.strict)) if error is None else Faults(error=str(error))


class _Walk:
    """One pass over a document."""

    def __init__(self) -> None:
        self.strict: dict[str, None] = {}
        self._first: _Complaint | None = None

    def complaint(self, of: Type, document: Any) -> _Complaint | None:
        """What Go would report, or None if it would take the document."""
        try:
            self._value(of, document, _Location())
        except _GaveUp as end:
            return end.complaint
        return self._first

    def _value(self, of: Type, value: Any, location: _Location) -> None:
        """Null fits everywhere."""
        if value is None:
            return
        json = _KINDS[value.__class__]
        of = _READ_AS.get((of.go, json), of)
        inside = {
            (Shape.STRUCT, "object"): self._struct,
            (Shape.MAP, "object"): self._map,
            (Shape.LIST, "array"): self._list,
        }.get((of.shape, json))
        if inside is not None:
            inside(of, value, location)
        elif of.shape in (Shape.STRUCT, Shape.MAP, Shape.LIST):
            self._save(_TypeError(json, of.go), location)
        elif either.is_either(of):
            self._either(of, value, location)
        else:
            self._scalar(of, value, location)

    def _struct(self, of: Type, value: Any, location: _Location) -> None:
        seen: set[str] = set()
        for name, item in _members(value):
            field = of.fields.get(name)
            if field is None:
                self._save_strict("unknown", location.member(name))
                continue
            self._check_duplicate(name, seen, location)
            self._value(field.type, item, location.field(of, field))

    def _map(self, of: Type, value: Any, location: _Location) -> None:
        seen: set[str] = set()
        for key, item in _members(value):
            self._check_duplicate(key, seen, location)
            self._value(of.items, item, location.key(key))

    def _list(self, of: Type, value: list[Any], location: _Location) -> None:
        for index, item in enumerate(value):
            self._value(of.items, item, location.index(index))

    def _either(self, of: Type, value: Any, location: _Location) -> None:
        """What is in there Go decodes anew, and not strictly."""
        choice = either.either(of)
        chosen = choice.types.get(dict if value.__class__ is Members else value.__class__)
        if chosen is not None:
            complaint = _Walk().complaint(chosen, value)
            if complaint is not None:
                raise _GaveUp(complaint, location)
        elif choice.refusal:
            raise _GaveUp(choice.refusal, location)

    def _scalar(self, of: Type, value: Any, location: _Location) -> None:
        try:
            scalar_reader(of)(value.number() if isinstance(value, Literal) else value)
        except WrongKind:
            complaint: _Complaint = _TypeError(_describe(value, of), _READS_ITSELF.get(of.shape, of.go))
        except ValueError as error:
            complaint = str(error)
        else:
            return
        if of.shape in _READS_ITSELF:
            raise _GaveUp(complaint, location)
        self._save(complaint, location)

    def _save(self, complaint: _Complaint, location: _Location) -> None:
        if self._first is None:
            self._first = _at(complaint, location)

    def _check_duplicate(self, name: str, seen: set[str], location: _Location) -> None:
        if name in seen:
            self._save_strict("duplicate", location.member(name))
        seen.add(name)

    def _save_strict(self, problem: str, path: str) -> None:
        if len(self.strict) < MAX_STRICT_ERRORS:
            self.strict[f"{problem} field {gotext.quote(path)}"] = None


def _members(value: dict[str, Any] | Members) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else value


def _describe(value: Any, of: Type) -> str:
    json = _KINDS[value.__class__]
    if json != "number" or of.shape not in _SHOWS_NUMBER:
        return json
    return f"number {value if isinstance(value, Literal) else gotext.marshal(value)}"
