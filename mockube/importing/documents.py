"""Read the objects of a YAML or JSON file, which may have several documents and lists, with their positions.

A list as kubectl prints it is parsed item by item: other items are read if one is invalid, and the parser does not limit
the length of the list. Pure.
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
_ITEMS_FIELD: Final = re.compile(rb"items:\s*\Z")
_ITEM_LINE_PREFIXES: Final = (b"- ", b" ", b"#", b"\n", b"\r")
"""The beginnings of the lines of a list of items."""


class Origin(Struct, frozen=True, kw_only=True):
    """The position of an object in a file."""

    file: str
    document: int
    item: int = 0
    """The number in a list, from 1; 0 outside of a list."""

    def __str__(self) -> str:
        item = f", item {self.item}" if self.item else ""
        return f"{self.file}: document {self.document}{item}"


class Document(Struct, frozen=True, kw_only=True):
    origin: Origin
    tree: Mapping[str, Any]


class InvalidDocument(Struct, frozen=True, kw_only=True):
    """A document or item that is not an object."""

    origin: Origin
    problem: str


def read(data: bytes, file: str) -> Iterator[Document | InvalidDocument]:
    """Yield every object of a file, or its problem, in order."""
    number = 0
    for text in _SEPARATOR.split(data):
        for item, tree in _parse_document(text):
            number += item <= 1
            yield _check(tree, Origin(file=file, document=number, item=item))


def _parse_document(text: bytes) -> Iterator[tuple[int, Any]]:
    """Yield each object or error of a document, with its number in a list, or 0 if the document is not a list."""
    try:
        head, items = _split_list(text)
        tree = _parse_text(head)
        if tree is None:
            return
        if not _is_list(tree):
            yield 0, _parse_text(text) if items else tree
        elif items:
            yield from ((number, _parse_item(item, tree)) for number, item in enumerate(items, 1))
        else:
            list_items = tree.get("items") or ()
            yield from ((number, _with_kind(item, tree)) for number, item in enumerate(list_items, 1))
    except YamlError as error:
        yield 0, error


def _parse_item(text: bytes, list_tree: Mapping[str, Any]) -> Any:
    try:
        return _with_kind(_parse_text(text), list_tree)
    except YamlError as error:
        return error


def _with_kind(item: Any, list_tree: Mapping[str, Any]) -> Any:
    """Add the kind to an item of a list of one kind, whose items omit it."""
    kind = list_tree["kind"].removesuffix("List")
    if not kind or not isinstance(item, Mapping) or "kind" in item:
        return item
    return {"apiVersion": list_tree.get("apiVersion"), "kind": kind, **item}


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
    """The fields that are checked before the object is sent to the server, which validates the rest."""

    api_version: str
    kind: str
    metadata: _Metadata


def _check(tree: Any, origin: Origin) -> Document | InvalidDocument:
    if isinstance(tree, YamlError):
        return InvalidDocument(origin=origin, problem=str(tree))
    try:
        GroupVersion.parse(msgspec.convert(tree, _Object).api_version)
    except ValueError as error:  # msgspec.ValidationError is a subclass
        return InvalidDocument(origin=origin, problem=f"is not an object: {error}")
    return Document(origin=origin, tree=tree)


def _is_list(tree: Any) -> bool:
    """Return whether a tree is a list: it has `items` and no name, which every object has."""
    if not isinstance(tree, Mapping) or not str(tree.get("kind", "")).endswith("List"):
        return False
    metadata = tree.get("metadata")
    has_name = isinstance(metadata, Mapping) and "name" in metadata
    return isinstance(tree.get("items", 0), list | NoneType) and not has_name


def _parse_text(text: bytes) -> Any:
    if text.lstrip()[:1] == b"{":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # it may be YAML in flow style, whose errors are also clearer
    return load(text).tree


def _split_list(text: bytes) -> tuple[bytes, Sequence[bytes]]:
    """Return a list as kubectl prints it as the text around its items, and the items; or the whole text, and no items."""
    lines = text.splitlines(keepends=True)
    start = next((index for index, line in enumerate(lines) if _ITEMS_FIELD.match(line)), None)
    if start is None or not lines[start + 1 : start + 2] or not lines[start + 1].startswith(b"- "):
        return text, ()
    end = next(
        (index for index in range(start + 1, len(lines)) if not lines[index].startswith(_ITEM_LINE_PREFIXES)),
        len(lines),
    )
    starts = [index for index in range(start + 1, end) if lines[index].startswith(b"- ")]
    items = [
        b" " + b"".join(lines[first:after])[1:]
        for first, after in zip(starts, [*starts[1:], end], strict=True)
    ]
    return b"".join([*lines[: start + 1], *lines[end:]]), items
