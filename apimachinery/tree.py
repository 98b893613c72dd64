"""The type aliases of decoded objects, and the sorting of their keys."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from mockube.apimachinery.piecewise import sorted_in_pieces

Tree: TypeAlias = dict[str, Any]
"""A decoded object that its owner may change."""

ReadOnlyTree: TypeAlias = Mapping[str, Any]
"""A decoded object that is shared and must not be changed."""


def sorted_keys(value: Any) -> Any:
    """Return a value with the keys of all its objects sorted, as Go encodes maps."""
    if isinstance(value, dict):
        return {name: sorted_keys(value[name]) for name in sorted_in_pieces(value)}
    return [*map(sorted_keys, value)] if isinstance(value, list) else value
