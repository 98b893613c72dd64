"""The types of a decoded object, as every package names them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, Any]
"""An object that belongs to its holder, who may change it."""

ReadOnlyTree: TypeAlias = Mapping[str, Any]
"""An object that is shared, which nobody may change."""
