"""Ratcheting: errors of a value that an update does not change are ignored, by upstream's comparison.

Elements of a list of type map are matched by their keys, in any order. A member that the schema does not declare cannot
be compared: an object with such a member has changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from mockube.apimachinery.patch.draft import equal

from .schema import LIST_TYPE, MAP_KEYS, Schema, properties


def is_unchanged(schema: Schema, value: Any, old: Any) -> bool:
    if isinstance(value, dict) and isinstance(old, dict):
        return _has_same_members(schema, value, old)
    if isinstance(value, list) and isinstance(old, list) and schema.get(LIST_TYPE) == "map":
        return _has_same_elements(schema, value, old)
    return equal(value, old)


def _has_same_members(schema: Schema, value: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    if value.keys() != old.keys():
        return False
    declared_properties, others = properties(schema), schema.get("additionalProperties")
    for name, member in value.items():
        part = declared_properties.get(name, others)
        if not isinstance(part, Mapping) or not is_unchanged(part, member, old[name]):
            return False
    return True


def _has_same_elements(schema: Schema, value: Sequence[Any], old: Sequence[Any]) -> bool:
    keys, part = map_keys(schema), schema.get("items") or {}
    old_elements = elements_by_keys(old, keys)
    return len(value) == len(old) and all(
        (old_element := old_elements.get(keys_of(element, keys))) is not None
        and is_unchanged(part, element, old_element)
        for element in value
    )


def map_keys(schema: Schema) -> Sequence[str]:
    """Return the members that identify the elements of a list of type map."""
    return tuple(schema.get(MAP_KEYS) or ()) if schema.get(LIST_TYPE) == "map" else ()


def elements_by_keys(elements: Sequence[Any], keys: Sequence[str]) -> Mapping[bytes, Any]:
    return {keys_of(element, keys): element for element in elements if isinstance(element, dict)}


def keys_of(element: Any, keys: Sequence[str]) -> bytes:
    return orjson.dumps([element.get(key) for key in keys] if isinstance(element, dict) else None)
