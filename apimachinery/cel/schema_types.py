"""CEL types of OpenAPI schemas, with the maximum sizes of values, and the escaping of property names."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from . import types
from .cost.ranges import EstimateRange
from .parser import RESERVED
from .types import Type

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
_MAX_TEXT_LENGTH: Final = MAX_REQUEST_BYTES - 2
"""A text without maxLength is as long as a request without its quotes (apiserver/pkg/cel/common/schemas.go)."""
Schema = Mapping[str, Any]


class DeclaredType(Struct, frozen=True):
    """The type of a schema, with the types of its fields and elements, and limits of its size."""

    type: Type
    max_elements: int = 0
    """The maximum number of characters, elements or entries; 0 for a type without a size."""
    min_size: int = 1
    """The minimum number of bytes as JSON."""
    fields: Mapping[str, "DeclaredType"] | None = None
    """The fields of an object with properties, by their escaped names."""
    key: "DeclaredType | None" = None
    element: "DeclaredType | None" = None
    """The type of a list's elements, or of a map's values."""


class DeclaredStructs(Struct, frozen=True):
    """The fields of named structs, which are the objects of declared types."""

    by_name: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)

    def fields(self, name: str, /) -> Mapping[str, Type] | None:
        return self.by_name.get(name)


_RESERVED_ESCAPES = {f"__{word}__": word for word in RESERVED}
_ESCAPED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPED = {escape: text for text, escape in _ESCAPED.items()}
_TO_ESCAPE = re.compile(r"__|[-./]")
_ESCAPE = re.compile(r"__[^_]+__")
_NAME = re.compile(r"[A-Za-z_\-./][A-Za-z0-9_\-./]*")


def escape(name: str) -> str | None:
    """Return a property's name as an identifier; None if it cannot be escaped."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _TO_ESCAPE.sub(lambda match: _ESCAPED[match[0]], name)


def unescape(name: str) -> str:
    """Return the property name of an escaped identifier."""
    if "__" not in name:
        return name
    if name in _RESERVED_ESCAPES:
        return _RESERVED_ESCAPES[name]
    return _ESCAPE.sub(lambda match: _UNESCAPED.get(match[0], match[0]), name)


