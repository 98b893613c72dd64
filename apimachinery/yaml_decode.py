"""Decoding of YAML into JSON trees, by the rules of YAML 1.1 in sigs.k8s.io/yaml.

Keys become strings; `yaml_scalars` has the rules of all other scalars. The time is linear in the text: each event of
libyaml is processed once, and the size of an alias is counted before it is expanded. The limits of aliases are upstream's.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import yaml
from msgspec import Struct
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs leave it out
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from . import gotext, yaml_scalars
from .patch import gofmt
from .yaml_scalars import YamlError

MAX_DEPTH: Final = 200
"""Nested collections: each level is two calls of Python, whose stack has 1,000."""
MAX_ALIASED_TEXT: Final = 4 << 20
"""The maximum number of characters that aliases add to a document: more than a store accepts for one object."""
MAX_STRICT_ERRORS: Final = 100
"""The errors after which sigs.k8s.io/json stops to collect them (kubernetes_patch.go)."""
MAX_TAG_DIRECTIVES: Final = 100
"""The maximum number of %TAG directives. libyaml compares each with all before it."""
_CHUNK_BYTES: Final = 64 * 1024
"""The number of bytes per chunk for libyaml."""
_DIRECTIVES: Final = re.compile(rb"(?:\A|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf)%TAG")


class LoadedDocument(Struct, frozen=True):
    tree: Any
    strict_errors: tuple[str, ...] = ()
    """The errors of strict decoding: duplicate keys. The last value of a key counts."""


def load(data: bytes) -> LoadedDocument:
    """Decode the first document of a text; a text without a document is null."""
    return next(load_all(data), LoadedDocument(None))


def load_all(data: bytes) -> Iterator[LoadedDocument]:
    """Yield the documents of a text, each decoded on demand."""
    try:
        text = _to_utf8(data)
        if text.count(b"%TAG") > MAX_TAG_DIRECTIVES and _has_many_directives(text):
            raise YamlError("error converting YAML to JSON: yaml: too many %TAG directives")
        yield from _documents(CParser(text if len(text) <= _CHUNK_BYTES else _ChunkedReader(text)))
    except (yaml.YAMLError, UnicodeError) as error:
        raise yaml_scalars.yaml_error(_problem(error)) from error


class _ChunkedReader:
    """A stream that returns a long text in chunks, so that other threads can run while libyaml parses it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._start = 0

    def read(self, size: int = _CHUNK_BYTES, /) -> bytes:
        start = self._start
        self._start += min(size, _CHUNK_BYTES)
        return self._text[start : self._start]


def _documents(parser: Any) -> Iterator[LoadedDocument]:
    try:
        parser.get_event()  # the stream's start
        while type(parser.get_event()) is not StreamEndEvent:
            document = _Document(parser.get_event)
            tree = document.read()
            yield LoadedDocument(tree, document.strict_errors())
    finally:
        parser.dispose()


def _has_many_directives(text: bytes) -> bool:
    return any(islice(_DIRECTIVES.finditer(text), MAX_TAG_DIRECTIVES, None))


def _to_utf8(data: bytes) -> bytes:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16").encode()
    return data


def _problem(error: Exception) -> str:
    """Return the message of Go's library: its scanner counts lines from 1, its parser from 0, and line 0 is left out."""
    if isinstance(error, ReaderError):
        return str(error.reason)
    problem: str = getattr(error, "problem", None) or str(error)
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else problem


class SyntaxProblem(YamlError):
    """An error in a text rather than in a value; upstream finds these before it decodes values."""


def _syntax_problem(problem: str) -> SyntaxProblem:
    return SyntaxProblem(f"error converting YAML to JSON: yaml: {problem}")


