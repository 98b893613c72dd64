"""Which write set each field of an object."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from .field_values import ABSENT, values_of
from .versions import Version


class FieldOrigin(Struct, frozen=True, kw_only=True):
    """A field of an object, and the write that gave it its value."""

    path: str
    value: Any
    """ABSENT if the write removed it."""
    before: Any
    """What it was; ABSENT if it was not set, or is not known."""
    version: Version | None
    """None if it was set before the history."""


def origins(versions: Sequence[Version]) -> Iterator[FieldOrigin]:
    """Yield the fields of the newest object among the versions, in its order, and then those that were removed.

    The newest one is the last one before its deletion. A field that was set again, or has parts now, is not one that was removed.
    """
    found: dict[str, FieldOrigin] = {}
    first = versions[0].before if versions else None
    for path, value in values_of(first).items():
        found[path] = FieldOrigin(path=path, value=value, before=ABSENT, version=None)
    newest = first
    for version in versions:
        if version.after is None:
            continue
        if version.type == "ADDED":
            found = {}
        for change in version.changes():
            found[change.path] = FieldOrigin(
                path=change.path, value=change.after, before=change.before, version=version
            )
        newest = version.after
    present = values_of(newest)
    for path, value in present.items():
        yield found.get(path) or FieldOrigin(path=path, value=value, before=ABSENT, version=None)
    with_parts = {path[:end] for path in present for end in _ends_of_parents(path)}
    for path, origin in found.items():
        if path not in present and path not in with_parts:
            yield origin


def _ends_of_parents(path: str) -> Iterator[int]:
    """Yield where the paths of the fields end that a path is below."""
    return (position for position, character in enumerate(path) if character in ".[")
