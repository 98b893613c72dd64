"""`expr`, which evaluates expressions of strings and numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.posix_matches import SearchSteps, find_matches
from mockube.container_runtime.simulated.shell.process import Process, Run, write_text
from mockube.container_runtime.simulated.shell.regular_expressions import (
    BadRegularExpression,
    basic_expression,
)


class _BadExpression(Exception):
    pass


class _Words(list[str]):
    """The words of an expression that are left."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.searches = SearchSteps()

    def add_steps(self, steps: int) -> None:
        self.searches.add(steps)
        if self.searches.total > limits.MAX_MATCH_STEPS:
            raise _BadExpression("the searches take too long")


def _match(text: str, pattern: str, count_steps: Callable[[int], None] = lambda _: None) -> str:
    """Return the group of a match at the beginning of a text, or the length of the match if there is no group."""
    try:
        expression = basic_expression(pattern.removeprefix("^"))
        spans = next(find_matches(f"^(?:{expression})", text, 1, count_steps=count_steps), None)
    except (BadRegularExpression, RegexpError) as error:
        raise _BadExpression(str(error)) from error
    if spans is not None and len(spans) > 1:
        start, end = spans[1]
        return text[start:end] if start >= 0 else ""
    if spans is None:
        return "" if "\\(" in pattern else "0"
    return str(spans[0][1])


_LEVELS: Final[Sequence[Mapping[str, Callable[[str, str], str]]]] = (
    {"|": lambda left, right: left if _is_true(left) else right},
    {"&": lambda left, right: left if _is_true(left) and _is_true(right) else "0"},
    {
        "=": lambda left, right: _compare(left, right, lambda first, second: first == second),
        "==": lambda left, right: _compare(left, right, lambda first, second: first == second),
        "!=": lambda left, right: _compare(left, right, lambda first, second: first != second),
        "<": lambda left, right: _compare(left, right, lambda first, second: first < second),
        "<=": lambda left, right: _compare(left, right, lambda first, second: first <= second),
        ">": lambda left, right: _compare(left, right, lambda first, second: first > second),
        ">=": lambda left, right: _compare(left, right, lambda first, second: first >= second),
    },
    {
        "+": lambda left, right: str(_number(left) + _number(right)),
        "-": lambda left, right: str(_number(left) - _number(right)),
    },
    {
        "*": lambda left, right: str(_number(left) * _number(right)),
        "/": lambda left, right: str(_divide(_number(left), _number(right))[0]),
        "%": lambda left, right: str(_divide(_number(left), _number(right))[1]),
    },
    {":": _match},
)
"""The operators of `expr`, in order of increasing precedence."""
_MAX_DIGITS: Final = 19


def expr(process: Process) -> Run:
    try:
        words = _Words(process.arguments)
        value = _evaluate(words)
        yield from words.searches.count()
    except _BadExpression as error:
        yield process.error(str(error))
        return 2
    yield write_text(f"{value}\n")
    return int(not _is_true(value))


def _evaluate(words: _Words) -> str:
    if len(words) <= limits.MAX_EXPR_WORDS:
        value = _expression(words, 0)
        if not words:
            return value
    raise _BadExpression("syntax error")


def _expression(words: _Words, level: int) -> str:
    """Remove an expression from the start of the words, and return its value."""
    if level == len(_LEVELS):
        return _operand(words)
    value = _expression(words, level + 1)
    while words and words[0] in _LEVELS[level]:
        operator = _LEVELS[level][words.pop(0)]
        right = _expression(words, level + 1)
        value = _match(value, right, words.add_steps) if operator is _match else operator(value, right)
    return value


def _operand(words: _Words) -> str:
    if not words:
        raise _BadExpression("syntax error")
    word = words.pop(0)
    if word == "length" and words:
        return str(len(_operand(words)))
    if word == "match" and len(words) > 1:
        return _match(_operand(words), _operand(words), words.add_steps)
    if word == "index" and len(words) > 1:
        text, characters = _operand(words), _operand(words)
        return str(next((index for index, char in enumerate(text, start=1) if char in characters), 0))
    if word == "substr" and len(words) > 2:
        text, start, length = _operand(words), _number(_operand(words)), _number(_operand(words))
        return text[start - 1 : start - 1 + max(length, 0)] if start > 0 else ""
    if word != "(":
        return word
    value = _expression(words, 0)
    if not words or words.pop(0) != ")":
        raise _BadExpression("syntax error")
    return value


def _is_true(value: str) -> bool:
    return value not in ("", "0")


def _number(text: str) -> int:
    number = int_or_none(text) if len(text) <= _MAX_DIGITS else None
    if number is None:
        raise _BadExpression("non-integer argument")
    return number


def _divide(left: int, right: int) -> tuple[int, int]:
    """Return quotient and remainder, rounded towards zero as in C."""
    if right == 0:
        raise _BadExpression("division by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient, left - quotient * right


def _compare(left: str, right: str, comparison: Callable[[Any, Any], bool]) -> str:
    """Compare two numbers as numbers, and other values as strings."""
    numbers = int_or_none(left), int_or_none(right)
    pair = (left, right) if None in numbers else numbers
    return str(int(comparison(*pair)))