_TEXT = DeclaredType(types.STRING, _MAX_TEXT_LENGTH, 2)
_KEY = DeclaredType(types.STRING, 0, 2)
_ROOT_PROPERTIES: Final[dict[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
}
_NAME_LENGTHS: Final = {"name": 253, "generateName": 252}
"""A generated suffix has one byte at least."""
_FORMATTED = {
    "duration": DeclaredType(types.DURATION, 32, 3),
    "date": DeclaredType(types.TIMESTAMP, 12, 12),
    "date-time": DeclaredType(types.TIMESTAMP, 32, 21),
}
_SCALARS = {
    "boolean": DeclaredType(types.BOOL, 0, 4),
    "number": DeclaredType(types.DOUBLE, 0, 1),
    "integer": DeclaredType(types.INT, 0, 1),
}


def declare(schema: Schema, *, root: bool = False, limits_names: bool = True) -> DeclaredType | None:
    """Return the declared type of a schema; None if expressions cannot access its values.

    `limits_names`: names of objects have the length of a DNS subdomain at most.
    """
    if schema.get("x-kubernetes-int-or-string"):
        length = schema.get("maxLength")
        return DeclaredType(types.DYN, max(length, 0) * 4 if length is not None else _MAX_TEXT_LENGTH, 1)
    kind = schema.get("type")
    if kind == "object" or (root and not kind):
        return _object(schema, root=root, limits_names=limits_names)
    if kind == "array":
        return _array(schema, limits_names=limits_names)
    if kind == "string":
        return _string(schema)
    return _SCALARS.get(kind or "")


def _declare_embedded(schema: Schema, *, limits_names: bool) -> DeclaredType | None:
    is_root = bool(schema.get("x-kubernetes-embedded-resource"))
    return declare(schema, root=is_root, limits_names=limits_names)


def _array(schema: Schema, *, limits_names: bool) -> DeclaredType | None:
    items = schema.get("items")
    element = _declare_embedded(items, limits_names=limits_names) if isinstance(items, Mapping) else None
    if element is None:
        return None
    limit = schema.get("maxItems")
    maximum = max(limit, 0) if limit is not None else _MAX_TEXT_LENGTH // (element.min_size + 1)
    return DeclaredType(types.list_of(element.type), maximum, 2, element=element)


def _object(schema: Schema, *, root: bool, limits_names: bool) -> DeclaredType | None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and not root:
        return _map(schema, additional, limits_names=limits_names)
    properties = schema.get("properties") or {}
    if root:
        properties = {
            **properties,
            **_ROOT_PROPERTIES,
            **_root_metadata(properties, limits_names=limits_names),
        }
    required = frozenset(schema.get("required") or ())
    fields: dict[str, DeclaredType] = {}
    min_size = 2
    for name, value in properties.items():
        declared = _declare_embedded(value, limits_names=limits_names)
        if declared is None:
            continue
        escaped = escape(name)
        if escaped is not None:
            fields[escaped] = declared
        if name in required and value.get("default") is None:
            min_size += len(name.encode()) + declared.min_size + 4
    return DeclaredType(types.struct("object"), 0, min_size, fields)


def _root_metadata(properties: Schema, *, limits_names: bool) -> Schema:
    """Return the schema's own metadata if it declares the names, or one with the names, which expressions can always access."""
    metadata = properties.get("metadata")
    own = metadata.get("properties") or {} if isinstance(metadata, Mapping) else {}
    if all(name in own for name in _NAME_LENGTHS) and "kind" in properties and "apiVersion" in properties:
        return {"metadata": metadata}
    names = {
        name: {"type": "string", "maxLength": min(length, (own.get(name) or {}).get("maxLength", length))}
        if limits_names
        else {"type": "string"}
        for name, length in _NAME_LENGTHS.items()
    }
    return {"metadata": {"type": "object", "properties": names}}


def _map(schema: Schema, additional: Schema, *, limits_names: bool) -> DeclaredType | None:
    element = _declare_embedded(additional, limits_names=limits_names)
    if element is None:
        return None
    limit = schema.get("maxProperties")
    maximum = max(limit, 0) if limit is not None else _MAX_TEXT_LENGTH // (element.min_size + 6)
    return DeclaredType(types.map_of(types.STRING, element.type), maximum, 2, key=_KEY, element=element)


def _string(schema: Schema) -> DeclaredType:
    form, length = schema.get("format"), schema.get("maxLength")
    if form == "byte":
        return DeclaredType(types.BYTES, max(length, 0) if length is not None else _MAX_TEXT_LENGTH, 2)
    if form in _FORMATTED:
        return _FORMATTED[form]
    if length is not None:
        return DeclaredType(types.STRING, max(length, 0) * 4, 2)
    values = schema.get("enum")
    if values:
        max_size = max((len(value.encode()) for value in values if isinstance(value, str)), default=0)
        return DeclaredType(types.STRING, max_size, 2)
    return _TEXT


def name_structs(declared: DeclaredType, name: str) -> tuple[DeclaredType, dict[str, Mapping[str, Type]]]:
    """Return the type with named structs in place of objects, and the fields of the structs."""
    structs: dict[str, Mapping[str, Type]] = {}
    return _name_structs(declared, name, structs), structs


def declare_root(schema: Schema, name: str, structs: dict[str, Mapping[str, Type]]) -> Type | None:
    """Return the type of a kind's objects, and add their named structs to `structs`."""
    declared = declare(schema, root=True)
    return None if declared is None else _name_structs(declared, name, structs).type


def _name_structs(declared: DeclaredType, name: str, structs: dict[str, Mapping[str, Type]]) -> DeclaredType:
    if declared.fields is not None:
        fields = {
            field_: _name_structs(part, f"{name}.{field_}", structs)
            for field_, part in declared.fields.items()
        }
        structs[name] = _with_keywords({field_: part.type for field_, part in fields.items()})
        return DeclaredType(types.struct(name), 0, declared.min_size, fields)
    if declared.element is None:
        return declared
    is_map = declared.key is not None
    element = _name_structs(declared.element, f"{name}.{'@elem' if is_map else '@idx'}", structs)
    type_ = types.map_of(types.STRING, element.type) if is_map else types.list_of(element.type)
    return DeclaredType(type_, declared.max_elements, declared.min_size, None, declared.key, element)


def _with_keywords(fields: dict[str, Type]) -> dict[str, Type]:
    """Add reserved words under their plain names, which can be selected: `self.namespace`."""
    for escaped, word in _RESERVED_ESCAPES.items():
        if escaped in fields and word not in fields:
            fields[word] = fields[escaped]
    return fields


def sizes_of(root: DeclaredType, path: tuple[str, ...]) -> EstimateRange | None:
    """Return the range of the size of the value at a path, whose first element is a variable."""
    if not path:
        return None
    current: DeclaredType | None = root
    for step in path[1:]:
        assert current is not None
        if step in ("@items", "@values"):
            current = current.element
        elif step == "@keys":
            current = current.key
        else:
            current = (current.fields or {}).get(step)
        if current is None:
            return None
    assert current is not None
    return EstimateRange(0, current.max_elements)
