"""Check that every field of a stored built-in object has the type that its kind declares, with msgspec for speed.

Each kind is compiled into msgspec structs when its first object is read. A value that msgspec refuses is decoded again
by the decoder of requests, which decides and has Go's message. So no object that a request can write is refused.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import orjson

from mockube.apimachinery.schema.model import Field, Schemas, SchemaType, Shape
from mockube.apimachinery.tree import Tree
from mockube.apiserver.schema.decode import DecodeError, Decoder
from mockube.apiserver.schema.normal import OMITTED, WrongKind, absent_value, scalar_reader

from .stored_object import UnreadableValue, canonical, read_value

MAX_KINDS: Final = 4096
"""The maximum of cached kinds; others are not checked. There are fewer built-in kinds."""
MAX_HEAD: Final = 512
"""Bytes of a kind and a version together."""
Upgrades: TypeAlias = Mapping[bytes, Callable[[Tree], Tree]]
"""Functions that convert objects of versions that are not served, by the first bytes of their canonical text."""
_CHECKED_BEFORE: Final = frozenset({"kind", "apiVersion", "metadata"})


class _Quantity:
    """The type for which msgspec calls `_read_scalar`."""


_READ: Final = _Quantity()
_UNCHECKED: Final = msgspec.Raw
_SCALARS: Final[dict[Shape, Any]] = {
    Shape.STRING: str,
    Shape.BOOLEAN: bool,
    Shape.NUMBER: float,
    Shape.QUANTITY: _Quantity,
    Shape.INT_OR_STRING: int | str,
    Shape.BYTES: bytes,
    Shape.TIME: Annotated[datetime, msgspec.Meta(tz=True)],
    Shape.MICRO_TIME: Annotated[datetime, msgspec.Meta(tz=True)],
    Shape.ANY: _UNCHECKED,
}
_INTEGERS: Final[dict[str, Any]] = {
    "int32": Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)],
    "int64": int,
    "uint8": Annotated[int, msgspec.Meta(ge=0, lt=2**8)],
}
_NULLABLE: Final = frozenset({Shape.LIST, Shape.MAP, Shape.BYTES, Shape.TIME, Shape.MICRO_TIME})
_read_quantity = scalar_reader(SchemaType(shape=Shape.QUANTITY))


def _read_scalar(_: type, value: Any) -> Any:
    """Validate a quantity, which is not null here; msgspec calls it for types that it does not support."""
    try:
        _read_quantity(value)
    except WrongKind as error:
        raise ValueError("no quantity") from error
    return _READ


class TypeCheckedReader:
    """Reads stored objects of built-in kinds, and checks the types of their fields.

    The check of a kind is compiled when its first object is read.
    """

    def __init__(self, schemas: Schemas, upgrades: Upgrades = MappingProxyType({})) -> None:
        self._schemas = schemas
        self._upgrades = upgrades
        self._decoder = Decoder()
        self._structs: dict[str, Any] = {}
        self._checks: dict[bytes, tuple[SchemaType, msgspec.json.Decoder[Any]] | None] = {}
        """By the first bytes of an object's canonical text, which have kind and version."""

    def read(self, value: bytes) -> bytes:
        """Return the canonical text of a stored value, or raise `UnreadableValue` if it is not an object of its kind.

        Missing fields that Go always writes are added as Go does. Objects of other than built-in kinds are not checked.
        """
        text = read_value(value)
        check = self._check_of(text)
        if check is None:
            return self._upgrade(text)
        schema, decoder = check
        try:
            decoder.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return self._decode_again(schema, text)
        return text

    def _upgrade(self, text: bytes) -> bytes:
        """Convert an object that is stored in a version which is not served any more."""
        for head, convert in self._upgrades.items():
            if text.startswith(head):
                try:
                    tree = convert(orjson.loads(text))
                except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError) as error:
                    raise UnreadableValue(f"a stored value cannot be converted: {error}") from error
                schema = self._schemas.kind(tree["apiVersion"], tree["kind"])
                assert schema is not None, "it is converted to a version that is served"
                return self._decode_again(schema, canonical(tree))
        return text

    def _decode_again(self, schema: SchemaType, text: bytes) -> bytes:
        try:
            return canonical(self._decoder.decode(schema, orjson.loads(text), strict=False).tree)
        except (DecodeError, orjson.JSONDecodeError, RecursionError) as error:
            raise UnreadableValue(str(error)) from error

    def _check_of(self, text: bytes) -> tuple[SchemaType, msgspec.json.Decoder[Any]] | None:
        head = text[: text.find(b',"metadata"')]
        if head not in self._checks:
            if len(self._checks) >= MAX_KINDS or len(head) > MAX_HEAD:
                return None
            self._checks[head] = self._compile(head)
        return self._checks[head]

    def _compile(self, head: bytes) -> tuple[SchemaType, msgspec.json.Decoder[Any]] | None:
        if b"%b," % head in self._upgrades:
            return None
        try:
            named = orjson.loads(head + b"}")
            schema = self._schemas.kind(named["apiVersion"], named["kind"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return None
        if schema is None:
            return None
        fields = {name: field for name, field in schema.fields.items() if name not in _CHECKED_BEFORE}
        return schema, msgspec.json.Decoder(self._define(schema, fields), dec_hook=_read_scalar)

    def _type(self, of: SchemaType, *, is_pointer: bool = False) -> Any:
        """Return the msgspec type. Null is valid for Go's nilable types; elsewhere the decoder makes it a zero value."""
        match of.shape:
            case Shape.STRUCT:
                checked_type = self._struct(of)
            case Shape.LIST:
                checked_type = list[self._type(of.items)]  # type: ignore[misc]
            case Shape.MAP:
                checked_type = dict[str, self._type(of.items)]  # type: ignore[misc]
            case Shape.INTEGER:
                checked_type = _INTEGERS[of.go]
            case _:
                checked_type = _SCALARS[of.shape]
        is_nullable = (is_pointer or of.shape in _NULLABLE) and checked_type is not _UNCHECKED
        return checked_type | None if is_nullable else checked_type

    def _struct(self, of: SchemaType) -> Any:
        """Return the msgspec struct of a type. A recursive type, such as a JSON schema, is not checked inside."""
        if of.name not in self._structs:
            self._structs[of.name] = _UNCHECKED
            self._structs[of.name] = self._define(of, of.fields)
        return self._structs[of.name]

    def _define(self, of: SchemaType, fields: Mapping[str, Field]) -> Any:
        """Return a msgspec struct in which the fields that Go always writes are required."""
        types = [
            (f"f{index}", self._type(field.type, is_pointer=field.pointer))
            if absent_value(field) is not OMITTED
            else (f"f{index}", self._type(field.type, is_pointer=field.pointer), msgspec.UNSET)
            for index, field in enumerate(fields.values())
        ]
        names = {f"f{index}": name for index, name in enumerate(fields)}
        name = of.name.rpartition(".")[2]
        return msgspec.defstruct(name, types, rename=names, gc=False, kw_only=True)
