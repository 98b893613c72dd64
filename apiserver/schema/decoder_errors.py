"""The exact errors of Go's decoder for a document, in its order.

This is the slow part of decoding: it runs only if there is an error, and then walks the document as Go does. Go records
the first value of a wrong type and continues, but stops at an error of a type with its own unmarshaler. Without such
errors, strict decoding reports the unknown and the duplicate fields.

A document is a tree, or the result of `document.parse`; only the latter can have duplicate fields.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import gotext
from mockube.apimachinery.paths import format_step
from mockube.apimachinery.schema.model import Field, SchemaType, Shape

from . import either
from .document import Members, NumberLiteral
from .normal import WrongKind, scalar_reader

MAX_STRICT_ERRORS: Final = 100
"""The errors after which sigs.k8s.io/json stops to collect them (kubernetes_patch.go)."""

UNTYPED: Final = SchemaType(shape=Shape.ANY, go="interface {}")
"""The type of a document without a schema, in which only duplicate fields are errors."""

_KINDS: Final = {
    dict: "object",
    Members: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    NumberLiteral: "number",
}
"""Go's names of the JSON values, by their classes in Python."""

_UNMARSHALED_AS: Final = {
    Shape.QUANTITY: "",
    Shape.INT_OR_STRING: "int32",
    Shape.TIME: "string",
    Shape.MICRO_TIME: "string",
}
"""The types with their own unmarshaler, and the Go type that it first decodes into."""

_NUMBER_IN_ERROR: Final = frozenset((Shape.INTEGER, Shape.NUMBER, Shape.INT_OR_STRING))
"""The types of numbers. Go's error for them contains the number that does not fit."""

_READ_AS: Final = {
    ("[]uint8", "array"): SchemaType(
        shape=Shape.LIST, go="[]uint8", element=SchemaType(shape=Shape.INTEGER, go="uint8")
    ),
    (UNTYPED.go, "object"): SchemaType(shape=Shape.MAP, element=UNTYPED),
    (UNTYPED.go, "array"): SchemaType(shape=Shape.LIST, element=UNTYPED),
}
"""The Go types that decode one kind of JSON value as another type."""


class DecodingErrors(Struct, frozen=True, kw_only=True):
    error: str = ""
    """The error if the document cannot be decoded; then there are no strict errors."""
    strict: tuple[str, ...] = ()
    """The errors of strict decoding, at most `MAX_STRICT_ERRORS`."""


class _Location(Struct, frozen=True):
    """A position in the document: Go's struct and fields for type errors, the document's path for strict errors."""

    struct: str = ""
    fields: tuple[str, ...] = ()
    path: str = ""

    def field(self, struct: SchemaType, field: Field) -> "_Location":
        fields = (*self.fields, *field.embedded, field.name)
        return _Location(struct.go.rpartition(".")[2], fields, self.member(field.name))

    def key(self, key: str) -> "_Location":
        return _Location(self.struct, self.fields, self.member(key))

    def index(self, index: int) -> "_Location":
        return _Location(self.struct, self.fields, f"{self.path}[{index}]")

    def member(self, name: str) -> str:
        # There can be many paths below a long key.
        step = format_step(name)
        return f"{self.path}.{step}" if self.path else step


class _TypeError(Struct, frozen=True):
    """Go's json.UnmarshalTypeError."""

    value: str
    go: str
    struct: str = ""
    fields: tuple[str, ...] = ()

    def with_location(self, location: _Location) -> "_TypeError":
        return _TypeError(self.value, self.go, location.struct, location.fields + self.fields)

    def __str__(self) -> str:
        into = f"struct field {self.struct}.{'.'.join(self.fields)}" if self.fields else "value"
        return f"json: cannot unmarshal {self.value} into Go {into} of type {self.go}"


_Error: TypeAlias = _TypeError | str


class _DecodingStopped(Exception):
    """An unmarshaler of a type failed: Go stops here."""

    def __init__(self, error: _Error, location: _Location) -> None:
        self.error = _with_location(error, location)


def _with_location(error: _Error, location: _Location) -> _Error:
    return error.with_location(location) if isinstance(error, _TypeError) else error


