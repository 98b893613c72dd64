"""Names of custom resources: a definition gets those that no other of its group was given before it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Names: TypeAlias = Mapping[str, Any]

_OF_RESOURCES: Final = ("plural", "singular", "shortNames")
_OF_KINDS: Final = ("kind", "listKind")
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class Verdict(NamedTuple):
    accepted: dict[str, Any]
    """The names as they are given from now on: those that are somebody else's stay as they were."""
    reason: str = ""
    problem: str = ""
    """Why not all are accepted."""


def judge(asked: Names, given: Names, taken: Sequence[Names]) -> Verdict:
    """`given` is what the definition was given before, `taken` what others of its group were."""
    accepted = {"categories": asked["categories"]} if asked.get("categories") else {}
    found = []
    for fields in (_OF_RESOURCES, _OF_KINDS):
        others = {name for names in taken for name in _every(names, fields)}
        for field in fields:
            in_use = [name for name in _texts(asked.get(field)) if name in others]
            kept = given.get(field) if in_use else asked.get(field)
            if kept:
                accepted[field] = kept
            found += [(_REASONS[field], f'"{name}" is already in use') for name in in_use]
    accepted |= {field: "" for field in ("plural", "kind") if field not in accepted}
    if not found:
        return Verdict(accepted)
    return Verdict(accepted, found[0][0], found[0][1])


def _every(names: Names, fields: Iterable[str]) -> Iterable[str]:
    return [name for field in fields for name in _texts(names.get(field))]


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value else []
    return value or ()
