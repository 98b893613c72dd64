"""Secrets without their secret values, as they are shown to people and kept in records."""

from collections.abc import Sequence
from typing import Any, Final

MASK: Final = "**********"
_FIELDS: Final = ("data", "stringData")
_ANNOTATIONS: Final = ["metadata", "annotations"]


def masked(value: Any, path: Sequence[str] = ()) -> Any:
    """Return a Secret, or the value at a path of one, with the names of its secret values, and a mask in place of each.

    The annotation of `kubectl apply` contains the whole object, and is masked, too.
    """
    if isinstance(value, dict):
        return {name: masked(member, [*path, name]) for name, member in value.items()}
    is_applied = [*path[:2]] == _ANNOTATIONS and len(path) > 2 and "last-applied" in path[2]
    is_secret = bool(path) and path[0] in _FIELDS
    return MASK if is_secret or is_applied else value
