"""The directives in strategic merge patches, and their removal."""

from typing import Any, Final

DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
MERGE: Final = "merge"

RETAIN: Final = "retainKeys"
"""The patch strategy of a type whose patches contain `RETAIN_KEYS`."""

RETAIN_KEYS: Final = f"${RETAIN}"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"

_DROPPED: Final = object()


def without_directives(value: Any) -> Any:
    """Return a value without objects that are directives, at any depth; None if it is a directive itself."""
    plain_value = _without_directives(value)
    return None if plain_value is _DROPPED else plain_value


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _DROPPED
        members = ((key, _without_directives(item)) for key, item in value.items())
        return {key: item for key, item in members if item is not _DROPPED}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not _DROPPED]
    return value


def is_deletion(item: Any) -> bool:
    """Return whether an item of a list is a directive that deletes the element with its key."""
    return isinstance(item, dict) and item.get(DIRECTIVE) == DELETE
