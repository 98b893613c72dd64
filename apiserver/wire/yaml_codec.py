"""Trees that JSON can hold as YAML, written as sigs.k8s.io/yaml does; the reader is `mockube.apimachinery.yaml_decode`.

libyaml is handed one event after another, so that no second tree is made, and each text is looked at a fixed number of
times: the time that an answer takes grows with its length alone.
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
from mockube.apimachinery.pieces import sorted_in_pieces
from mockube.apimachinery.yaml_scalars import is_text

_WIDTH: Final = 80
_QUOTED: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?"  # a date, to other readers
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # a number to the base of 60, to some
)
_TEXT: Final = (True, True)
_OTHER: Final = (True, False)
"""That a scalar may be plain: as what it looks like, or also in quotes."""


def dump(tree: Any) -> bytes:
    """Keys in order, lists not indented, as upstream writes it."""
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
    """An object with a field of items from `dump_item`, in parts that follow one another: as if it were dumped whole."""
    if not items:
        return [dump({**head, field: []})]
    before = {name: value for name, value in head.items() if name < field}
    after = {name: value for name, value in head.items() if name > field}
    first, last = (dump(part) if part else b"" for part in (before, after))
    return [first + field.encode() + b":\n", *items, last]


def dump_item(tree: Any) -> bytes:
    """An item of a list; lines with nothing on them stay as they are."""
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
    """Plain where it reads back as the same text; in quotes where it would be something else; lines as lines."""
    misread = _QUOTED.fullmatch(text) or not is_text(text)
    style = '"' if misread else "|" if "\n" in text else None
    return ScalarEvent(None, None, _TEXT, text, style=style)


def _number(value: Any) -> str:
    if value is None:
        return "null"
    return gotext.format_v(value)
