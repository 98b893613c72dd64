"""Read a file: YAML or JSON, of many documents, with lists in them. Each object has its position.

A list as kubectl prints it is read item by item, so that one that cannot be read does not keep the others away, and
that its length does not matter. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

_SEPARATOR: Final = re.compile(rb"^---[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_ITEMS: Final = re.compile(rb"items:\s*\Z")
_BELONGS_TO_ITEMS: Final = (b"- ", b" ", b"#", b"\n", b"\r")
"""The beginning of a line that belongs to the items: an item, or a line of one."""


class Origin(Struct, frozen=True, kw_only=True):
    file: str
    document: int
    item: int = 0
    """In a list, from 1 on."""

    def __str__(self) -> str:
        item = f", item {self.item}" if self.item else ""
        return f"{self.file}: document {self.document}{item}"


class Document(Struct, frozen=True, kw_only=True):
    origin: Origin
    tree: Mapping[str, Any]


class Unreadable(Struct, frozen=True, kw_only=True):
    origin: Origin
    problem: str


def read(data: bytes, file: str) -> Iterator[Document | Unreadable]:
    """Every object, in order."""
    number = 0
    for text in _SEPARATOR.split(data):
        for item, tree in _of_document(text):
            number += item <= 1
            yield _check(tree, Origin(file=file, document=number, item=item))


def _of_document(text: bytes) -> Iterator[tuple[int, Any]]:
    """Objects, or what is wrong with them; with their numbers if it is a list, else with 0."""
    try:
        head, items = _cut(text)
        tree = _load(head)
        if tree is None:
            return
        if not _is_list(tree):
            yield 0, _load(text) if items else tree
        elif items:
            yield from ((number, _item(item, tree)) for number, item in enumerate(items, 1))
        else:
            list_items = tree.get("items") or ()
            yield from ((number, _with_kind(item, tree)) for number, item in enumerate(list_items, 1))
    except YamlError as error:
        yield 0, error


def _item(text: bytes, of: Mapping[str, Any]) -> Any:
    try:
        return _with_kind(_load(text), of)
    except YamlError as error:
        return error


def _with_kind(item: Any, of: Mapping[str, Any]) -> Any:
    """Items of a list of one kind leave out which it is."""
    kind = of["kind"].removesuffix("List")
    if not kind or not isinstance(item, Mapping) or "kind" in item:
        return item
    return {"apiVersion": of.get("apiVersion"), "kind": kind, **item}


class _Reference(Struct, rename="camel"):
    api_version: str
    kind: str
    name: str
    uid: str


class _Metadata(Struct, rename="camel"):
    name: str
    namespace: str | None = None
    uid: str | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    owner_references: Sequence[_Reference] | None = None
    deletion_timestamp: str | None = None


class _Object(Struct, rename="camel"):
    """The fields that are checked before a server gets the object: the server validates the rest."""

    api_version: str
    kind: str
    metadata: _Metadata


def _check(tree: Any, origin: Origin) -> Document | Unreadable:
    if isinstance(tree, YamlError):
        return Unreadable(origin=origin, problem=str(tree))
    try:
        GroupVersion.parse(msgspec.convert(tree, _Object).api_version)
    except ValueError as error:  # msgspec's own is one
        return Unreadable(origin=origin, problem=f"is not an object: {error}")
    return Document(origin=origin, tree=tree)


def _is_list(tree: Any) -> bool:
    """An object has a name, whatever its kind is called and whatever fields it has."""
    if not isinstance(tree, Mapping) or not str(tree.get("kind", "")).endswith("List"):
        return False
    metadata = tree.get("metadata")
    has_name = isinstance(metadata, Mapping) and "name" in metadata
    return isinstance(tree.get("items", 0), list | NoneType) and not has_name


def _load(text: bytes) -> Any:
    if text.lstrip()[:1] == b"{":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # YAML has braces as well, and its errors are clearer
    return load(text).tree


def _cut(text: bytes) -> tuple[bytes, Sequence[bytes]]:
    """A list as kubectl prints it: what stands around its items, and each of them; or all there is, and none."""
    lines = text.splitlines(keepends=True)
    start = next((index for index, line in enumerate(lines) if _ITEMS.match(line)), None)
    if start is None or not lines[start + 1 : start + 2] or not lines[start + 1].startswith(b"- "):
        return text, ()
    end = next(
        (index for index in range(start + 1, len(lines)) if not lines[index].startswith(_BELONGS_TO_ITEMS)),
        len(lines),
    )
    starts = [index for index in range(start + 1, end) if lines[index].startswith(b"- ")]
    items = [
        b" " + b"".join(lines[first:after])[1:]
        for first, after in zip(starts, [*starts[1:], end], strict=True)
    ]
    return b"".join([*lines[: start + 1], *lines[end:]]), items
