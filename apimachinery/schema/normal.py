"""Objects as kube-apiserver keeps them: a tree that Go would decode into its structs and encode again.

What the types do not know is gone, what is empty is left out or written as Go does, values are in canonical form, and
fields are in Go's order. Each struct is compiled into a function once; that of a whole kind runs at every write.
Why a tree was refused, and which fields went, is for `faults.py` to find out: here it costs nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from mockube.apimachinery import quantity, timestamps
from mockube.apimachinery.gonumbers import round_trip
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.pieces import sorted_items
from mockube.apimachinery.schema import base64text, either
from mockube.apimachinery.schema.model import Field, Shape, Type

Pruned: TypeAlias = list[str]
"""Takes the name of each field that was not known, so that one can see whether there were any."""

Read: TypeAlias = Callable[[Any, Any, Pruned], Any]
"""What Go would write of a value that is not null, beside what was there before: the parts that are that very object
are in this form already, and not read again.
"""

_ReadScalar: TypeAlias = Callable[[Any], Any]
"""What Go would write of a value that is not null and has no structure."""

_EMPTY: Final[Mapping[str, Any]] = {}

_TAKEN_AS_IT_IS: Final = {Shape.STRING: str, Shape.BOOLEAN: bool}
"""Values of these need no reading if they are of that class."""


_INT32: Final = 2**31
_INT64: Final = 2**63

_MAX_TIME_LENGTH: Final = 40
"""The maximum length of a time that is cached: longer ones are rare."""

_NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""What Go holds where no time was stored, and writes as null."""


class WrongKind(Exception):
    """The value is of another kind of JSON than the type, or a number out of its range."""


class _Row(NamedTuple):
    """What is done with a field; a tuple, as it is taken apart for every value."""

    position: int
    plain: type | None
    read: Read
    drops_empty: bool
    absent_value: Any


class Normaliser:
    """`normalise` for all types; what it compiled it keeps, by the name of the struct. Threads may share it."""

    def __init__(self) -> None:
        self._structs: dict[str, Read] = {}
        self._nested = {Shape.STRUCT: self._struct, Shape.LIST: self._list, Shape.MAP: self._map}

    def normalise(self, struct: Type, tree: Any, pruned: Pruned, before: Any = None) -> Any:
        """A new tree, which may share parts with `tree`; or `WrongKind` or ValueError. Null is an empty object.

        `before` is a tree in this form from which `tree` was made, if there is one.
        """
        return self._struct(struct)({} if tree is None else tree, before, pruned)

    def _reader(self, of: Type) -> Read:
        compile_nested = self._either if either.is_either(of) else self._nested.get(of.shape)
        if compile_nested is not None:
            return compile_nested(of)
        read = scalar_reader(of)
        return lambda value, _before, _pruned: read(value)

    def _struct(self, struct: Type) -> Read:
        read = self._structs.get(struct.name)
        if read is None:
            read = self._structs[struct.name] = self._compile(struct)
        return read

    def _row(self, position: int, field: Field) -> _Row:
        return _Row(
            position=position,
            plain=_TAKEN_AS_IT_IS.get(field.type.shape),
            read=self._reader(field.type),
            drops_empty=drops_empty(field),
            absent_value=absent_value(field),
        )

    def _compile(self, struct: Type) -> Read:
        fields = struct.fields
        positions = {name: position for position, name in enumerate(fields)}
        always = [
            (name, default)
            for name, field in fields.items()
            if (default := absent_value(field)) is not OMITTED
        ]
        rows: dict[str, _Row] = {}

        def find(name: str) -> _Row | None:
            """Return a row, created when its field is first seen: most fields never are, and a struct may contain itself."""
            field = fields.get(name)
            return None if field is None else rows.setdefault(name, self._row(positions[name], field))

        return _read_struct(rows, find, positions, always)

    def _list(self, of: Type) -> Read:
        read, plain, null = self._element(of)

        def read_list(value: Any, before: Any, pruned: Pruned) -> list[Any]:
            if value.__class__ is not list:
                raise WrongKind
            known_ids = {*map(id, before)} if before.__class__ is list else ()
            return [
                item
                if item.__class__ is plain or id(item) in known_ids
                else fresh_copy(null)
                if item is None
                else read(item, None, pruned)
                for item in value
            ]

        return read_list

    def _map(self, of: Type) -> Read:
        read, plain, null = self._element(of)

        def read_map(value: Any, _: Any, pruned: Pruned) -> dict[str, Any]:
            if value.__class__ is not dict:
                raise WrongKind
            # Go writes a map in the order of its keys.
            return {
                key: item
                if item.__class__ is plain
                else fresh_copy(null)
                if item is None
                else read(item, None, pruned)
                for key, item in sorted_items(value)
            }

        return read_map

    def _element(self, of: Type) -> tuple[Read, type | None, Any]:
        # Protocol Buffers, in which upstream stores objects with bytes, do not distinguish no bytes from null.
        absent = "" if of.items.shape is Shape.BYTES else zero(of.items)
        return self._reader(of.items), _TAKEN_AS_IT_IS.get(of.items.shape), absent

    def _either(self, of: Type) -> Read:
        choice = either.either(of)
        readers = {json: self._reader(chosen) for json, chosen in choice.types.items()}

        def read_either(value: Any, _before: Any, _pruned: Pruned) -> Any:
            read = readers.get(value.__class__)
            if read is not None:
                # Below, Go decodes separately and not strictly: unknown fields are not reported.
                return either.written_value(read(value, None, []))
            if choice.refusal:
                raise ValueError(choice.refusal)
            return None

        return read_either


