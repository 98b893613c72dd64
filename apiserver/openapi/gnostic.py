"""OpenAPI 2 in protobuf, which kubectl before 1.29 and other older clients request.

The messages are gnostic's; `gnostic_v3` has those of OpenAPI 3. A table has the field number and the encoder of each member of a message. Other members whose
names begin with `x-` are its extensions, which are encoded as YAML, of which JSON is a subset.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.wire.protobuf.varint import bytes_field, string_field, varint_field

Write: TypeAlias = Callable[[int, Any], bytes]
Table: TypeAlias = Mapping[str, tuple[int, Write]]

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of responses. Clients send an @ in place of the last dot but one, which is invalid in a media type."""


def encode(document: ReadOnlyTree) -> bytes:
    return message(_DOCUMENT, document)


def message(table: Table, tree: ReadOnlyTree, extensions: int = 0) -> bytes:
    fields = [write(number, tree[name]) for name, (number, write) in table.items() if name in tree]
    if extensions:
        fields += [
            named_value(extensions, name, any_message(value))
            for name, value in tree.items()
            if name.startswith("x-")
        ]
    return b"".join(fields)


def texts(number: int, values: list[str]) -> bytes:
    return b"".join(string_field(number, value) for value in values)


def flag(number: int, value: bool) -> bytes:  # noqa: FBT001 - a writer like the others
    return varint_field(number, int(value))


def any_message(value: Any) -> bytes:
    return string_field(2, orjson.dumps(value).decode() + "\n")


def any_messages(number: int, values: list[Any]) -> bytes:
    return b"".join(bytes_field(number, any_message(value)) for value in values)


def named_value(number: int, name: str, value: bytes) -> bytes:
    return bytes_field(number, string_field(1, name) + bytes_field(2, value))


def _info(number: int, info: ReadOnlyTree) -> bytes:
    return bytes_field(number, message({"title": (1, string_field), "version": (2, string_field)}, info))


def _paths(number: int, paths: ReadOnlyTree) -> bytes:
    return bytes_field(
        number,
        b"".join(named_value(2, path, message(_PATH_ITEM, item, 10)) for path, item in paths.items()),
    )


def _operation(number: int, operation: ReadOnlyTree) -> bytes:
    return bytes_field(number, message(_OPERATION, operation, 13))


def _parameters(number: int, parameters: list[ReadOnlyTree]) -> bytes:
    return b"".join(bytes_field(number, _parameter_item(parameter)) for parameter in parameters)


def _parameter_item(parameter: ReadOnlyTree) -> bytes:
    if "$ref" in parameter:
        return bytes_field(2, string_field(1, parameter["$ref"]))
    return bytes_field(1, _parameter(parameter))


def _parameter(parameter: ReadOnlyTree) -> bytes:
    """Encode a parameter in the body, in the path or in the query."""
    if parameter["in"] == "body":
        return bytes_field(1, message(_BODY, parameter))
    kind, table = _PARAMETERS[parameter["in"]]
    return bytes_field(2, bytes_field(kind, message(table, parameter)))


def _shared_parameters(number: int, named: ReadOnlyTree) -> bytes:
    return bytes_field(
        number, b"".join(named_value(1, name, _parameter(parameter)) for name, parameter in named.items())
    )


def _requirements(number: int, requirements: list[ReadOnlyTree]) -> bytes:
    return b"".join(
        bytes_field(
            number, b"".join(named_value(1, name, texts(1, scopes)) for name, scopes in requirement.items())
        )
        for requirement in requirements
    )


def _security(number: int, named: ReadOnlyTree) -> bytes:
    schemes = (
        named_value(1, name, bytes_field(2, message(_API_KEY, scheme))) for name, scheme in named.items()
    )
    return bytes_field(number, b"".join(schemes))


def _responses(number: int, responses: ReadOnlyTree) -> bytes:
    return bytes_field(
        number,
        b"".join(
            named_value(1, code, bytes_field(1, message(_RESPONSE, body))) for code, body in responses.items()
        ),
    )


def _schema(tree: ReadOnlyTree) -> bytes:
    return message(_SCHEMA, tree, 31)


def _schemas(number: int, named: ReadOnlyTree) -> bytes:
    return bytes_field(number, b"".join(named_value(1, name, _schema(tree)) for name, tree in named.items()))


def _one_schema(number: int, tree: ReadOnlyTree) -> bytes:
    """Encode a message whose only field is a schema: of items, of a response, or of a map's values."""
    return bytes_field(number, bytes_field(1, _schema(tree)))


def _type(number: int, value: str) -> bytes:
    return bytes_field(number, string_field(1, value))


_DOCUMENT: Final[Table] = {
    "swagger": (1, string_field),
    "info": (2, _info),
    "paths": (8, _paths),
    "definitions": (9, _schemas),
    "parameters": (10, _shared_parameters),
    "security": (12, _requirements),
    "securityDefinitions": (13, _security),
}
_PATH_ITEM: Final[Table] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "options": (6, _operation),
    "head": (7, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_OPERATION: Final[Table] = {
    "tags": (1, texts),
    "description": (3, string_field),
    "operationId": (5, string_field),
    "produces": (6, texts),
    "consumes": (7, texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, texts),
}
_API_KEY: Final[Table] = {
    "type": (1, string_field),
    "name": (2, string_field),
    "in": (3, string_field),
    "description": (4, string_field),
}
_PARAMETERS: Final[Mapping[str, tuple[int, Table]]] = {
    "query": (
        3,
        {
            "in": (2, string_field),
            "description": (3, string_field),
            "name": (4, string_field),
            "type": (6, string_field),
            "uniqueItems": (20, flag),
        },
    ),
    "path": (
        4,
        {
            "required": (1, flag),
            "in": (2, string_field),
            "description": (3, string_field),
            "name": (4, string_field),
            "type": (5, string_field),
            "uniqueItems": (19, flag),
        },
    ),
}
_BODY: Final[Table] = {
    "name": (2, string_field),
    "in": (3, string_field),
    "required": (4, flag),
    "schema": (5, lambda number, tree: bytes_field(number, _schema(tree))),
}
_RESPONSE: Final[Table] = {"description": (1, string_field), "schema": (2, _one_schema)}
_SCHEMA: Final[Table] = {
    "$ref": (1, string_field),
    "format": (2, string_field),
    "description": (4, string_field),
    "required": (19, texts),
    "enum": (20, any_messages),
    "additionalProperties": (21, _one_schema),
    "type": (22, _type),
    "items": (23, _one_schema),
    "properties": (25, _schemas),
}
