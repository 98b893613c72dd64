"""Normalisation of objects: the tree that results if Go decodes a tree into its structs and encodes it again.

Unknown fields are dropped, empty values are left out or encoded as Go does, values are canonical, and fields are in Go's
order. Each struct is compiled once into a function, which runs at every write. To keep it fast, it does not report why it
failed or which fields it dropped; `decoder_errors.py` does.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from mockube.apimachinery import quantity, timestamps
from mockube.apimachinery.gonumbers import round_trip
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.piecewise import sorted_items
from mockube.apimachinery.schema.model import Field, SchemaType, Shape

from . import base64text, either

Pruned: TypeAlias = list[str]
"""A list that collects the names of the dropped unknown fields."""

Reader: TypeAlias = Callable[[Any, Any, Pruned], Any]
"""A function that normalises a value other than null. Its second argument is the old value: parts that are identical to it
are already normalised and are reused.
"""

_ScalarReader: TypeAlias = Callable[[Any], Any]
"""A function that normalises a scalar other than null."""

_EMPTY: Final[Mapping[str, Any]] = {}

_UNCHANGED_CLASSES: Final = {Shape.STRING: str, Shape.BOOLEAN: bool}
"""The classes of the values that need no normalisation, by shape."""


_INT32: Final = 2**31
_INT64: Final = 2**63

_MAX_TIME_LENGTH: Final = 40
"""The maximum length of cached times; longer ones are rare."""

_NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""Go's zero time, which is encoded as null."""


class WrongKind(Exception):
    """A value has a wrong JSON type for its type, or is a number out of range."""


class _CompiledField(NamedTuple):
    """The compiled form of a field; a tuple, because it is unpacked for every value."""

    position: int
    unchanged_class: type | None
    read: Reader
    drops_empty: bool
    absent_value: Any


class Normaliser:
    """A normaliser for all types, which caches compiled structs by name. Threads can share it."""

    def __init__(self) -> None:
        self._compiled_structs: dict[str, Reader] = {}
        self._nested = {Shape.STRUCT: self._struct, Shape.LIST: self._list, Shape.MAP: self._map}

    def normalise(self, struct: SchemaType, tree: Any, pruned: Pruned, before: Any = None) -> Any:
        """Return the normalised tree, which can share parts with `tree`. Raise `WrongKind` or ValueError. Null is an empty object.

        `before` is the normalised tree that `tree` is a change of, if any.
        """
        return self._struct(struct)({} if tree is None else tree, before, pruned)

    def _reader(self, type_: SchemaType) -> Reader:
        compile_nested = self._either if either.is_either(type_) else self._nested.get(type_.shape)
        if compile_nested is not None:
            return compile_nested(type_)
        read = scalar_reader(type_)
        return lambda value, _before, _pruned: read(value)

    def _struct(self, struct: SchemaType) -> Reader:
        read = self._compiled_structs.get(struct.name)
        if read is None:
            read = self._compiled_structs[struct.name] = self._compile(struct)
        return read

    def _compile_field(self, position: int, field: Field) -> _CompiledField:
        return _CompiledField(
            position=position,
            unchanged_class=_UNCHANGED_CLASSES.get(field.type.shape),
            read=self._reader(field.type),
            drops_empty=drops_empty(field),
            absent_value=absent_value(field),
        )

    def _compile(self, struct: SchemaType) -> Reader:
        fields = struct.fields
        positions = {name: position for position, name in enumerate(fields)}
        always_written = [
            (name, default)
            for name, field in fields.items()
            if (default := absent_value(field)) is not OMITTED
        ]
        compiled_fields: dict[str, _CompiledField] = {}

        def find_field(name: str) -> _CompiledField | None:
            """Compile a field on first use: most are never used, and a struct can contain itself."""
            field = fields.get(name)
            return (
                None
                if field is None
                else compiled_fields.setdefault(name, self._compile_field(positions[name], field))
            )

        return _read_struct(compiled_fields, find_field, positions, always_written)

    def _list(self, type_: SchemaType) -> Reader:
        read, unchanged_class, null_value = self._element(type_)

        def read_list(value: Any, before: Any, pruned: Pruned) -> list[Any]:
            if value.__class__ is not list:
                raise WrongKind
            known_ids = {*map(id, before)} if before.__class__ is list else ()
            return [
                item
                if item.__class__ is unchanged_class or id(item) in known_ids
                else fresh_copy(null_value)
                if item is None
                else read(item, None, pruned)
                for item in value
            ]

        return read_list

    def _map(self, type_: SchemaType) -> Reader:
        read, unchanged_class, null_value = self._element(type_)

        def read_map(value: Any, _: Any, pruned: Pruned) -> dict[str, Any]:
            if value.__class__ is not dict:
                raise WrongKind
            # Go encodes a map sorted by key.
            return {
                key: item
                if item.__class__ is unchanged_class
                else fresh_copy(null_value)
                if item is None
                else read(item, None, pruned)
                for key, item in sorted_items(value)
            }

        return read_map

    def _element(self, type_: SchemaType) -> tuple[Reader, type | None, Any]:
        # Upstream stores objects with bytes as Protocol Buffers, which do not distinguish empty bytes from null.
        absent = "" if type_.items.shape is Shape.BYTES else zero(type_.items)
        return self._reader(type_.items), _UNCHANGED_CLASSES.get(type_.items.shape), absent

    def _either(self, type_: SchemaType) -> Reader:
        choice = either.either(type_)
        readers = {json: self._reader(chosen_type) for json, chosen_type in choice.types.items()}

        def read_either(value: Any, _before: Any, _pruned: Pruned) -> Any:
            read = readers.get(value.__class__)
            if read is not None:
                # Go decodes this value separately and not strictly: its unknown fields are not reported.
                return either.written_value(read(value, None, []))
            if choice.refusal:
                raise ValueError(choice.refusal)
            return None

        return read_either


