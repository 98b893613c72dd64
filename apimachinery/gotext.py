"""Values as Go formats and parses them: `%q`, `%v`, `json.Marshal`, `strconv`, `base64.RawURLEncoding`.

People and tools match Kubernetes' messages exactly, and Go's format of a value is part of them. Independent of Kubernetes.
"""

import base64
import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

import orjson

_NAMED_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}

# Go's encoder makes JSON safe to paste into HTML and JavaScript.
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_INVALID_BYTES: Final = [chr(code) for code in range(0xDC80, 0xDD00)]
"""The characters that `surrogateescape` decodes invalid bytes to."""
HTML_ESCAPES: Final = str.maketrans(_HTML)
_HTML_BYTES = [(character.encode(), escape.encode()) for character, escape in _HTML.items()]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_UNSIGNED = re.compile(r"[0-9]+")


BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
"""The texts of booleans that strconv.ParseBool accepts."""


class NumberError(ValueError):
    """A text is not a valid number or boolean; the message is that of strconv.NumError."""

    def __init__(self, function: str, text: str, problem: str) -> None:
        super().__init__(f"strconv.{function}: parsing {quote(text)}: {problem}")


def decode_utf8(data: bytes) -> str:
    """Decode UTF-8 with U+FFFD for each byte of an invalid sequence, where Python has one for the whole sequence."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="surrogateescape")
        for character in _INVALID_BYTES:
            text = text.replace(character, "\ufffd")
        return text


def base64url(data: bytes) -> str:
    """Encode as URL-safe base64 without padding, as in tokens."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def quote(text: str) -> str:
    """Format a string as `%q` does."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def quote_list(texts: Iterable[str]) -> str:
    """Format a list of strings as `%q` does."""
    return f"[{' '.join(map(quote, texts))}]"


def _escape(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    if character.isprintable():
        return character
    point = ord(character)
    if point < 0x80 or 0xDC80 <= point <= 0xDCFF:  # the latter are bytes that are not UTF-8 (surrogateescape)
        return f"\\x{point & 0xFF:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def quote_bytes(text: str) -> str:
    """Quote a string as package time does: byte by byte, in ASCII."""
    return '"' + "".join(map(_escape_byte, text.encode())) + '"'


def _escape_byte(byte: int) -> str:
    if byte < 0x20 or byte >= 0x80:
        return f"\\x{byte:02x}"
    return f"\\{chr(byte)}" if chr(byte) in '"\\' else chr(byte)


def format_v(value: Any) -> str:
    """Format a boolean or number as `%v` does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _exponential(value) if _is_exponential(value, 1e-4, 1e6) else _positional(value)
    return str(value)


def marshal(value: Any) -> str:
    """Encode a JSON tree as `json.Marshal` does: compact, with HTML escaped; the keys keep their order."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_marshal_text(key)}:{marshal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(marshal, value)) + "]"
    if isinstance(value, str):
        return _marshal_text(value)
    if isinstance(value, float):
        return _marshal_float(value)
    return "null" if value is None else format_v(value)


def marshal_prefix(value: Any, limit: int) -> str:
    """Return about the first `limit` characters of `marshal(value)`, with dots at the end if it is shortened."""
    pieces, length = [], 0
    for piece in _pieces(value, limit):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            return f"{''.join(pieces)[:limit]}..."
    return "".join(pieces)


def _pieces(value: Any, limit: int) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield f"{',' if index else ''}{_marshal_text(key[:limit])}:"
            yield from _pieces(item, limit)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(value):
            if index:
                yield ","
            yield from _pieces(item, limit)
        yield "]"
    else:
        yield marshal(value[: limit + 1] if isinstance(value, str) else value)


def marshal_indent(value: Any) -> Iterator[str]:
    """Yield the lines of `json.MarshalIndent` with one space per level, for a JSON tree without floating-point numbers."""
    return _marshal_lines(value, "", "", "")


def _marshal_lines(value: Any, indent: str, before: str, after: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield f"{indent}{before}{{"
        last = len(value) - 1
        for index, (key, item) in enumerate(value.items()):
            yield from _marshal_lines(
                item, f"{indent} ", f"{_marshal_text(key)}: ", "," if index < last else ""
            )
        yield f"{indent}}}{after}"
    elif isinstance(value, list | tuple) and value:
        yield f"{indent}{before}["
        last = len(value) - 1
        for index, item in enumerate(value):
            yield from _marshal_lines(item, f"{indent} ", "", "," if index < last else "")
        yield f"{indent}]{after}"
    else:
        yield f"{indent}{before}{_marshal_text(value)}{after}"


def escape_html(text: bytes) -> bytes:
    """Escape HTML characters in JSON text as Go's encoder does."""
    for character, escape in _HTML_BYTES:
        text = text.replace(character, escape)
    return text


