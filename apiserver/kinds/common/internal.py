"""Structs and their diffs in kube-apiserver's messages: in upstream's internal types, with Go's field names.

The files in `data/` describe these types; they are loaded for the first message that needs them.
"""

import gzip
from collections.abc import Collection, Mapping, Sequence
from difflib import unified_diff
from functools import cache
from itertools import islice
from pkgutil import get_data
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.json import decode

from mockube.apimachinery import gotext
from mockube.apimachinery.piecewise import release_in_pieces, sorted_items
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree

from .validation_context import is_before, validated_minor

_NAMES_OF_FILES: Final = 2
"""The number of lines with file names at the start of a unified diff, which are omitted."""
_CONTEXT: Final = 3
_MAX_COMPARED: Final = 4_000
"""The maximum of lines that are compared as upstream does, in quadratic time: half a second for so many lines."""
_MAX_SHOWN: Final = 1_000
"""The maximum of lines of each part of a larger diff, so that the error is not too long."""


def difference(struct: str, old: ReadOnlyTree, new: ReadOnlyTree, *, without: Collection[str] = ()) -> str:
    """Return the diff of two trees of an internal type, such as `core.PodSpec`, without the fields in `without`."""
    before, after = (_lines_of_struct(struct, tree, without) for tree in (old, new))
    is_small = len(before) + len(after) <= _MAX_COMPARED
    text = (
        "".join(islice(unified_diff(before, after), _NAMES_OF_FILES, None))
        if is_small
        else _plain_difference(before, after)
    )
    release_in_pieces(before)
    release_in_pieces(after)
    return text


def _lines_of_struct(struct: str, tree: ReadOnlyTree, without: Collection[str]) -> list[str]:
    fields = internal(struct, tree)
    lines = _lines({name: value for name, value in fields.items() if name not in without})
    _release_lists(fields)
    return lines


def _plain_difference(before: Sequence[str], after: Sequence[str]) -> str:
    """Return a diff with all lines between the first and the last difference, in linear time."""
    if before == after:
        return ""
    fewer = min(len(before), len(after))
    start = next((index for index in range(fewer) if before[index] != after[index]), fewer)
    end = next(
        (index for index in range(fewer - start) if before[-1 - index] != after[-1 - index]), fewer - start
    )
    first = max(start - _CONTEXT, 0)
    last = max(end - _CONTEXT, 0)
    head = f"@@ -{first + 1},{len(before) - last - first} +{first + 1},{len(after) - last - first} @@\n"
    parts = (
        _part(" ", before, first, start),
        _part("-", before, start, len(before) - end),
        _part("+", after, start, len(after) - end),
        _part(" ", before, len(before) - end, len(before) - last),
    )
    return head + "".join(parts)


def _part(sign: str, lines: Sequence[str], start: int, end: int) -> str:
    """Return the lines in [start, end), each after the sign; of many lines, only the first ones."""
    cut = min(end, start + _MAX_SHOWN)
    text = "".join([f"{sign}{line}" for line in lines[start:cut]])
    return text if cut == end else f"{text}{sign}... ({end - cut} more lines)\n"


def _lines(value: Mapping[str, Any]) -> list[str]:
    return [f"{line}\n" for line in gotext.marshal_indent(value)]


class _OwnList(list[Any]):
    """A list that has no references outside of the struct."""


def _release_lists(tree: Mapping[str, Any] | _OwnList) -> None:
    """Free the items of a struct's lists in pieces: there may be a million."""
    for value in tree.values() if isinstance(tree, Mapping) else tree:
        if isinstance(value, dict | _OwnList):
            _release_lists(value)
    if isinstance(tree, _OwnList):
        release_in_pieces(tree)


class _Field(Struct, frozen=True):
    name: str = ""
    source: str = field(default="", name="from")
    zero: Any = None
    struct: str = ""
    shape: str = ""
    omit: str = ""

    def omits(self, value: Any) -> bool:
        return value is None if self.omit == "nil" else self.omit == "empty" and not value