def _read_struct(
    compiled_fields: Mapping[str, _CompiledField],
    find_field: Callable[[str], _CompiledField | None],
    positions: Mapping[str, int],
    always_written: Sequence[tuple[str, Any]],
) -> Reader:
    """Return the reader of a struct. `find_field` compiles a field; `always_written` has the values of absent fields."""

    def read_struct(value: Any, before: Any, pruned: Pruned) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise WrongKind
        old_values = before if before.__class__ is dict else _EMPTY
        struct = {}
        latest, in_order = -1, True
        for name, item in value.items():
            compiled = compiled_fields.get(name) or find_field(name)
            if compiled is None:
                pruned.append(name)
                continue
            position, unchanged_class, read, omits_empty, field_value = compiled
            if item.__class__ is unchanged_class:
                field_value = item
            elif item is None:
                field_value = fresh_copy(field_value)
            else:
                old_value = old_values.get(name)
                field_value = item if item is old_value else read(item, old_value, pruned)
            if field_value is OMITTED or (omits_empty and not field_value):
                continue
            struct[name] = field_value
            in_order = in_order and position > latest
            latest = position
        for name, default in always_written:
            if name not in struct:
                struct[name] = fresh_copy(default)
                in_order = False
        return (
            struct if in_order else {name: struct[name] for name in sorted(struct, key=positions.__getitem__)}
        )

    return read_struct


# --- absent values: the values that Go encodes for them, or leaves out, determined once per field


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""The value of a field that Go leaves out."""

_EMPTIABLE: Final = frozenset(
    (Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.BYTES, Shape.LIST, Shape.MAP)
)
"""The shapes that can be empty in Go. The others are structs in Go, which are never empty."""

_ZERO: Final = {
    Shape.STRING: "",
    Shape.INTEGER: 0,
    Shape.NUMBER: 0,
    Shape.BOOLEAN: False,
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
}
"""Go's zero values by shape. All other shapes except structs are null."""


_RETAINED_EMPTY: Final = frozenset({"[]v2.HPAScalingPolicy"})
"""The types of lists that are left out only if they are absent: an empty one prevents the default."""


def zero(type_: SchemaType) -> Any:
    """Return the encoded zero value of a type."""
    if type_.shape is not Shape.STRUCT:
        return _ZERO.get(type_.shape)
    written = {name: absent_value(field) for name, field in type_.fields.items()}
    return {name: value for name, value in written.items() if value is not OMITTED}


