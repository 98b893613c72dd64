"""Path elements as text: `f:NAME` is a member of an object, `k:{"KEY":VALUE}` an object in a list, `v:VALUE` a primitive
in a list, `i:NUMBER` an index of a list.

The text is that of `fieldsV1`. It is canonical, so that elements can be compared and hashed as texts.
"""

from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import gotext
from mockube.apimachinery.memoize import memoize

Element: TypeAlias = str

FIELD: Final = "f:"
KEY: Final = "k:"
VALUE: Final = "v:"
INDEX: Final = "i:"

_CACHE_SIZE: Final = 8192
"""The number of cached elements: the fields, containers and conditions of a cluster have few different names."""
_MAX_LENGTH: Final = 300


class MalformedFields(ValueError):
    """A `fieldsV1` or another part of managed fields is invalid."""


@memoize(_CACHE_SIZE, max_length=_MAX_LENGTH)
def quote_text(text: str) -> str:
    """Encode a string for a path element."""
    return gotext.marshal(text)


def of_value(value: Any) -> Element:
    """Return the element of a primitive in a list. 1 and 1.0 have the same element."""
    return VALUE + gotext.marshal(value)


def of_keys(keys: dict[str, Any]) -> Element:
    """Return the element of an object in a list, which its keys identify."""
    return _of_keys(orjson.dumps(keys))


@memoize(_CACHE_SIZE, max_length=_MAX_LENGTH)
def _of_keys(text: bytes) -> Element:
    keys: dict[str, Any] = orjson.loads(text)
    members = (f"{quote_text(name)}:{gotext.marshal(value)}" for name, value in sorted(keys.items()))
    return f"{KEY}{{{','.join(members)}}}"


@memoize(_CACHE_SIZE, max_length=_MAX_LENGTH)
def canonical(text: str) -> Element | None:
    """Return the canonical element of a text; None for an unknown kind of element, which a later version may define."""
    kind, content = text[:2], text[2:]
    if len(text) < 2:
        raise MalformedFields("key must be 2 characters long:")
    if kind[1] != ":":
        raise MalformedFields(f"missing colon: {text}")
    if kind == FIELD:
        return text
    try:
        return _canonical_value(kind, content)
    except (gotext.NumberError, orjson.JSONDecodeError) as error:
        raise MalformedFields(str(error)) from None


def _canonical_value(kind: str, content: str) -> Element | None:
    if kind == INDEX:
        return INDEX + str(gotext.parse_int(content, function="Atoi"))
    if kind == VALUE:
        return of_value(orjson.loads(content))
    if kind != KEY:
        return None
    keys = orjson.loads(content)
    if not isinstance(keys, dict):
        raise MalformedFields(f"expected an object: {KEY}{content}")
    return of_keys(keys)


@memoize(_CACHE_SIZE, max_length=_MAX_LENGTH)
def sort_key(element: Element) -> tuple[int, Any]:
    """Return the sort key of an element among its siblings: the kind, then the content, with numbers as numbers."""
    kind, content = element[:2], element[2:]
    if kind == FIELD:
        return 0, content
    if kind == KEY:
        return 1, [(name, _rank(value)) for name, value in orjson.loads(content).items()]
    if kind == VALUE:
        return 2, _rank(orjson.loads(content))
    return 3, int(content)


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 3, orjson.dumps(value)


@memoize(_CACHE_SIZE, max_length=_MAX_LENGTH)
def format_element(element: Element) -> str:
    """Format an element for messages: `.spec`, `[name="main"]`, `[="example.com/a"]`, `[0]`."""
    kind, content = element[:2], element[2:]
    if kind == FIELD:
        return f".{content}"
    if kind == KEY:
        keys = orjson.loads(content)
        return f"[{','.join(f'{name}={_format_value(value)}' for name, value in keys.items())}]"
    if kind == VALUE:
        return f"[={_format_value(orjson.loads(content))}]"
    return f"[{content}]"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return gotext.quote(value)
    if isinstance(value, list):
        return f"[{','.join(map(_format_value, value))}]"
    if isinstance(value, dict):
        return "".join(f"{name}={_format_value(item)}" for name, item in value.items())
    # Upstream decodes every number of an element as a float64, and prints a million as 1e+06.
    number = isinstance(value, int) and not isinstance(value, bool)
    return "null" if value is None else gotext.format_v(float(value) if number else value)