def _marshal_text(value: Any) -> str:
    return orjson.dumps(value).decode().translate(HTML_ESCAPES)


def _marshal_float(value: float) -> str:
    if not _is_exponential(value, 1e-6, 1e21):
        return _positional(value)
    return re.sub(r"e-0(\d)$", r"e-\1", _exponential(value))


def format_g(value: float) -> str:
    """Format a number in its shortest form, as strconv.FormatFloat with "g"."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return _exponential(value) if _is_exponential(value, 1e-4, 1e6) else _positional(value)


def _is_exponential(value: float, minimum: float, limit: float) -> bool:
    return value != 0 and not minimum <= abs(value) < limit


def _positional(value: float) -> str:
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _exponential(value: float) -> str:
    mantissa, exponent = f"{Decimal(repr(value)).normalize():e}".split("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"


def parse_bool(text: str) -> bool:
    if text not in BOOLEANS:
        raise NumberError("ParseBool", text, "invalid syntax")
    return BOOLEANS[text]


def parse_int(text: str, *, bits: int = 64, function: str = "ParseInt") -> int:
    """Parse a signed decimal number that fits into `bits` bits, as strconv.ParseInt does."""
    if not _INTEGER.fullmatch(text):
        raise NumberError(function, text, "invalid syntax")
    limit = 1 << (bits - 1)
    return _parse_int_within(text, -limit, limit - 1, function)


def parse_uint(text: str, *, bits: int = 64) -> int:
    """Parse an unsigned decimal number that fits into `bits` bits, as strconv.ParseUint does."""
    if not _UNSIGNED.fullmatch(text):
        raise NumberError("ParseUint", text, "invalid syntax")
    return _parse_int_within(text, 0, (1 << bits) - 1, "ParseUint")


_INFINITIES: Final = frozenset(("inf", "infinity"))


def parse_float(text: str) -> float:
    """Parse a 64-bit float as strconv.ParseFloat does, except hexadecimal mantissas with underscores."""
    value = _parse_float(text)
    if value is None:
        raise NumberError("ParseFloat", text, "invalid syntax")
    is_named = text.lstrip("+-").lower() in _INFINITIES
    if math.isinf(value) and not is_named:
        raise NumberError("ParseFloat", text, "value out of range")
    return value


def _parse_float(text: str) -> float | None:
    """Return an infinity for a number that is too large, and None for a text that is no number."""
    bare = text[1:] if text[:1] in ("+", "-") else text
    lower = bare.lower()
    if lower in _INFINITIES:
        return -math.inf if text[0] == "-" else math.inf
    if lower == "nan":
        return math.nan if bare == text else None
    if not text.isascii() or "_" in text or text.strip() != text:
        return None
    try:
        if lower.startswith("0x"):
            return float.fromhex(text) if "p" in lower else None
        return float(text)
    except OverflowError:
        return math.inf
    except ValueError:
        return None


def int_or_none(text: str, *, bits: int = 64) -> int | None:
    """Parse a signed decimal number that fits into `bits` bits; return None for any other text."""
    try:
        return parse_int(text, bits=bits)
    except NumberError:
        return None


def _parse_int_within(text: str, minimum: int, maximum: int, function: str) -> int:
    # Python refuses to convert thousands of digits. After the leading zeros, more than 20 digits are always out of range.
    digits = text.lstrip("+-").lstrip("0") or "0"
    value = int(digits) * (-1 if text[0] == "-" else 1) if len(digits) <= 20 else maximum + 1
    if not minimum <= value <= maximum:
        raise NumberError(function, text, "value out of range")
    return value
