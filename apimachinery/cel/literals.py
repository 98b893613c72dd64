"""Parsing of literals: escapes in strings and bytes, and ranges of numbers."""

from .values import INT_MAX, INT_MIN, UINT_MAX, Uint

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    **{char: char for char in "\\'\"`?"},
}
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}


class BadLiteral(Exception):
    """An invalid literal, with cel-go's message."""


def unquote(text: str) -> str:
    """Return the text between the quotes, with escapes resolved."""
    body, raw = _body(text)
    return body if raw or "\\" not in body else "".join(char for _, char in _escapes(body, is_bytes=False))


def unquote_bytes(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    value = b""
    for kind, char in _escapes(body, is_bytes=True):
        value += bytes([ord(char)]) if kind == "byte" else char.encode()
    return value


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes], raw


def _escapes(body: str, *, is_bytes: bool) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    offset = 0
    while offset < len(body):
        if body[offset] != "\\":
            end = body.find("\\", offset)
            end = len(body) if end < 0 else end
            parts.append(("text", body[offset:end]))
            offset = end
            continue
        code = body[offset + 1]
        if code in _SIMPLE:
            parts.append(("text", _SIMPLE[code]))
            offset += 2
            continue
        digits = _HEX_DIGITS.get(code)
        if is_bytes and digits in (4, 8):
            raise BadLiteral("unable to unescape string")
        number = (
            int(body[offset + 2 : offset + 2 + digits], 16)
            if digits
            else int(body[offset + 1 : offset + 4], 8)
        )
        if not is_bytes and (number > 0x10FFFF or 0xD800 <= number <= 0xDFFF):
            raise BadLiteral("invalid unicode code point")
        parts.append(("byte" if is_bytes else "text", chr(number)))
        offset += 2 + digits if digits else 4
    return parts


def int_literal(text: str) -> int:
    value = _integer(text)
    if not INT_MIN <= value <= INT_MAX:
        raise BadLiteral("invalid int literal")
    return value


def uint_literal(text: str) -> Uint:
    value = _integer(text[:-1])
    if value > UINT_MAX:
        raise BadLiteral("invalid uint literal")
    return Uint(value)


def _integer(text: str) -> int:
    digits = text.removeprefix("-")
    base = 16 if digits.startswith("0x") else 10
    significant = digits.removeprefix("0x").lstrip("0")
    if len(significant) > 40:
        return UINT_MAX + 1  # out of every range: int() is slow for many digits
    value = int(significant or "0", base)
    return -value if text.startswith("-") else value


def double_literal(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadLiteral("invalid double literal")
    return value
