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
    before: Any
    """What it was; ABSENT if it was not set, or is not known."""
    version: Version | None
    """None if it was set before the history."""


def origins(versions: Sequence[Version]) -> Iterator[FieldOrigin]:
    """Yield the fields of the newest object among the versions, in its order: the last one, if it was deleted."""
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
    for path, value in values_of(newest).items():
        yield found.get(path) or FieldOrigin(path=path, value=value, before=ABSENT, version=None)