def find(type_: SchemaType, document: Any) -> DecodingErrors:
    """Return the errors of a document."""
    walk = _Walk()
    error = walk.error(type_, document)
    return DecodingErrors(strict=tuple(walk.strict)) if error is None else DecodingErrors(error=str(error))


class _Walk:
    """One pass over a document."""

    def __init__(self) -> None:
        self.strict: dict[str, None] = {}
        self._first_error: _Error | None = None

    def error(self, type_: SchemaType, document: Any) -> _Error | None:
        """Return the error that Go reports, or None if it accepts the document."""
        try:
            self._value(type_, document, _Location())
        except _DecodingStopped as end:
            return end.error
        return self._first_error

    def _value(self, type_: SchemaType, value: Any, location: _Location) -> None:
        """Check a value; null is valid for every type."""
        if value is None:
            return
        json = _KINDS[value.__class__]
        type_ = _READ_AS.get((type_.go, json), type_)
        visit_nested = {
            (Shape.STRUCT, "object"): self._struct,
            (Shape.MAP, "object"): self._map,
            (Shape.LIST, "array"): self._list,
        }.get((type_.shape, json))
        if visit_nested is not None:
            visit_nested(type_, value, location)
        elif type_.shape in (Shape.STRUCT, Shape.MAP, Shape.LIST):
            self._save_error(_TypeError(json, type_.go), location)
        elif either.is_either(type_):
            self._either(type_, value, location)
        else:
            self._scalar(type_, value, location)

    def _struct(self, type_: SchemaType, value: Any, location: _Location) -> None:
        seen: set[str] = set()
        for name, item in _members(value):
            field = type_.fields.get(name)
            if field is None:
                self._save_strict_error("unknown", location.member(name))
                continue
            self._check_duplicate(name, seen, location)
            self._value(field.type, item, location.field(type_, field))

    def _map(self, type_: SchemaType, value: Any, location: _Location) -> None:
        seen: set[str] = set()
        for key, item in _members(value):
            self._check_duplicate(key, seen, location)
            self._value(type_.items, item, location.key(key))

    def _list(self, type_: SchemaType, value: list[Any], location: _Location) -> None:
        for index, item in enumerate(value):
            self._value(type_.items, item, location.index(index))

    def _either(self, type_: SchemaType, value: Any, location: _Location) -> None:
        """Check a schema or another value. Go decodes it separately and not strictly."""
        choice = either.either(type_)
        chosen_type = choice.types.get(dict if value.__class__ is Members else value.__class__)
        if chosen_type is not None:
            error = _Walk().error(chosen_type, value)
            if error is not None:
                raise _DecodingStopped(error, location)
        elif choice.refusal:
            raise _DecodingStopped(choice.refusal, location)

    def _scalar(self, type_: SchemaType, value: Any, location: _Location) -> None:
        try:
            scalar_reader(type_)(value.number() if isinstance(value, NumberLiteral) else value)
        except WrongKind:
            error: _Error = _TypeError(_describe(value, type_), _UNMARSHALED_AS.get(type_.shape, type_.go))
        except ValueError as problem:
            error = str(problem)
        else:
            return
        if type_.shape in _UNMARSHALED_AS:
            raise _DecodingStopped(error, location)
        self._save_error(error, location)

    def _save_error(self, error: _Error, location: _Location) -> None:
        if self._first_error is None:
            self._first_error = _with_location(error, location)

    def _check_duplicate(self, name: str, seen: set[str], location: _Location) -> None:
        if name in seen:
            self._save_strict_error("duplicate", location.member(name))
        seen.add(name)

    def _save_strict_error(self, problem: str, path: str) -> None:
        if len(self.strict) < MAX_STRICT_ERRORS:
            self.strict[f"{problem} field {gotext.quote(path)}"] = None


def _members(value: dict[str, Any] | Members) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else value


def _describe(value: Any, type_: SchemaType) -> str:
    json = _KINDS[value.__class__]
    if json != "number" or type_.shape not in _NUMBER_IN_ERROR:
        return json
    return f"number {value if isinstance(value, NumberLiteral) else gotext.marshal(value)}"
