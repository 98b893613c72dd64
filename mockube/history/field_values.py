"""Objects as values by the paths of their fields, as kubectl explain and JSONPath write these."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import orjson
import yaml
from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.text_pairs import shortened_pair

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_NAMING_FIELDS: Final = ("name", "type")
ABSENT: Final = object()
"""The value of a field that is not set."""
MAX_VALUE: Final = 60
"""The characters of a value that is printed on a line."""


class FieldChange(Struct, frozen=True):
    """The change of a field; ABSENT for a value that is not set."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.before is ABSENT:
            return f"{self.path}: {show(self.after)}"
        before, after = shortened_pair(_text(self.before), _text(self.after), MAX_VALUE)
        return f"{self.path}: {before} -> {after}"


def values_of(tree: ReadOnlyTree | None) -> Mapping[str, Any]:
    """Return the values of an object by their paths; empty objects and lists are values, too."""
    return {} if tree is None else dict(_walk("", tree))


def changes_of(before: ReadOnlyTree | None, after: ReadOnlyTree | None) -> list[FieldChange]:
    """Return the fields that differ, in the order of the newer object, and then those that it has not."""
    old, new = values_of(before), values_of(after)
    changed = [
        FieldChange(path, old.get(path, ABSENT), value)
        for path, value in new.items()
        if path not in old or not _is_same(old[path], value)
    ]
    return changed + [FieldChange(path, value, ABSENT) for path, value in old.items() if path not in new]


def is_below(path: str, field: str) -> bool:
    """Return whether a path is that of a field, or of a part of it."""
    return path == field or path.startswith((f"{field}.", f"{field}["))


def only_fields(tree: ReadOnlyTree, fields: AbstractSet[str]) -> ReadOnlyTree:
    """Return an object with some of its fields alone, and with those below them."""
    only: ReadOnlyTree = _only("", tree, fields)
    return only


def show(value: Any) -> str:
    return shortened_pair(_text(value), "", MAX_VALUE)[0]


def _text(value: Any) -> str:
    return "(not set)" if value is ABSENT else orjson.dumps(value).decode()


def unified_diff(
    before: ReadOnlyTree | None, after: ReadOnlyTree | None, *, old: str, new: str
) -> Iterator[str]:
    """Yield the lines of the difference of two objects as YAML."""
    yield from difflib.unified_diff(
        _lines(before),
        _lines(after),
        "/dev/null" if before is None else old,
        "/dev/null" if after is None else new,
        lineterm="",
    )


def _lines(tree: ReadOnlyTree | None) -> list[str]:
    if tree is None:
        return []
    return yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).splitlines()


def _only(path: str, value: Any, fields: AbstractSet[str]) -> Any:
    if any(is_below(path, field) for field in fields):
        return value
    if isinstance(value, Mapping):
        members = {name: (_joined(path, name), member) for name, member in value.items()}
        return {name: _only(*each, fields) for name, each in members.items() if _has_part(each[0], fields)}
    if isinstance(value, list):
        labelled = [(f"{path}[{label}]", member) for label, member in zip(_labels(value), value, strict=True)]
        return [_only(*each, fields) for each in labelled if _has_part(each[0], fields)]
    return value


def _has_part(path: str, fields: AbstractSet[str]) -> bool:
    return any(is_below(path, field) or is_below(field, path) for field in fields)


def _walk(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _walk(_joined(path, name), member)
    elif isinstance(value, list) and value:
        for label, member in zip(_labels(value), value, strict=True):
            yield from _walk(f"{path}[{label}]", member)
    else:
        yield path, value


def _labels(members: Sequence[Any]) -> Sequence[object]:
    """Return what the members of a list are called: by their names or types, as containers and conditions, else by their places."""
    for field in _NAMING_FIELDS:
        names = [
            member[field]
            for member in members
            if isinstance(member, Mapping) and isinstance(member.get(field), str) and member[field]
        ]
        if len({*names}) == len(members):
            return [name if _PLAIN.fullmatch(name) else orjson.dumps(name).decode() for name in names]
    return range(len(members))


def _joined(path: str, name: str) -> str:
    if _PLAIN.fullmatch(name) is None:
        return f"{path}[{orjson.dumps(name).decode()}]"
    return f"{path}.{name}" if path else name


def _is_same(old: Any, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)
