"""Changes of a spec that are refused: those of fields that are not among the few that may change."""

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

Tree: TypeAlias = Mapping[str, Any]


def changes_beyond(new: Tree, old: Tree, changeable: Collection[str]) -> bool:
    """Whether another field changed; absent and empty are the same, as they are in Go's semantic comparison."""
    fields = {*new, *old} - {*changeable}
    return any((new.get(name) or None) != (old.get(name) or None) for name in fields)
