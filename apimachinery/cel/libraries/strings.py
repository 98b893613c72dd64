"""Functions of strings, as in version 2 of cel-go's library of strings."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError, format_value

from .formatting import format_text

DECLARED: Final = declare(
    """
    charAt string_char_at_int string.(int) -> string
    indexOf string_index_of_string string.(string) -> int
    indexOf string_index_of_string_int string.(string, int) -> int
    lastIndexOf string_last_index_of_string string.(string) -> int
    lastIndexOf string_last_index_of_string_int string.(string, int) -> int
    lowerAscii string_lower_ascii string.() -> string
    replace string_replace_string_string string.(string, string) -> string
    replace string_replace_string_string_int string.(string, string, int) -> string
    split string_split_string string.(string) -> list(string)
    split string_split_string_int string.(string, int) -> list(string)
    substring string_substring_int string.(int) -> string
    substring string_substring_int_int string.(int, int) -> string
    trim string_trim string.() -> string
    upperAscii string_upper_ascii string.() -> string
    format string_format string.(list(dyn)) -> string
    strings.quote strings_quote (string) -> string
    join list_join list(string).() -> string
    join list_join_string list(string).(string) -> string
    """
)
_TO_LOWER = {ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_TO_UPPER = {ord(char): char.upper() for char in "abcdefghijklmnopqrstuvwxyz"}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_from(text: str, part: str, last: int) -> int:
    if not part:
        return last
    if last < 0:
        raise CelError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, max(count, -1))


def _split_text(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text[start:]


def _substring_to(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    return text[start:end]


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise CelError(f"join: invalid input: {format_value(item)}")
    return separator.join(items)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of_from,
    "string_lower_ascii": lambda text: text.translate(_TO_LOWER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split_text,
    "string_split_string_int": _split_text,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring_to,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_upper_ascii": lambda text: text.translate(_TO_UPPER),
    "string_format": format_text,
    "strings_quote": lambda text: f'"{text.translate(_ESCAPES)}"',
    "list_join": _join,
    "list_join_string": _join,
}
