"""JSON whose numbers and strings keep their original text: `2.0`, `1e3`, escaped letters.

Upstream applies patches to the text of an object, and its message contains that text if the result is invalid. Slow: only
for messages.
"""

from json import JSONDecoder  # noqa: TID251 - orjson keeps neither the digits of a number nor the escapes of a text
from json.decoder import scanstring  # type: ignore[attr-defined]  # noqa: TID251 - as above
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # noqa: TID251 - as above
from typing import Any

import orjson

from mockube.apimachinery import gotext
from mockube.apimachinery.gotext import HTML_ESCAPES

from .document import NumberLiteral


class _Text(str):
    """A string with its original JSON."""

    __slots__ = ("written",)
    written: str


def _scan(text: str, start: int, *strict: bool) -> tuple[str, int]:
    value, end = scanstring(text, start, *strict)
    text_value = _Text(value)
    text_value.written = text[start - 1 : end]
    return text_value, end


class _Decoder(JSONDecoder):
    def __init__(self) -> None:
        super().__init__(parse_int=NumberLiteral, parse_float=NumberLiteral)
        self.parse_string = _scan
        self.scan_once = py_make_scanner(self)


def loads(text: bytes) -> Any:
    """Decode a valid text; its strings and numbers keep their original form."""
    return _Decoder().decode(gotext.decode_utf8(text))


def dumps(value: Any) -> str:
    """Encode a document as Go does, without blanks; strings and numbers of `loads` have their original form."""
    return _dump(value).translate(HTML_ESCAPES)


def _dump(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{_dump(key)}:{_dump(member)}" for key, member in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_dump, value)) + "]"
        case NumberLiteral():
            return str(value)
        case _Text():
            return value.written
        case str():  # the name of a field, in which Go reads half a surrogate pair as U+FFFD
            decoded_name = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return orjson.dumps(decoded_name).decode()
        case _:
            return orjson.dumps(value).decode()
