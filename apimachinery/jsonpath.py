"""JSONPath, as in the printer columns of CustomResourceDefinitions, with the grammar and the rules of client-go.

It supports fields, with dots escaped by a backslash; `['name']`, `[0]`, `[-1]`, `[*]`, slices and unions; `..`, `.*`; and
filters, such as `.status.conditions[?(@.type=="Ready")].status`. A path that cannot be evaluated, such as one with an index
beyond a list, finds nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

Step: TypeAlias = Callable[[list[Any]], list[Any]]
"""A function from a list of values to the values that the step finds in all of them."""
MAX_RESULTS: Final = 100_000
"""The maximum number of values that a step may find: several `..` find each value many times."""


class JSONPathError(ValueError):
    """A text is not a valid path; the message is client-go's."""


class _NoResult(Exception):
    """A path cannot be evaluated for a value."""


_TERMINATORS: Final = " \t\r\n.,[]$@{}"
_FIELD: Final = re.compile(r"(?:\\.?|[^\\ \t\r\n.,\[\]$@{}])*", re.DOTALL)
_WORD: Final = re.compile(rf"[^{re.escape(_TERMINATORS)}]*")
_NUMBER: Final = re.compile(r"[+-]?[0-9.]*")
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def parse(text: str) -> Callable[[Any], Sequence[Any]]:
    """Parse a path; return a function that finds all its values in a tree. Raise `JSONPathError` if the path is invalid."""
    steps = _parse(text)

    def find(tree: Any) -> Sequence[Any]:
        try:
            return _evaluate(steps, [tree])
        except _NoResult:
            return ()

    return find


