"""The model of a type: its fields in JSON, how lists and maps merge, and its name in Go.

Everything that walks types reads this: decoding, strategic merge, server-side apply, explain, OpenAPI. Built-in types
and custom resources are the same records. Independent of particular types and of data; `builtin.py` makes the records
of the built-in types.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct


class Shape(Enum):
    """The form of a value in JSON, as far as forms are handled differently."""

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
    """A string, a number or a boolean: a string with a format in the schema of a custom resource."""
    TIME = "time"
    MICRO_TIME = "micro-time"
    BYTES = "bytes"
    """Base64 in a string."""
    ANY = "any"
    """JSON that is kept as it is: RawExtension, FieldsV1, a schema's default."""


NO_FIELDS: Final[Mapping[str, "Field"]] = MappingProxyType({})
NO_STRATEGY: Final[frozenset[str]] = frozenset()


def _no_fields() -> Mapping[str, "Field"]:
    return NO_FIELDS


def _no_description() -> str:
    return ""


class Type(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A type as one field, element or kind uses it. Compared by identity: two uses of a struct are two types.

    A struct may contain itself, so its fields are created on first use, and then cached.
    """

    shape: Shape
    name: str = ""
    """A struct's OpenAPI definition, as "io.k8s.api.core.v1.Container"; empty for the rest."""
    go: str = ""
    """As Go's decoder names it in an error: "v1.Container", "[]v1.Container", "map[string]string", "int32"."""
    load: Callable[[], Mapping[str, "Field"]] = _no_fields
    """Creates `fields`; not part of the public interface."""
    element: "Type | None" = None
    """See `items`, which is for where there must be one. Of ANY, the schema that it may also be (`either.py`)."""
    list_type: str = "atomic"
    """A list's, for server-side apply: "atomic", "set" or "map"."""
    map_keys: tuple[str, ...] = ()
    """Which fields name an element of a list whose `list_type` is "map"."""
    map_type: str = "granular"
    """A map's or struct's, for server-side apply: "granular" or "atomic"."""
    merge_key: str = ""
    """Which field names an element of a list in a strategic merge patch; empty if none does."""
    patch_strategy: frozenset[str] = NO_STRATEGY
    """Of "merge", "retainKeys" and "replace", in a strategic merge patch; empty means replace."""
    describe: Callable[[], str] = _no_description
    """Creates `description`, which is long and seldom used."""

    @cached_property
    def fields(self) -> Mapping[str, "Field"]:
        """A struct's fields by their names in JSON, in the order in which Go writes them."""
        return self.load()

    @property
    def items(self) -> "Type":
        """The type of a list's elements or of a map's values."""
        assert self.element is not None, f"{self.shape} has no items"
        return self.element

    @property
    def description(self) -> str:
        """Return upstream's description of a struct."""
        return self.describe()

    def __repr__(self) -> str:
        return f"Type({self.go or self.shape.value})"


class Field(Struct, frozen=True, kw_only=True, eq=False):
    """A field of a struct."""

    name: str
    type: Type
    required: bool = False
    """By OpenAPI; Go's decoder does not care."""
    pointer: bool = False
    """Absent and zero are different: Go keeps a zero that was given."""
    omit_empty: bool = False
    """Go leaves the field out when it is empty; otherwise it is always written, as its zero or null if need be.
    A struct is never empty."""
    omit_zero: bool = False
    """Go leaves the field out when it is a struct of which nothing is set."""
    embedded: tuple[str, ...] = ()
    """The Go structs in between, whose fields JSON shows as the outer one's own; Go's errors name them."""
    default: Any = None
    """What upstream's type declares as default, as server-side apply assumes for a list map's absent key."""
    describe: Callable[[], str] = _no_description
    """Makes `description`."""

    @property
    def description(self) -> str:
        return self.describe()


class Schemas(Protocol):
    """Every type that a server has, by its name. It can be a key of caches of what is compiled from it."""

    def __hash__(self) -> int: ...

    def kind(self, api_version: str, kind: str) -> Type | None:
        """The type of a kind's objects, as ("apps/v1", "Deployment"), or None if there is no such kind."""

    def definition(self, name: str) -> Type:
        """The struct of that OpenAPI definition. KeyError if there is none."""

    def kinds(self) -> Iterable[tuple[str, str]]:
        """Every (apiVersion, kind)."""