class _Anchor:
    """An anchored value, with the costs of expanding an alias of it."""

    __slots__ = ("is_open", "nodes", "size", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.is_open = True
        """Whether the value is still being read: an alias inside it would make it contain itself."""
        self.nodes = 0
        self.size: int | None = None


class _Document:
    """A decoder of one document, which counts nodes as upstream does."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._anchors: dict[str, _Anchor] = {}
        self._nodes = 1  # the document itself
        self._aliased_nodes = 0
        self._aliased_text = 0
        self._duplicate_keys: list[str] = []

    def strict_errors(self) -> tuple[str, ...]:
        """Return the error about the duplicate keys, if there are any."""
        if not self._duplicate_keys:
            return ()
        return ("yaml: unmarshal errors:\n  " + "\n  ".join(self._duplicate_keys),)

    def read(self) -> Any:
        """Return the value of the document. As upstream, errors of syntax anywhere in it come before those of values."""
        try:
            tree = self.value(self._read(), 0)
        except SyntaxProblem:
            raise
        except YamlError:
            self._check_rest()
            raise
        self._read()  # the document's end, or an error if the document continues
        return tree

    def _check_rest(self) -> None:
        """Parse the rest of the document after an error in a value, and find anchors that are not defined."""
        anchors = {*self._anchors}
        while type(event := self._read()) not in (DocumentEndEvent, StreamEndEvent):
            if type(event) is AliasEvent and event.anchor not in anchors:
                raise _syntax_problem(f"unknown anchor '{event.anchor}' referenced")
            if getattr(event, "anchor", None) is not None:
                anchors.add(event.anchor)

    def value(self, event: Any, depth: int) -> Any:
        """Return the value that starts with an event."""
        kind, self._nodes = type(event), self._nodes + 1
        if kind is ScalarEvent:
            value = yaml_scalars.scalar_value(event)
            if event.anchor is not None:
                self._close(self._open(event, value), self._nodes - 1)
            return value
        if kind is AliasEvent:
            return self._expand(event, self._find_anchor(event))
        before = self._nodes - 1
        collection: Any = {} if kind is MappingStartEvent else []
        anchor = None if event.anchor is None else self._open(event, collection)
        if depth >= MAX_DEPTH:
            raise _syntax_problem("exceeded max depth")
        if kind is MappingStartEvent:
            self._fill_mapping(collection, depth + 1)
        else:
            self._fill_sequence(collection, depth + 1)
        if anchor is not None:
            self._close(anchor, before)
        return collection

    def _open(self, event: Any, value: Any) -> _Anchor:
        anchor = self._anchors[event.anchor] = _Anchor(value)
        return anchor

    def _close(self, anchor: _Anchor, before: int) -> None:
        anchor.is_open = False
        anchor.nodes = self._nodes - before

    def _fill_sequence(self, items: list[Any], depth: int) -> None:
        while type(event := self._read()) is not SequenceEndEvent:
            items.append(self.value(event, depth))

    def _fill_mapping(self, mapping: dict[str, Any], depth: int) -> None:
        while type(event := self._read()) is not MappingEndEvent:
            if yaml_scalars.is_merge(event):
                self._merge(mapping, depth)
                continue
            key = self.value(event, depth)
            if isinstance(key, dict | list):
                raise yaml_scalars.yaml_error(f"invalid map key: {_format_value(key)}")
            event = self._read()
            line = event.start_mark.line + 1
            self._set_key(mapping, key, self.value(event, depth), line)

    def _set_key(self, mapping: dict[str, Any], key: Any, value: Any, line: int) -> None:
        name = key if isinstance(key, str) else _key_text(key, value)
        if name in mapping and len(self._duplicate_keys) < MAX_STRICT_ERRORS:
            self._duplicate_keys.append(f"line {line}: key {_format_value(key)} already set in map")
        mapping[name] = value

    def _merge(self, target: dict[str, Any], depth: int) -> None:
        """Merge the mappings of a `<<` key: the first of a list wins, and later keys of `target` win over both."""
        event = self._read()
        if type(event) is not SequenceStartEvent:
            self._merge_mapping(target, self._mapping(event, depth), event)
            return
        if event.anchor is not None:
            self._close(self._open(event, []), self._nodes)  # the anchor of a merge list has no nodes
        maps: list[tuple[dict[str, Any], Any]] = []
        while type(event := self._read()) is not SequenceEndEvent:
            maps.append((self._mapping(event, depth), event))
        for mapping, start in reversed(maps):
            self._merge_mapping(target, mapping, start)

    def _merge_mapping(self, target: dict[str, Any], mapping: dict[str, Any], event: Any) -> None:
        line = event.start_mark.line + 1
        for key, value in mapping.items():
            self._set_key(target, key, value, line)

    def _mapping(self, event: Any, depth: int) -> dict[str, Any]:
        is_mapping = type(event) is MappingStartEvent or (
            type(event) is AliasEvent and isinstance(self._find_anchor(event).value, dict)
        )
        if not is_mapping:
            raise yaml_scalars.yaml_error("map merge requires map or sequence of maps as the value")
        mapping: dict[str, Any] = self.value(event, depth)
        return mapping

    def _find_anchor(self, event: Any) -> _Anchor:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise _syntax_problem(f"unknown anchor '{event.anchor}' referenced")
        return anchor

    def _expand(self, event: Any, anchor: _Anchor) -> Any:
        """Count the nodes of an alias and return a copy of its value."""
        if anchor.is_open:
            raise yaml_scalars.yaml_error(f"anchor '{event.anchor}' value contains itself")
        self._nodes += anchor.nodes
        self._aliased_nodes += anchor.nodes
        if self._aliased_nodes > 100 and self._nodes > 1000:
            self._check_ratio()
        if anchor.size is None:
            anchor.size = _size(anchor.value)
        self._aliased_text += anchor.size
        if self._aliased_text > MAX_ALIASED_TEXT:
            raise yaml_scalars.yaml_error("document contains excessive aliasing")
        return _copy(anchor.value)

    def _check_ratio(self) -> None:
        if self._aliased_nodes / self._nodes > allowed_alias_ratio(self._nodes):
            raise yaml_scalars.yaml_error("document contains excessive aliasing")


_FEW_NODES: Final = 400_000
_MANY_NODES: Final = 4_000_000


def allowed_alias_ratio(nodes: int) -> float:
    """Return the maximum ratio of a document's nodes from aliases: nearly all of a small document, a tenth of a large one."""
    if nodes <= _FEW_NODES:
        return 0.99
    if nodes >= _MANY_NODES:
        return 0.10
    return 0.99 - 0.89 * (nodes - _FEW_NODES) / (_MANY_NODES - _FEW_NODES)


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(key) + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str) else 1


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _key_text(key: Any, value: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        problem = f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_format_value(value)}"
        raise YamlError(f"error converting YAML to JSON: {problem}")
    return str(key) if isinstance(key, int) else gotext.format_v(key)


def _format_value(value: Any) -> str:
    if value is None:
        return "<nil>"
    return gofmt.format_go_syntax(value).replace("map[string]interface {}", "map[interface {}]interface {}")[
        : yaml_scalars.MAX_VALUE_LENGTH
    ]