def _evaluate(steps: Sequence[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
        if len(values) > MAX_RESULTS:
            raise _NoResult
    return values


# --- the grammar


def _parse(text: str) -> Sequence[Step]:
    """Return the steps up to the end, or up to a closing brace: upstream treats the rest as text."""
    steps: list[Step] = []
    position = 0
    while position < len(text) and text[position] != "}":
        step, position = _parse_step(text, position, after_recursion=bool(steps) and steps[-1] is _recursive)
        if step is not None:
            steps.append(step)
    return steps


def _parse_step(text: str, position: int, *, after_recursion: bool) -> tuple[Step | None, int]:
    head = text[position]
    if text.startswith("[?(", position):
        return _parse_filter(text, position)
    if text.startswith("..", position):
        if after_recursion:
            raise JSONPathError("invalid multiple recursive descent")
        return _recursive, position + (1 if _is_word(text[position + 2 : position + 3]) else 2)
    if head in " @$":
        return None, position + 1
    if head == "[":
        return _parse_brackets(text, position)
    if head in "\"'":
        return _parse_quoted(text, position)
    if head == ".":
        match = _FIELD.match(text, position + 1)
        assert match is not None, "the pattern matches an empty text, too"
        name = match[0]
        return (_all_children if name == "*" else partial(_field, name.replace("\\", ""))), match.end()
    if head in "+-" or head.isdecimal():
        return _parse_number(text, position)
    if _is_word(head):
        match = _WORD.match(text, position)
        assert match is not None, "it begins with such a character"
        word = match[0]
        return (partial(_constant, word == "true") if word in ("true", "false") else _no_result), match.end()
    problem = (
        "unclosed action"
        if head in "\r\n"
        else f"unrecognized character in action: {_format_character(head)}"
    )
    raise JSONPathError(problem)


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()


def _format_character(character: str) -> str:
    """Format a character as Go's `%#U` does."""
    code = f"U+{ord(character):04X}"
    return f"{code} '{character}'" if character.isprintable() else code


def _parse_number(text: str, position: int) -> tuple[Step, int]:
    match = _NUMBER.match(text, position)
    assert match is not None, "it begins with a sign or a digit"
    try:
        number = float(match[0]) if "." in match[0] else int(match[0])
    except ValueError as error:
        raise JSONPathError(f"cannot parse number {match[0]}") from error
    return partial(_constant, number), match.end()


def _parse_quoted(text: str, position: int) -> tuple[Step, int]:
    end = position + 1
    while (end := text.find(text[position], end)) > 0 and text[end - 1] == "\\":
        end += 1
    if end < 0 or "\n" in text[position:end]:
        raise JSONPathError("unterminated quoted string")
    literal = _ESCAPED.sub(r"\1", text[position + 1 : end])
    return (lambda _values: [literal]), end + 1


def _parse_brackets(text: str, position: int) -> tuple[Step, int]:
    end = text.find("]", position)
    if end < 0 or "\n" in text[position:end]:
        raise JSONPathError("unterminated array")
    return _parse_bracketed(text[position + 1 : end]), end + 1


def _parse_bracketed(inner: str) -> Step:
    parts = inner.split(",")
    if len(parts) > 1:
        return partial(_union, [_parse(f"[{part.strip(' ')}]") for part in parts])
    key = _KEY.fullmatch(inner)
    if key is not None:
        return partial(_evaluate, _parse(f".{key[1]}"))
    slice_ = _SLICE.fullmatch(":" if inner == "*" else inner)
    if slice_ is None:
        raise JSONPathError(f"invalid array index {inner}")
    first, last, step = (_number(bound) for bound in slice_.groups(""))
    is_single = not slice_[2]
    return partial(_slice, first, (first or 0) + 1 if is_single else last, step, is_single=is_single)


def _number(text: str) -> int | None:
    digits = text.removeprefix(":")
    if not digits:
        return None
    try:
        return int(digits)
    except ValueError as error:
        raise JSONPathError(f"array index {digits} is not a number") from error


def _parse_filter(text: str, position: int) -> tuple[Step, int]:
    end = _end_of_filter(text, position + len("[?("))
    inner = text[position + len("[?(") : end]
    if not text.startswith(")]", end):
        raise JSONPathError("unclosed array expect ]")
    comparison = _COMPARISON.fullmatch(inner)
    if comparison is None or "\n" in comparison[3]:
        return partial(_filter, partial(_exists, _parse(inner))), end + 2
    left, comparator, right = comparison.groups()
    return partial(_filter, partial(_compare_results, _parse(left), comparator, _parse(right))), end + 2


def _end_of_filter(text: str, start: int) -> int:
    """Return the position of the closing parenthesis of a filter, which may contain one quoted text."""
    quote, is_closed = "", False
    for position in range(start, len(text)):
        character = text[position]
        if character == "\n":
            break
        if character in "\"'":
            if not quote:
                quote = character
            elif text[position - 1] != "\\" and character == quote:
                is_closed = True
        elif character == ")" and bool(quote) == is_closed:
            return position
    raise JSONPathError("unterminated filter")


# --- the steps


class _Byte(int):
    """A byte of a text. It is printed as a number, but a comparison with it has no result."""


def _field(name: str, values: list[Any]) -> list[Any]:
    return [value[name] for value in values if isinstance(value, dict) and name in value]


def _constant(constant: Any, values: list[Any]) -> list[Any]:
    return [constant] * len(values)


def _no_result(_values: list[Any]) -> list[Any]:
    raise _NoResult


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[name] for name in sorted(value)]
    if isinstance(value, list):
        return value
    return [*map(_Byte, value.encode())] if isinstance(value, str) else []


def _all_children(values: list[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _recursive(values: list[Any]) -> list[Any]:
    return [*islice(_descend(values), MAX_RESULTS + 1)]


def _descend(values: list[Any]) -> Iterator[Any]:
    for value in values:
        children = _children(value)
        if children:
            yield value
            if not isinstance(value, str):
                yield from _descend(children)


def _slice(
    first: int | None, last: int | None, step: int | None, values: list[Any], *, is_single: bool
) -> list[Any]:
    results: list[Any] = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise _NoResult
        size = len(value)
        begin = (first or 0) + (size if (first or 0) < 0 else 0)
        end = size if last is None else last
        if end < 0 or (end == 0 and is_single):
            end += size
        if begin == end:
            return results
        if not 0 <= begin < size or not 0 <= end <= size or begin > end or (step is not None and step <= 0):
            raise _NoResult
        results += value[begin : end : step or 1]
    return results


def _union(paths: Sequence[Sequence[Step]], values: list[Any]) -> list[Any]:
    return [result for steps in paths for result in _evaluate(steps, values)]


def _filter(matches: Callable[[Any], bool], values: list[Any]) -> list[Any]:
    results = []
    for value in values:
        if not isinstance(value, list):
            raise _NoResult
        results += [item for item in value if matches(item)]
    return results


def _exists(steps: Sequence[Step], item: Any) -> bool:
    """Return whether steps find a value. If a step fails, its input counts, as upstream."""
    values = [item]
    with suppress(_NoResult):
        for step in steps:
            values = step(values)
    return bool(values)


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}
_ORDERED: Final = (int, float, str)


def _compare_results(left: Sequence[Step], comparator: str, right: Sequence[Step], item: Any) -> bool:
    """Compare the single results of two paths, which must be of the same type; return False if a path finds nothing."""
    sides = []
    for steps in (left, right):
        results = _evaluate(steps, [item])
        if not results:
            return False
        if len(results) > 1:
            raise _NoResult
        sides.append(results[0])
    first, other = sides
    is_equality = comparator in ("==", "!=")
    comparable = (*_ORDERED, bool) if is_equality else _ORDERED
    if type(first) is not type(other) or type(first) not in comparable or comparator not in _COMPARE:
        raise _NoResult
    return _COMPARE[comparator](first, other)
