"""Read the objects of a YAML or JSON file, which may have several documents and lists (also JSON's arrays), with their positions.

`read` checks that they are objects, `parse` returns whatever the file contains. A list as kubectl prints it is parsed item
by item: other items are read if one is invalid, and the parser does not limit the length of the list. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.yaml_decode import LoadedDocument, load
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


class Parsed(Struct, frozen=True, kw_only=True):
    """What a document or an item of a list contains, which need not be an object, and the text in which it is."""

    origin: Origin
    tree: Any = None
    error: YamlError | None = None
    """Why the text cannot be parsed."""
    strict_errors: Sequence[str] = ()
    """Duplicate keys."""
    text: bytes
    first_line: int
    """The number of the text's first line in the file, from 1."""
    path: tuple[str | int, ...] = ()
    """The path of the value in the text."""


def read(data: bytes, file: str) -> Iterator[Document | InvalidDocument]:
    """Yield every object of a file, or its problem, in order."""
    return (_check(parsed) for parsed in parse(data, file))


def parse(data: bytes, file: str) -> Iterator[Parsed]:
    """Yield the content of every document of a file in order, and that of every item instead of a list."""
    number = 1
    for text, first_line in _split_documents(data):
        document = Parsed(origin=Origin(file=file, document=number), text=text, first_line=first_line)
        for parsed in _parse_document(document):
            yield parsed
            number = parsed.origin.document + 1  # empty documents do not count


def _split_documents(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the text of each document with the number of its first line."""
    start, line = 0, 1
    for separator in _SEPARATOR.finditer(data):
        yield data[start : separator.start()], line
        line += data.count(b"\n", start, separator.end())
        start = separator.end()
    yield data[start:], line


def _parse_document(document: Parsed) -> Iterator[Parsed]:
    """Yield a document with its content, or each item if it is a list; nothing if it is empty."""
    try:
        head, items = _split_list(document.text)
        value = _parse_text(head)
        if value.tree is None:
            return
        if isinstance(value.tree, list):
            yield from _items(document, value, value.tree)
        elif not is_list(value.tree):
            yield _with_value(document, _parse_text(document.text) if items else value)
        elif items:
            for number, (text, index) in enumerate(items, 1):
                item = replace(_item(document, number), text=text, first_line=document.first_line + index)
                yield from _flattened(_parse_item(item, value.tree))
        else:
            trees = [with_kind(tree, value.tree) for tree in value.tree.get("items") or ()]
            yield from _items(document, value, trees, "items")
    except YamlError as error:
        yield replace(document, error=error)


def _items(document: Parsed, value: LoadedDocument, trees: Sequence[Any], *path: str) -> Iterator[Parsed]:
    """Yield the items of a list in a document; the list is at the path."""
    for number, tree in enumerate(trees, 1):
        loaded = LoadedDocument(tree, value.strict_errors if number == 1 else ())
        yield from _flattened(replace(_with_value(_item(document, number), loaded), path=(*path, number - 1)))


def _flattened(item: Parsed) -> Iterator[Parsed]:
    """Yield an item of a list, or the items of the list that it is, which have its number."""
    if not is_list(item.tree):
        yield item
        return
    for index, tree in enumerate(item.tree.get("items") or ()):
        yield from _flattened(
            replace(
                item,
                tree=with_kind(tree, item.tree),
                path=(*item.path, "items", index),
                strict_errors=item.strict_errors if index == 0 else (),
            )
        )


def _item(document: Parsed, number: int) -> Parsed:
    return replace(document, origin=replace(document.origin, item=number))


def _parse_item(item: Parsed, list_tree: Mapping[str, Any]) -> Parsed:
    try:
        value = _parse_text(item.text)
    except YamlError as error:
        return replace(item, error=error)
    return _with_value(item, LoadedDocument(with_kind(value.tree, list_tree), value.strict_errors))


def _with_value(parsed: Parsed, value: LoadedDocument) -> Parsed:
    return replace(parsed, tree=value.tree, strict_errors=value.strict_errors)


def with_kind(item: Any, list_tree: Mapping[str, Any]) -> Any:
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


def object_problem(tree: Any) -> str:
    """Return why a value is not an object with a name; "" if it is one."""
    if not isinstance(tree, Mapping):
        return f"it is {type_name(tree)}"
    try:
        GroupVersion.parse(msgspec.convert(tree, _Object).api_version)
    except msgspec.ValidationError as error:
        return _in_words(str(error))
    except ValueError as error:
        return str(error)
    return ""


_MISSING: Final = re.compile(r"Object missing required field `(\w+)`(?: - at `\$\.(.+)`)?")
_WRONG_TYPE: Final = re.compile(r"Expected `(\w++)[^`]*+`, got `(\w++)` - at `(?:key in )?\$\.(.+)`")
_NAMES: Final = {
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "a boolean",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""Types in messages, by their names in those of msgspec."""


def _in_words(problem: str) -> str:
    """Return a message of msgspec as mockube words it."""
    if missing := _MISSING.fullmatch(problem):
        return f"{f'{missing[2]}.' if missing[2] else ''}{missing[1]} is not set"
    if wrong := _WRONG_TYPE.fullmatch(problem):
        expected, found = (_NAMES.get(name, name) for name in wrong.group(1, 2))
        return f"{wrong[3]} is {found}, and must be {expected}"
    return problem


def type_name(value: object) -> str:
    """Return what a value of a text is, for messages."""
    names = {str: "a text", list: "a list", dict: "an object", bool: "a boolean", NoneType: "null"}
    return names.get(type(value), "a number")


def _check(parsed: Parsed) -> Document | InvalidDocument:
    if parsed.error is not None:
        return InvalidDocument(origin=parsed.origin, problem=str(parsed.error))
    problem = object_problem(parsed.tree)
    if problem:
        return InvalidDocument(origin=parsed.origin, problem=f"not an object: {problem}")
    return Document(origin=parsed.origin, tree=parsed.tree)


def is_list(tree: Any) -> bool:
    """Return whether a tree is a list: it has `items`, and no name, which every object has. A `List` may have one."""
    if not isinstance(tree, Mapping) or not str(tree.get("kind", "")).endswith("List"):
        return False
    metadata = tree.get("metadata")
    is_of_one_kind = tree["kind"].removesuffix("List") != ""
    is_named_object = is_of_one_kind and isinstance(metadata, Mapping) and "name" in metadata
    return isinstance(tree.get("items", 0), list | NoneType) and not is_named_object


def _parse_text(text: bytes) -> LoadedDocument:
    if text.lstrip()[:1] in {b"{", b"["}:
        try:
            return LoadedDocument(orjson.loads(text))
        except orjson.JSONDecodeError:
            pass  # it may be YAML in flow style, whose errors are also clearer
    return load(text)


def _split_list(text: bytes) -> tuple[bytes, Sequence[tuple[bytes, int]]]:
    """Return a list as kubectl prints it: the text around its items, and the items with the indexes of their first lines.

    For other texts, return the whole text, and no items.
    """
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
        (b" " + b"".join(lines[first:after])[1:], first)
        for first, after in zip(starts, [*starts[1:], end], strict=True)
    ]
    return b"".join([*lines[: start + 1], *lines[end:]]), items