_Structs: TypeAlias = Mapping[str, tuple[_Field, ...]]


@cache
def _newest_structs() -> _Structs:
    return decode(_read("newest"), type=dict[str, tuple[_Field, ...]])


@cache
def _older_structs(minor: str) -> _Structs:
    """Return the structs of an older minor: each has its differences from the next one, and the oldest ones have none."""
    structs = dict(_newest_structs())
    for older, differences in decode(_read("older"), type=dict[str, dict[str, tuple[_Field, ...]]]).items():
        if not minors.is_before(older, minor):
            structs |= differences
    return structs


def _structs() -> _Structs:
    minor = validated_minor()
    return _newest_structs() if minor == minors.NEWEST else _older_structs(minor)


def _read(name: str) -> bytes:
    packed = get_data(__package__, f"data/{name}.json.gz")
    assert packed is not None, "the package is installed where its files can be read"
    return gzip.decompress(packed)


def internal(struct: str, tree: ReadOnlyTree) -> dict[str, Any]:
    """Return a struct in upstream's internal type of that name, such as `core.PodSpec`, as Go prints it."""
    if struct == _POD_SPEC and is_before("1.37"):
        tree = _with_context(tree)
    internal_fields: dict[str, Any] = {}
    for row in _structs()[struct]:
        value = tree.get(row.source)
        if row.shape == "inline":
            internal_fields |= internal(row.struct, value or {})
        elif not row.omits(value):
            internal_fields[row.name] = _internal_value(
                row, value if row.source else tree.get(_MOVED.get(row.name, ""))
            )
    return internal_fields


def _internal_value(row: _Field, value: Any) -> Any:
    if value is None:
        return internal(row.struct, {}) if row.struct and row.zero is not None else row.zero
    if row.shape == "map":
        return {key: _item(row, item) for key, item in sorted_items(value)}
    if row.shape == "list":
        return _OwnList(_item(row, item) for item in value)
    return _item(row, value)


def _item(row: _Field, value: Any) -> Any:
    forms = _FORMS.get(row.struct)
    if forms is not None:
        return _one_of(*forms, value)
    return internal(row.struct, value) if row.struct and isinstance(value, dict) else value


def _one_of(name: str, others: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return the struct of a value that is a schema or something else, which is in the field `name`."""
    if isinstance(value, dict):
        return {**others, "Schema": internal(_SCHEMA, value)}
    items = value if isinstance(value, list) else ()
    if any(isinstance(item, dict) for item in items):
        value = [internal(_SCHEMA, item) for item in items]
    return {**others, "Schema": None, name: value}


_SCHEMA: Final = "apiextensions.JSONSchemaProps"
_FORMS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    f"{_SCHEMA}OrArray": ("JSONSchemas", {"Schema": None, "JSONSchemas": None}),
    f"{_SCHEMA}OrBool": ("Allows", {"Allows": True, "Schema": None}),
    f"{_SCHEMA}OrStringArray": ("Property", {"Schema": None, "Property": None}),
}
"""By struct that has a schema or something else: the field of something else, and the empty values of the fields."""


_POD_SPEC: Final = "core.PodSpec"
_MOVED: Final = {
    "HostNetwork": "hostNetwork",
    "HostPID": "hostPID",
    "HostIPC": "hostIPC",
    "ShareProcessNamespace": "shareProcessNamespace",
    "HostUsers": "hostUsers",
}
"""The fields of a pod's spec that the internal type of minors before 1.37 has in its security context."""


def _with_context(spec: ReadOnlyTree) -> ReadOnlyTree:
    moved = {name: spec[name] for name in _MOVED.values() if name in spec}
    context = spec.get("securityContext")
    return {**spec, "securityContext": {**(context or {}), **moved}} if moved or context is not None else spec
