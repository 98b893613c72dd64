"""Types of the type checker: scalars, lists, maps, structs, opaque types with parameters, and type parameters."""

from typing import Final

from msgspec import Struct


class Type(Struct, frozen=True):
    """A type; `kind` is its class, such as `list`."""

    kind: str
    name: str
    parameters: tuple["Type", ...] = ()
    nullable: bool = False
    """Whether null is a value of the type, as for the wrapper types of Protocol Buffers."""

    def __str__(self) -> str:
        """Return the type's name in messages of the checker."""
        short_name = _SHORT_NAMES.get(self.kind)
        if short_name is not None:
            return short_name
        if not self.parameters:
            return f"wrapper({self.name})" if self.nullable else self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def declared_name(self) -> str:
        """Return the type's full name, as in messages about result types."""
        if not self.parameters:
            return f"wrapper({self.name})" if self.nullable else self.name
        return f"{self.name}({', '.join(part.declared_name() for part in self.parameters)})"

    @property
    def is_dynamic(self) -> bool:
        return self.kind in ("dyn", "any")

    @property
    def is_dynamic_or_error(self) -> bool:
        return self.kind in ("dyn", "any", "error")

    @property
    def is_optional(self) -> bool:
        return self.kind == "opaque" and self.name == "optional_type"

    def is_assignable_from(self, other: "Type") -> bool:
        """Return whether values of the other type are values of this type, as far as the types determine it."""
        if self is other or self.kind in ("dyn", "any", "param"):
            return True
        if self.nullable and other.kind == "null":
            return True
        if self.kind != other.kind or self.name != other.name:
            return False
        if len(self.parameters) != len(other.parameters):
            return False
        return all(a.is_assignable_from(b) for a, b in zip(self.parameters, other.parameters, strict=True))


_SHORT_NAMES = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
}

ANY: Final = Type("any", "google.protobuf.Any")
BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
DURATION: Final = Type("duration", "google.protobuf.Duration")
DYN: Final = Type("dyn", "dyn")
ERROR: Final = Type("error", "error")
INT: Final = Type("int", "int")
NULL: Final = Type("null", "null_type")
STRING: Final = Type("string", "string")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
UINT: Final = Type("uint", "uint")
UNSPECIFIED: Final = Type("unspecified", "")
"""The type of a field that its struct claims to have, without saying which type it has."""


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of(value: Type) -> Type:
    return Type("type", "type", (value,))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def struct(name: str) -> Type:
    return Type("struct", name)


def opaque(name: str, *parameters: Type) -> Type:
    return Type("opaque", name, parameters)


def type_parameter(name: str) -> Type:
    return Type("param", name)


def unwrap_optional(type_: Type) -> Type:
    return type_.parameters[0] if type_.is_optional else type_