def absent_value(field: Field) -> Any:
    """Return the value that Go encodes for a field that is null or absent."""
    if field.omit_zero or (field.omit_empty and (field.pointer or field.type.shape in _EMPTIABLE)):
        return OMITTED
    return None if field.pointer else zero(field.type)


def drops_empty(field: Field) -> bool:
    """Return whether Go leaves out the field if its value is false in Python: an empty string or list, 0, no time."""
    if field.type.go in _RETAINED_EMPTY:
        return False
    return not field.pointer and (field.omit_zero or (field.omit_empty and field.type.shape in _EMPTIABLE))


def fresh_copy(written: Any) -> Any:
    """Return a copy of a value of `zero` or `absent_value`, which a tree can own and change."""
    if written.__class__ is not dict:
        return written
    return {name: fresh_copy(value) for name, value in written.items()}


# --- scalars: a reader gets a value other than null, and raises `WrongKind`, or a ValueError with Go's message


def _string(value: Any) -> str:
    if value.__class__ is str:
        return value
    raise WrongKind


def _boolean(value: Any) -> bool:
    if value.__class__ is bool:
        return value
    raise WrongKind


def _int32(value: Any) -> int:
    if value.__class__ is int and -_INT32 <= value < _INT32:
        return value
    raise WrongKind


def _int64(value: Any) -> int:
    if value.__class__ is int and -_INT64 <= value < _INT64:
        return value
    raise WrongKind


def _byte(value: Any) -> int:
    if value.__class__ is int and 0 <= value < 256:
        return value
    raise WrongKind


def _number(value: Any) -> float | int:
    """Return a float as Go encodes it: without a fraction and an exponent if it is whole."""
    if value.__class__ is not int and value.__class__ is not float:
        raise WrongKind
    return round_trip(float(value))


def _int_or_string(value: Any) -> int | str:
    return value if value.__class__ is str else _int32(value)


@memoize(16384, max_length=32)
def _canonical_quantity(text: str) -> str:
    return str(quantity.parse(text.strip(quantity.SPACE)))


def _quantity(value: Any) -> str:
    return _canonical_quantity(value) if value.__class__ is str else str(quantity.from_json(value))


def _bytes(value: Any) -> str:
    """Return the canonical base64 of a string, or of a list of numbers, which Go also accepts."""
    if value.__class__ is list:
        return base64text.encode(bytes(0 if item is None else _byte(item) for item in value))
    return base64text.canonical(_string(value))


@memoize(4096, max_length=_MAX_TIME_LENGTH)
def _canonical_time(text: str) -> str | None:
    time = timestamps.parse_time(text)
    return timestamps.format_time(time) if time != _NO_TIME else None


@memoize(4096, max_length=_MAX_TIME_LENGTH)
def _canonical_micro_time(text: str) -> str | None:
    time = timestamps.parse_micro_time(text)
    return timestamps.format_micro_time(time) if time != _NO_TIME else None


def _time(value: Any) -> str | None:
    return _canonical_time(_string(value))


def _micro_time(value: Any) -> str | None:
    return _canonical_micro_time(_string(value))


def _any(value: Any) -> Any:
    return value


_READERS: Final[Mapping[Shape, _ScalarReader]] = {
    Shape.STRING: _string,
    Shape.BOOLEAN: _boolean,
    Shape.NUMBER: _number,
    Shape.QUANTITY: _quantity,
    Shape.INT_OR_STRING: _int_or_string,
    Shape.BYTES: _bytes,
    Shape.TIME: _time,
    Shape.MICRO_TIME: _micro_time,
    Shape.ANY: _any,
}
_INTEGERS: Final[Mapping[str, _ScalarReader]] = {"int32": _int32, "int64": _int64, "uint8": _byte}


def scalar_reader(type_: SchemaType) -> _ScalarReader:
    """Return the function that normalises the scalars of a type."""
    return _INTEGERS[type_.go] if type_.shape is Shape.INTEGER else _READERS[type_.shape]
