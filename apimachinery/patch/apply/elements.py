"""Steps of a path to a field, as text: `f:NAME` is a member of an object, `k:{"KEY":VALUE}` an object in a list,
`v:VALUE` a primitive in a list, `i:NUMBER` a place in a list.

The text is the one that `fieldsV1` is written in. One step has one text, so that texts can be compared and hashed.
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

_CACHED: Final = 8192
"""Steps cached: clusters name their fields, containers and conditions from a small vocabulary."""
_MAX_LENGTH: Final = 300


class MalformedFields(ValueError):
    """What should be a set of fields is none."""


@memoize(_CACHED, max_length=_MAX_LENGTH)
def quote_text(text: str) -> str:
    """A text as it stands in a step."""
    return gotext.marshal(text)


def of_value(value: Any) -> Element:
    """A whole number has one text, whether it was read as 1 or as 1.0."""
    return VALUE + gotext.marshal(value)


def of_keys(keys: dict[str, Any]) -> Element:
    return _of_keys(orjson.dumps(keys))


@memoize(_CACHED, max_length=_MAX_LENGTH)
def _of_keys(text: bytes) -> Element:
    keys: dict[str, Any] = orjson.loads(text)
    members = (f"{quote_text(name)}:{gotext.marshal(value)}" for name, value in sorted(keys.items()))
    return f"{KEY}{{{','.join(members)}}}"


@memoize(_CACHED, max_length=_MAX_LENGTH)
def canonical(text: str) -> Element | None:
    """Return the step of a text, or None if only a later version may define it."""
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


@memoize(_CACHED, max_length=_MAX_LENGTH)
def sort_key(element: Element) -> tuple[int, Any]:
    """What steps of one object or list are sorted by: by kind, and within it by content, numbers as numbers."""
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


@memoize(_CACHED, max_length=_MAX_LENGTH)
def format_element(element: Element) -> str:
    """As messages show it: `.spec`, `[name="main"]`, `[="example.com/a"]`, `[0]`."""
    kind, content = element[:2], element[2:]
    if kind == FIELD:
        return f".{content}"
    if kind == KEY:
        keys = orjson.loads(content)
        return f"[{','.join(f'{name}={_shown_value(value)}' for name, value in keys.items())}]"
    if kind == VALUE:
        return f"[={_shown_value(orjson.loads(content))}]"
    return f"[{content}]"


def _shown_value(value: Any) -> str:
    if isinstance(value, str):
        return gotext.quote(value)
    if isinstance(value, list):
        return f"[{','.join(map(_shown_value, value))}]"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown_value(item)}" for name, item in value.items())
    # Upstream reads every number of a step as a floating-point number, and shows a million as 1e+06.
    number = isinstance(value, int) and not isinstance(value, bool)
    return "null" if value is None else gotext.format_v(float(value) if number else value)
