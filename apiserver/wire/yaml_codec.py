"""Encode JSON trees as YAML, like sigs.k8s.io/yaml; `mockube.apimachinery.yaml_decode` decodes them.

The tree is passed to libyaml as events, so that no second tree is created. The time is linear in the length of the output.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from yaml.cyaml import CEmitter  # type: ignore[attr-defined]  # the stubs leave it out
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from mockube.apimachinery import gotext
from mockube.apimachinery.piecewise import sorted_in_pieces
from mockube.apimachinery.yaml_scalars import is_text

_WIDTH: Final = 80
_QUOTED: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?"  # a date for other parsers
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # a sexagesimal number for some parsers
)
_TEXT: Final = (True, True)
_OTHER: Final = (True, False)
"""The `implicit` flags of scalars: whether the tag may be omitted if the scalar is plain, and if it is quoted."""


def dump(tree: Any) -> bytes:
    """Return a tree as YAML like upstream: with sorted keys, and lists that are not indented."""
    out = io.BytesIO()
    emitter = CEmitter(out, width=_WIDTH, allow_unicode=True)
    try:
        emit: Callable[[Event], None] = emitter.emit
        emit(StreamStartEvent(encoding="utf-8"))
        emit(DocumentStartEvent(explicit=False))
        _emit(emit, tree)
        emit(DocumentEndEvent(explicit=False))
        emit(StreamEndEvent())
    finally:
        emitter.dispose()
    return out.getvalue()


def dump_list(head: Mapping[str, Any], field: str, items: Sequence[bytes]) -> Sequence[bytes]:
    """Return an object with a list of items from `dump_item`, in parts: together the same bytes as from `dump`."""
    if not items:
        return [dump({**head, field: []})]
    before = {name: value for name, value in head.items() if name < field}
    after = {name: value for name, value in head.items() if name > field}
    first, last = (dump(part) if part else b"" for part in (before, after))
    return [first + field.encode() + b":\n", *items, last]


def dump_item(tree: Any) -> bytes:
    """Return an item of a list as YAML; its lines are indented, except empty ones."""
    return b"- " + _LINE.sub(b"\n  ", dump(tree))


_LINE: Final = re.compile(rb"\n(?=[^\n])")


def _emit(emit: Callable[[Event], None], value: Any) -> None:
    if isinstance(value, str):
        emit(_text(value))
    elif isinstance(value, Mapping):
        emit(MappingStartEvent(None, None, True, flow_style=False))  # noqa: FBT003 - it has no name for it
        for key in sorted_in_pieces(value):
            emit(_text(key))
            _emit(emit, value[key])
        emit(MappingEndEvent())
    elif isinstance(value, list | tuple):
        emit(SequenceStartEvent(None, None, True, flow_style=False))  # noqa: FBT003 - as above
        for item in value:
            _emit(emit, item)
        emit(SequenceEndEvent())
    else:
        emit(ScalarEvent(None, None, _OTHER, _number(value)))


def _text(text: str) -> Event:
    """Return the event of a text: plain, in quotes if a plain one would be parsed differently, or as a block of lines."""
    needs_quotes = _QUOTED.fullmatch(text) or not is_text(text)
    style = '"' if needs_quotes else "|" if "\n" in text else None
    return ScalarEvent(None, None, _TEXT, text, style=style)


def _number(value: Any) -> str:
    if value is None:
        return "null"
    return gotext.format_v(value)
