"""Empty lists of built-in objects: protobuf, in which upstream stores them, has none, and Go's semantic comparison ignores them.

Empty lists of custom objects are values like any other.
"""

from typing import Any, Final

import orjson

from mockube.apimachinery.schema.model import Field, SchemaType, Shape
from mockube.apimachinery.tree import Tree
from mockube.apiserver.event_loop import LARGE
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.storage.stored_object import canonical

from .registry import Registry
from .request_context import RequestContext

EMPTY_LIST: Final = b":[]"
"""Search it by `find`: `in` first tries to use the bytes as a number, which costs as much as to search a small object."""
JSON_STORED: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
"""The groups whose objects upstream stores as JSON. Others are stored in protobuf, which has no empty lists."""


def without_empty_lists(
    registry: Registry, resource: Resource, tree: Tree, value: bytes
) -> tuple[Tree, bytes]:
    """Return a built-in object to store and its text, with null for empty lists, as Go encodes objects read from protobuf."""
    if resource.group in JSON_STORED:
        return tree, value
    schema = registry.scheme.schemas.kind(tree["apiVersion"], tree["kind"])
    assert schema is not None, f"no schema of {tree['kind']}"
    stored_tree: Tree = _without_empty_lists(schema, tree)
    return stored_tree, canonical(stored_tree)


def _without_empty_lists(of: SchemaType, value: Any) -> Any:
    match of.shape, value:
        case Shape.STRUCT, dict():
            return {
                name: _field_without_empty_lists(of.fields.get(name), item) for name, item in value.items()
            }
        case Shape.MAP, dict():
            return {key: _without_empty_lists(of.items, item) for key, item in value.items()}
        case Shape.LIST, list():
            return [_without_empty_lists(of.items, item) for item in value]
        case _:
            return value


def _field_without_empty_lists(field: Field | None, value: Any) -> Any:
    if field is None:
        return value
    if field.type.shape is Shape.LIST and value == []:
        return None
    return _without_empty_lists(field.type, value)


def with_old_empty_lists(registry: Registry, context: RequestContext, new: Tree, old: Tree) -> Tree:
    """Return an object without empty lists where the stored one has none, if it is a built-in one.

    All of upstream's comparisons of new and stored objects take such a list for the same value.
    """
    if context.resource.custom or context.resource.group in JSON_STORED:
        return new
    # Few objects have an empty list, and to encode one takes less than to compare it. A large one would block the event loop.
    if context.work.size < LARGE and orjson.dumps(new).find(EMPTY_LIST) < 0:
        return new
    schema = registry.scheme.schemas.kind(new["apiVersion"], new["kind"])
    assert schema is not None, f"no schema of {new['kind']}"
    aligned: Tree = _with_old_empty(schema, new, old)
    return aligned


def _with_old_empty(of: SchemaType, new: Any, old: Any) -> Any:
    if new == old:
        return new
    match of.shape, new, old:
        case Shape.STRUCT, dict(), dict():
            return _struct_with_old_empty(of, new, old)
        case Shape.MAP, dict(), dict():
            return {key: _with_old_empty(of.items, value, old.get(key)) for key, value in new.items()}
        case Shape.LIST, list(), list():
            pairs = zip(new, old, strict=False)
            return [*(_with_old_empty(of.items, *pair) for pair in pairs), *new[len(old) :]]
        case _:
            return new


def _struct_with_old_empty(of: SchemaType, new: Tree, old: Tree) -> Tree:
    aligned: Tree = {}
    for name, value in new.items():
        field, old_value = of.fields.get(name), old.get(name)
        if field is None:
            aligned[name] = value
        elif value != [] or old_value is not None or field.type.shape is not Shape.LIST:
            aligned[name] = _with_old_empty(field.type, value, old_value)
        elif name in old:
            aligned[name] = None
    return aligned