def _read_struct(
    rows: Mapping[str, _Row],
    find: Callable[[str], _Row | None],
    positions: Mapping[str, int],
    always: Sequence[tuple[str, Any]],
) -> Read:
    """`find` returns a row that is not in `rows` yet; `always` has the fields that are written even if absent."""

    def read_struct(value: Any, before: Any, pruned: Pruned) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise WrongKind
        old_values = before if before.__class__ is dict else _EMPTY
        struct = {}
        latest, in_order = -1, True
        for name, item in value.items():
            row = rows.get(name) or find(name)
            if row is None:
                pruned.append(name)
                continue
            position, plain, read, drops, field_value = row
            if item.__class__ is plain:
                field_value = item
            elif item is None:
                field_value = fresh_copy(field_value)
            else:
                was = old_values.get(name)
                field_value = item if item is was else read(item, was, pruned)
            if field_value is OMITTED or (drops and not field_value):
                continue
            struct[name] = field_value
            in_order = in_order and position > latest
            latest = position
        for name, default in always:
            if name not in struct:
                struct[name] = fresh_copy(default)
                in_order = False
        return (
            struct if in_order else {name: struct[name] for name in sorted(struct, key=positions.__getitem__)}
        )

    return read_struct


# --- absent values: what Go writes for them, and what it leaves out, decided once for each field


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""What is written of a field that is left out."""

_EMPTIABLE: Final = frozenset(
    (Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.BYTES, Shape.LIST, Shape.MAP)
)
"""What can be empty in Go. The other shapes are structs there, and those never are."""

_ZERO: Final = {
    Shape.STRING: "",
    Shape.INTEGER: 0,
    Shape.NUMBER: 0,
    Shape.BOOLEAN: False,
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
}
"""What is not here and no struct is null when nothing is in it."""


_RETAINED_EMPTY: Final = frozenset({"[]v2.HPAScalingPolicy"})
"""Types of lists that are left out if they are absent, and not if they are empty: then no default is filled in."""


def zero(of: Type) -> Any:
    """What Go writes of a variable of this type that nothing was stored in."""
    if of.shape is not Shape.STRUCT:
        return _ZERO.get(of.shape)
    written = {name: absent_value(field) for name, field in of.fields.items()}
    return {name: value for name, value in written.items() if value is not OMITTED}


def absent_value(field: Field) -> Any:
    """What Go writes of a field that was null or not given."""
    if field.omit_zero or (field.omit_empty and (field.pointer or field.type.shape in _EMPTIABLE)):
        return OMITTED
    return None if field.pointer else zero(field.type)


def drops_empty(field: Field) -> bool:
    """Whether Go leaves the field out when a false value is in it: an empty text or list, 0, no time."""
    if field.type.go in _RETAINED_EMPTY:
        return False
    return not field.pointer and (field.omit_zero or (field.omit_empty and field.type.shape in _EMPTIABLE))


def fresh_copy(written: Any) -> Any:
    """What `zero` or `absent` made once and many trees show, as this tree's own, to be filled in."""
    if written.__class__ is not dict:
        return written
    return {name: fresh_copy(value) for name, value in written.items()}


# --- scalars: a reader takes a value that is not null, and raises `WrongKind`, or a ValueError with Go's message


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
    """Go writes a float without a point and without an exponent if there is nothing behind the point."""
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
    """Base64, or a list of what the bytes are as numbers, which Go reads, too."""
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


_READERS: Final[Mapping[Shape, _ReadScalar]] = {
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
_INTEGERS: Final[Mapping[str, _ReadScalar]] = {"int32": _int32, "int64": _int64, "uint8": _byte}


def scalar_reader(of: Type) -> _ReadScalar:
    """Return the function that reads values of a type without structure."""
    return _INTEGERS[of.go] if of.shape is Shape.INTEGER else _READERS[of.shape]
