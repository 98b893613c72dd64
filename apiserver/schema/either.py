"""Fields of JSONSchemaProps that contain a schema or a value of another type, such as JSONSchemaPropsOrBool.

Go selects the type by the first character of the JSON value. This module has only these types.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.schema.model import SchemaType, Shape


class Either(Struct, frozen=True, kw_only=True):
    """The types of such a field. Go decodes any other value as null, unless there is a `refusal`."""

    types: Mapping[type, SchemaType]
    """The type of a value, by the class of the JSON value."""
    refusal: str = ""
    """Go's error for a value of another class."""


_BOOLEAN: Final = SchemaType(shape=Shape.BOOLEAN, go="bool")
_STRINGS: Final = SchemaType(
    shape=Shape.LIST, go="[]string", element=SchemaType(shape=Shape.STRING, go="string")
)


def _or_array(schema: SchemaType) -> Either:
    return Either(
        types={dict: schema, list: SchemaType(shape=Shape.LIST, go=f"[]{schema.go}", element=schema)}
    )


def _or_bool(schema: SchemaType) -> Either:
    return Either(types={dict: schema, bool: _BOOLEAN}, refusal="boolean or JSON schema expected")


def _or_string_array(schema: SchemaType) -> Either:
    return Either(types={dict: schema, list: _STRINGS})


_BY_GO: Final[Mapping[str, Callable[[SchemaType], Either]]] = {
    "JSONSchemaPropsOrArray": _or_array,
    "JSONSchemaPropsOrBool": _or_bool,
    "JSONSchemaPropsOrStringArray": _or_string_array,
}


def is_either(type_: SchemaType) -> bool:
    return type_.shape is Shape.ANY and type_.element is not None


def either(type_: SchemaType) -> Either:
    return _BY_GO[type_.go.rpartition(".")[2]](type_.items)


def written_value(value: Any) -> Any:
    """Return the value that Go encodes: null for an empty list."""
    return None if value == [] else value
