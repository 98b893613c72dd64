"""The type aliases of decoded objects, the sorting of their keys, and the removal of nulls."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from .piecewise import sorted_in_pieces

Tree: TypeAlias = dict[str, Any]
"""A decoded object that its owner may change."""

ReadOnlyTree: TypeAlias = Mapping[str, Any]
"""A decoded object that is shared and must not be changed."""

MALFORMED_OBJECT_ERRORS: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The exceptions that an object with fields of wrong types causes."""


def sorted_keys(value: Any) -> Any:
    """Return a value with the keys of all its objects sorted, as Go encodes maps."""
    if isinstance(value, dict):
        return {name: sorted_keys(value[name]) for name in sorted_in_pieces(value)}
    return [*map(sorted_keys, value)] if isinstance(value, list) else value


def without_nulls(value: Any) -> Any:
    """Return a value without the null fields of its objects at any depth; nulls in lists stay."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [*map(without_nulls, value)] if isinstance(value, list) else value
