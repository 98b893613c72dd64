"""Where an applied object has lists and objects that have one owner as a whole."""

from collections.abc import Iterator
from typing import Any

from mockube.apimachinery.patch.apply.atoms import RAW, Atom, ListAtom, MapAtom, Untyped
from mockube.apimachinery.patch.apply.elements import FIELD, INDEX, format_element


def atomic_paths(atom: Atom, value: Any, path: str = "") -> Iterator[str]:
    """The paths of what is atomic; what is under the keys of a map, rather than in fields, is not looked at."""
    if isinstance(value, dict) and isinstance(atom, MapAtom | Untyped):
        if atom.atomic:
            yield path
        for name, item in value.items():
            member = atom.member(name) if atom.declares(name) else None
            if member is not None:
                yield from atomic_paths(member, item, path + format_element(FIELD + name))
    elif isinstance(value, list) and isinstance(atom, ListAtom | Untyped):
        if isinstance(atom, Untyped) or atom.atomic:
            yield path
        items = RAW if isinstance(atom, Untyped) else atom.items
        for index, item in enumerate(value):
            yield from atomic_paths(items, item, path + format_element(f"{INDEX}{index}"))
