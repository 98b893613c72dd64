"""Fields that hold a schema or something else, which are found inside the schema of a custom resource.

Go looks at the first character and then reads the value as one type or another; which, is all that is known here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.schema.model import Shape, Type


class Either(Struct, frozen=True, kw_only=True):
    """What may stand in such a field. Go reads any other value as null, unless there is a `refusal`."""

    types: Mapping[type, Type]
    """By the class of the JSON value, the type that it is read as."""
    refusal: str = ""
    """Go's message if the value is of another class."""


_BOOLEAN: Final = Type(shape=Shape.BOOLEAN, go="bool")
_STRINGS: Final = Type(shape=Shape.LIST, go="[]string", element=Type(shape=Shape.STRING, go="string"))


def _or_array(schema: Type) -> Either:
    return Either(types={dict: schema, list: Type(shape=Shape.LIST, go=f"[]{schema.go}", element=schema)})


def _or_bool(schema: Type) -> Either:
    return Either(types={dict: schema, bool: _BOOLEAN}, refusal="boolean or JSON schema expected")


def _or_string_array(schema: Type) -> Either:
    return Either(types={dict: schema, list: _STRINGS})


_BY_GO: Final[Mapping[str, Callable[[Type], Either]]] = {
    "JSONSchemaPropsOrArray": _or_array,
    "JSONSchemaPropsOrBool": _or_bool,
    "JSONSchemaPropsOrStringArray": _or_string_array,
}


def is_either(of: Type) -> bool:
    return of.shape is Shape.ANY and of.element is not None


def either(of: Type) -> Either:
    return _BY_GO[of.go.rpartition(".")[2]](of.items)


def written_value(value: Any) -> Any:
    """What Go writes of a value that it read: an empty list is nothing to it."""
    return None if value == [] else value
