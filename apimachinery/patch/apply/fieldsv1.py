"""Field sets as `fieldsV1` has them: the same tree, in which an empty object is a place with none below it.

Decoding and encoding are cached by text, for managers own the same fields of many objects and for long.
"""

from typing import Any, Final, NamedTuple

import orjson

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.patch.apply.elements import MalformedFields, canonical, sort_key
from mockube.apimachinery.patch.apply.fieldset import EMPTY, LEAF, SELF, FieldSet, is_leaf
from mockube.apimachinery.pieces import sorted_in_pieces

CACHE_SIZE: Final = 1024
MAX_LENGTH: Final = 16 * 1024

_LEAF: Final[dict[str, Any]] = {}


class DecodedFields(NamedTuple):
    text: bytes
    fields: FieldSet


def decode(tree: Any) -> DecodedFields:
    """Steps of kinds that are not known are left out."""
    return read(orjson.dumps(tree))


@memoize(CACHE_SIZE, max_length=MAX_LENGTH)
def read(text: bytes) -> DecodedFields:
    fields = FieldSet(_node(orjson.loads(text)))
    fields.pop(SELF, None)
    return DecodedFields(text, fields)


def _node(tree: Any) -> FieldSet:
    if tree is None:  # the library reads no members from it
        return LEAF
    if not isinstance(tree, dict):
        raise MalformedFields(f"expected an object: {orjson.dumps(tree).decode()}")
    node = FieldSet()
    for text, below in tree.items():
        element = SELF if text == SELF else canonical(text)
        if element is not None:
            node[element] = EMPTY if element == SELF else _node(below)
    return node or LEAF


def encode(fields: FieldSet) -> dict[str, Any]:
    """A set as it is written, with all steps in order. The parts that sets share are made once."""
    if not hasattr(fields, "tree"):
        tree: dict[str, Any] = {SELF: _LEAF} if SELF in fields else {}
        for element in sorted_in_pieces(fields.keys() - {SELF}, sort_key):
            node = fields[element]
            tree[element] = _LEAF if is_leaf(node) else encode(node)
        fields.tree = tree
    return fields.tree
