"""The model of types: fields, merging of lists and maps, and names in Go.

Decoding, strategic merge patches, server-side apply, explain and OpenAPI use it. Built-in types and custom resources have
the same records. Independent of particular types; `builtin.py` creates the built-in ones.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct


class Shape(Enum):
    """The forms of values in JSON that are handled differently."""

    STRUCT = "struct"
    MAP = "map"
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    QUANTITY = "quantity"
    INT_OR_STRING = "int-or-string"
    SCALAR = "scalar"
    """A string, a number or a boolean: for a string with a format in the schema of a custom resource."""
    TIME = "time"
    MICRO_TIME = "micro-time"
    BYTES = "bytes"
    """A string with base64."""
    ANY = "any"
    """Arbitrary JSON, which is not changed: RawExtension, FieldsV1, a schema's default."""


NO_FIELDS: Final[Mapping[str, "Field"]] = MappingProxyType({})
NO_STRATEGY: Final[frozenset[str]] = frozenset()


def _no_fields() -> Mapping[str, "Field"]:
    return NO_FIELDS


def _no_description() -> str:
    return ""


class SchemaType(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A type as one field, element or kind uses it. Types are compared by identity: two uses of a struct are two types.

    A struct can contain itself, so its fields are created on first use and then cached.
    """

    shape: Shape
    name: str = ""
    """The OpenAPI definition of a struct, such as "io.k8s.api.core.v1.Container"; empty for other shapes."""
    go: str = ""
    """The name in errors of Go's decoder: "v1.Container", "[]v1.Container", "map[string]string", "int32"."""
    load: Callable[[], Mapping[str, "Field"]] = _no_fields
    """A function that returns `fields`; not part of the public interface."""
    element: "SchemaType | None" = None
    """The type of elements or values, as `items`. For ANY, the alternative schema (`either.py`)."""
    list_type: str = "atomic"
    """The merging of a list in server-side apply: "atomic", "set" or "map"."""
    map_keys: tuple[str, ...] = ()
    """The fields that identify an element of a list whose `list_type` is "map"."""
    map_type: str = "granular"
    """The merging of a map or struct in server-side apply: "granular" or "atomic"."""
    merge_key: str = ""
    """The field that identifies an element of a list in a strategic merge patch; empty if there is none."""
    patch_strategy: frozenset[str] = NO_STRATEGY
    """The strategies in a strategic merge patch: "merge", "retainKeys" or "replace". An empty set means replace."""
    describe: Callable[[], str] = _no_description
    """A function that returns `description`, which is long and seldom used."""

    @cached_property
    def fields(self) -> Mapping[str, "Field"]:
        """The fields of a struct by their names in JSON, in Go's order."""
        return self.load()

    @property
    def items(self) -> "SchemaType":
        """The type of a list's elements or of a map's values."""
        assert self.element is not None, f"{self.shape} has no items"
        return self.element

    @property
    def description(self) -> str:
        """Upstream's description of a struct."""
        return self.describe()

    def __repr__(self) -> str:
        return f"SchemaType({self.go or self.shape.value})"


class Field(Struct, frozen=True, kw_only=True, eq=False):
    """A field of a struct."""

    name: str
    type: SchemaType
    required: bool = False
    """Whether OpenAPI requires the field. Go's decoder ignores it."""
    pointer: bool = False
    """Whether absent and zero are different: Go keeps an explicit zero."""
    omit_empty: bool = False
    """Whether Go leaves out the field if it is empty. Otherwise it always encodes the field, perhaps as zero or null.
    A struct is never empty."""
    omit_zero: bool = False
    """Whether Go leaves out the field if it is a struct without set fields."""
    embedded: tuple[str, ...] = ()
    """The embedded Go structs that contain the field, which are not visible in JSON. Go's errors name them."""
    default: Any = None
    """The default that upstream's type declares. Server-side apply uses it for an absent key of a list map."""
    describe: Callable[[], str] = _no_description
    """A function that returns `description`."""

    @property
    def description(self) -> str:
        return self.describe()


class Schemas(Protocol):
    """All types of a server, by name. It is hashable, as a key of caches of compiled types."""

    def __hash__(self) -> int: ...

    def kind(self, api_version: str, kind: str) -> SchemaType | None:
        """Return the type of a kind, such as ("apps/v1", "Deployment"), or None if the kind is unknown."""

    def definition(self, name: str) -> SchemaType:
        """Return the struct of an OpenAPI definition; raise KeyError if there is none."""

    def kinds(self) -> Iterable[tuple[str, str]]:
        """Return the (apiVersion, kind) of every kind."""
