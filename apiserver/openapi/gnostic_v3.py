"""OpenAPI 3 in protobuf: gnostic's messages. The tables are those of `gnostic`, in the order of field numbers.

What Kubernetes' documents do not contain, such as callbacks and examples, has no entry.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.wire.protobuf.varint import bytes_field, string_field, varint, varint_field

from . import gnostic
from .gnostic import Table

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
"""The media type of responses. Clients also send an @ in place of the last dot but one."""


def encode(document: ReadOnlyTree) -> bytes:
    return gnostic.message(_DOCUMENT, document, 9)


def _double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value) if value else b""


def _integer(number: int, value: int) -> bytes:
    return varint_field(number, value & 0xFFFFFFFFFFFFFFFF) if value else b""


def _true(number: int, value: bool) -> bytes:  # noqa: FBT001 - a writer like the others
    return gnostic.flag(number, value) if value else b""


def _text(number: int, value: str) -> bytes:
    return string_field(number, value) if value else b""


def _info(number: int, info: ReadOnlyTree) -> bytes:
    return bytes_field(number, gnostic.message({"title": (1, _text), "version": (6, _text)}, info, 7))


def _map(encode_value: Callable[[Any], bytes], field: int = 1) -> Callable[[int, ReadOnlyTree], bytes]:
    """Return the writer of a message whose field is repeated: pairs of a name and a value."""

    def write(number: int, named: ReadOnlyTree) -> bytes:
        pairs = (gnostic.named_value(field, name, encode_value(value)) for name, value in named.items())
        return bytes_field(number, b"".join(pairs))

    return write


def _repeated_field(encode_value: Callable[[Any], bytes]) -> Callable[[int, list[Any]], bytes]:
    return lambda number, values: b"".join(bytes_field(number, encode_value(value)) for value in values)


def _single(encode_value: Callable[[Any], bytes]) -> Callable[[int, Any], bytes]:
    return lambda number, value: bytes_field(number, encode_value(value))


def _or_reference(encode_value: Callable[[Any], bytes]) -> Callable[[ReadOnlyTree], bytes]:
    """Return the encoder of a message that is either a value or a reference."""

    def encode_either(tree: ReadOnlyTree) -> bytes:
        if "$ref" in tree:
            return bytes_field(2, string_field(1, tree["$ref"]))
        return bytes_field(1, encode_value(tree))

    return encode_either


def _path_item(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_PATH_ITEM, tree, 14)


def _operation(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_OPERATION, tree, 13)


def _parameter(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_PARAMETER, tree, 14)


def _body(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_BODY, tree, 4)


def _response(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_RESPONSE, tree, 5)


def _media_type(tree: ReadOnlyTree) -> bytes:
    return gnostic.message({"schema": (1, _single(_schema_or_reference))}, tree, 5)


def _security_scheme(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_SECURITY_SCHEME, tree, 9)


def _schema(tree: ReadOnlyTree) -> bytes:
    return gnostic.message(_SCHEMA, tree, 36)


def _schema_or_reference(tree: ReadOnlyTree) -> bytes:
    return _or_reference(_schema)(tree)


def _responses(number: int, responses: ReadOnlyTree) -> bytes:
    encode_response = _or_reference(_response)
    fields = [
        bytes_field(1, encode_response(tree))
        if code == "default"
        else gnostic.named_value(2, code, encode_response(tree))
        for code, tree in responses.items()
    ]
    return bytes_field(number, b"".join(fields))


def _additional_properties(number: int, value: Any) -> bytes:
    item = (
        varint_field(2, int(value))
        if isinstance(value, bool)
        else bytes_field(1, _schema_or_reference(value))
    )
    return bytes_field(number, item)


def _default(number: int, value: Any) -> bytes:
    """Encode a default; gnostic has none that is an object, a list or null."""
    encoded = b""
    if isinstance(value, bool):
        encoded = varint_field(2, int(value))
    elif isinstance(value, int | float):
        encoded = varint(1 << 3 | 1) + struct.pack("<d", value)
    elif isinstance(value, str):
        encoded = string_field(3, value)
    return bytes_field(number, encoded)


_OPERATION_FIELD: Final = _single(_operation)
_PARAMETERS: Final = _repeated_field(_or_reference(_parameter))
_SCHEMAS: Final = _map(_schema_or_reference)
_SCHEMA_LIST: Final = _repeated_field(_schema_or_reference)
_CONTENT: Final = _map(_media_type)

_DOCUMENT: Final[Table] = {
    "openapi": (1, _text),
    "info": (2, _info),
    "paths": (4, _map(_path_item)),
    "components": (5, lambda number, tree: bytes_field(number, gnostic.message(_COMPONENTS, tree, 10))),
}
_COMPONENTS: Final[Table] = {
    "schemas": (1, _SCHEMAS),
    "securitySchemes": (7, _map(_or_reference(_security_scheme))),
}
_PATH_ITEM: Final[Table] = {
    "get": (4, _OPERATION_FIELD),
    "put": (5, _OPERATION_FIELD),
    "post": (6, _OPERATION_FIELD),
    "delete": (7, _OPERATION_FIELD),
    "options": (8, _OPERATION_FIELD),
    "head": (9, _OPERATION_FIELD),
    "patch": (10, _OPERATION_FIELD),
    "parameters": (13, _PARAMETERS),
}
_OPERATION: Final[Table] = {
    "tags": (1, gnostic.texts),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "parameters": (6, _PARAMETERS),
    "requestBody": (7, _single(_or_reference(_body))),
    "responses": (8, _responses),
    "deprecated": (10, _true),
}
_PARAMETER: Final[Table] = {
    "name": (1, _text),
    "in": (2, _text),
    "description": (3, _text),
    "required": (4, _true),
    "schema": (10, _single(_schema_or_reference)),
    "content": (13, _CONTENT),
}
_BODY: Final[Table] = {"description": (1, _text), "content": (2, _CONTENT), "required": (3, _true)}
_RESPONSE: Final[Table] = {"description": (1, _text), "content": (3, _CONTENT)}
_SECURITY_SCHEME: Final[Table] = {
    "type": (1, _text),
    "description": (2, _text),
    "name": (3, _text),
    "in": (4, _text),
}
_SCHEMA: Final[Table] = {
    "nullable": (1, _true),
    "externalDocs": (
        6,
        lambda number, tree: bytes_field(
            number, gnostic.message({"description": (1, _text), "url": (2, _text)}, tree, 3)
        ),
    ),
    "example": (7, lambda number, value: bytes_field(number, gnostic.any_message(value))),
    "title": (9, _text),
    "multipleOf": (10, _double),
    "maximum": (11, _double),
    "exclusiveMaximum": (12, _true),
    "minimum": (13, _double),
    "exclusiveMinimum": (14, _true),
    "maxLength": (15, _integer),
    "minLength": (16, _integer),
    "pattern": (17, _text),
    "maxItems": (18, _integer),
    "minItems": (19, _integer),
    "uniqueItems": (20, _true),
    "maxProperties": (21, _integer),
    "minProperties": (22, _integer),
    "required": (23, gnostic.texts),
    "enum": (24, gnostic.any_messages),
    "type": (25, _text),
    "allOf": (26, _SCHEMA_LIST),
    "oneOf": (27, _SCHEMA_LIST),
    "anyOf": (28, _SCHEMA_LIST),
    "not": (29, _single(_schema)),
    "items": (30, lambda number, tree: bytes_field(number, bytes_field(1, _schema_or_reference(tree)))),
    "properties": (31, _SCHEMAS),
    "additionalProperties": (32, _additional_properties),
    "default": (33, _default),
    "description": (34, _text),
    "format": (35, _text),
}
