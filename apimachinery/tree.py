"""A decoded object: its types, as every package names them, and the order of its members."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from mockube.apimachinery.pieces import sorted_in_pieces

Tree: TypeAlias = dict[str, Any]
"""An object that its holder may change."""

ReadOnlyTree: TypeAlias = Mapping[str, Any]
"""An object that is shared and must not be changed."""


def sorted_keys(value: Any) -> Any:
    """Return the value with the members of its objects in the order of their names, as Go writes maps."""
    if isinstance(value, dict):
        return {name: sorted_keys(value[name]) for name in sorted_in_pieces(value)}
    return [*map(sorted_keys, value)] if isinstance(value, list) else value
