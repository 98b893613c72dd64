"""Field sets in the form of `fieldsV1`: the same tree, in which an empty object is a path without paths below it.

Decoding is cached by text: managers own the same fields of many objects, and for a long time. The fields of the members of
metadata, spec and status are cached, too, because in a status some may differ in each object, such as the addresses of a pod.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.piecewise import sorted_in_pieces

from . import fieldset
from .elements import MalformedFields, canonical, sort_key
from .fieldset import FieldSet

CACHE_SIZE: Final = 1024
MAX_LENGTH: Final = 16 * 1024

_LEAF: Final[dict[str, Any]] = {}


class DecodedFields(NamedTuple):
    """A field set and the text that it was decoded from."""

    text: bytes
    fields: FieldSet


def decode(tree: Any) -> DecodedFields:
    """Decode a `fieldsV1`; elements of unknown kinds are left out."""
    return read(orjson.dumps(tree))


@memoize(CACHE_SIZE, max_length=MAX_LENGTH)
def read(text: bytes) -> DecodedFields:
    fields = FieldSet(_node(orjson.loads(text), _outer_node))
    fields.pop(fieldset.SELF, None)
    return DecodedFields(text, fields)


def _node(tree: Any, read_member: Callable[[Any], FieldSet]) -> FieldSet:
    if tree is None:  # the library accepts it as an object without members
        return fieldset.LEAF
    if not isinstance(tree, dict):
        raise MalformedFields(f"expected an object: {orjson.dumps(tree).decode()}")
    node = FieldSet()
    for text, children in tree.items():
        element = fieldset.SELF if text == fieldset.SELF else canonical(text)
        if element is not None:
            node[element] = fieldset.EMPTY if element == fieldset.SELF else read_member(children)
    return node or fieldset.LEAF


def _outer_node(tree: Any) -> FieldSet:
    """Return the node of metadata, spec or status."""
    return _node(tree, _cached_node)


def _cached_node(tree: Any) -> FieldSet:
    return _read_node(orjson.dumps(tree)) if tree else _inner_node(tree)


@memoize(CACHE_SIZE, max_length=MAX_LENGTH)
def _read_node(text: bytes) -> FieldSet:
    return _inner_node(orjson.loads(text))


def _inner_node(tree: Any) -> FieldSet:
    return _node(tree, _inner_node)


def encode(fields: FieldSet) -> dict[str, Any]:
    """Encode a set with sorted elements. Each node is encoded once and cached, so that sets share encoded parts."""
    if not hasattr(fields, "tree"):
        tree: dict[str, Any] = {fieldset.SELF: _LEAF} if fieldset.SELF in fields else {}
        for element in sorted_in_pieces(fields.keys() - {fieldset.SELF}, sort_key):
            node = fields[element]
            tree[element] = _LEAF if fieldset.is_leaf(node) else encode(node)
        fields.tree = tree
    return fields.tree
