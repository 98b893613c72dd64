"""JSONPath as kubectl and definitions of custom resources write it: `.status.conditions[?(@.type=="Ready")].status`.

Fields, with dots escaped by a backslash; `['name']`, `[0]`, `[-1]`, `[*]`; and filters that compare one field with a
literal. Ranges, unions, slices and `..` are not here: what is written with them is refused.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

Step: TypeAlias = Callable[[Any], Iterator[Any]]


class JSONPathError(ValueError):
    """Not a path, or one that is not understood here."""


_STEP: Final = re.compile(
    r"""
      \.(?P<field>(?:\\.|[^.\[\]\\'"{}()\s])++)
    | \[\s*+(?P<index>-?[0-9]{1,18})\s*+\]
    | (?:\[\s*+|\.)(?P<all>\*)(?:\s*+\])?
    | \[\s*+(?P<quote>['"])(?P<name>(?:\\.|(?!(?P=quote))[^\\])*+)(?P=quote)\s*+\]
    | \[\?\(\s*+@(?P<left>[^=!<>]*+)(?P<compare>==|!=|<=|>=|<|>)(?P<right>(?:(?!\)\]).)++)\)\]
    """,
    re.VERBOSE,
)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def parse(text: str) -> Callable[[Any], Sequence[Any]]:
    """A function that finds in a tree all that the path leads to; nothing, where something on the way is not there."""
    steps, place = [], 0
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise JSONPathError(f"unrecognized path {text!r} at {text[place:]!r}")
        steps.append(_step(match))
        place = match.end()

    def find(tree: Any) -> Sequence[Any]:
        found = [tree]
        for step in steps:
            found = [value for one in found for value in step(one)]
        return found

    return find


def _step(match: re.Match[str]) -> Step:
    groups = match.groupdict()
    if groups["index"] is not None:
        return _index(int(groups["index"]))
    if groups["all"] is not None:
        return _all
    if groups["compare"] is not None:
        return _filter(groups["left"].rstrip(), groups["compare"], groups["right"].strip())
    name = groups["field"] if groups["field"] is not None else groups["name"]
    return _field(re.sub(r"\\(.)", r"\1", name))


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _filter(left: str, compare: str, right: str) -> Step:
    find, holds, literal = parse(left), _COMPARE[compare], _literal(right)

    def matches(item: Any) -> bool:
        found = find(item)
        return bool(found) and type(found[0]) is type(literal) and holds(found[0], literal)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from filter(matches, value)

    return step


def _literal(text: str) -> Any:
    if text[:1] == text[-1:] == "'":
        return text[1:-1]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise JSONPathError(f"unrecognized literal {text!r}") from error
