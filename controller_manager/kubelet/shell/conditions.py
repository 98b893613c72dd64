"""`test` and `[`, which evaluate conditions on strings, numbers and files, and `expr`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.gotext import int_or_none
from mockube.controller_manager.kubelet.shell.process import Process, Run, write_text

_NUMBERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_TEXTS: Final = frozenset({"=", "==", "!="})
_FILES: Final = frozenset({"-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h"})


class _BadCondition(Exception):
    pass


def test(process: Process) -> Run:
    arguments = list(process.arguments)
    closing = {"[": "]", "[[": "]]"}.get(process.name)
    if closing and (not arguments or arguments.pop() != closing):
        yield process.error(f"missing {closing}")
        return 2
    try:
        return int(not _evaluate_test(process, arguments))
    except _BadCondition as error:
        yield process.error(str(error))
        return 2


def _evaluate_test(process: Process, arguments: Sequence[str]) -> bool:
    """Evaluate conditions that are joined with `-o` and `-a`."""
    return any(
        all(_condition(process, condition) for condition in _split_at(part, "-a"))
        for part in _split_at(arguments, "-o")
    )


def _split_at(arguments: Sequence[str], operator: str) -> Sequence[Sequence[str]]:
    if len(arguments) <= 3 or operator not in arguments[1:-1]:
        return [arguments]
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == operator:
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts


def _condition(process: Process, arguments: Sequence[str]) -> bool:
    match list(arguments):
        case []:
            return False
        case [text]:
            return bool(text)
        case ["!", *rest] if len(arguments) != 3 or rest[0] not in _TEXTS:
            return not _condition(process, rest)
        case [kind, text]:
            return _unary(process, kind, text)
        case [left, kind, right]:
            return _binary(left, kind, right)
        case _:
            raise _BadCondition(f"{arguments[0]}: unknown operand")


def _unary(process: Process, kind: str, text: str) -> bool:
    if kind in ("-z", "-n"):
        return bool(text) is (kind == "-n")
    if kind == "-t":
        return False
    if kind not in _FILES:
        raise _BadCondition(f"{kind}: unknown operand")
    return _is_file(process, kind, text)


def _binary(left: str, kind: str, right: str) -> bool:
    if kind in _TEXTS:
        return (left == right) is (kind != "!=")
    if kind not in _NUMBERS:
        raise _BadCondition(f"{left}: unknown operand")
    first, second = int_or_none(left), int_or_none(right)
    if first is None or second is None:
        raise _BadCondition(f"{left if first is None else right}: bad number")
    return _NUMBERS[kind](first, second)


def _is_file(process: Process, kind: str, path: str) -> bool:
    files, absolute_path = process.host.files, process.path(path)
    if not files.exists(absolute_path):
        return files.may_exist(absolute_path)
    entry = files.entry(absolute_path)
    match kind:
        case "-f":
            return not entry.is_directory and not entry.target
        case "-d":
            return entry.is_directory
        case "-s":
            return entry.size > 0
        case "-L" | "-h":
            return bool(entry.target)
        case "-w":
            return not entry.read_only
        case "-x":
            return bool(entry.mode & 0o111)
        case _:
            return True


# --- expr

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
)
"""The operators of `expr`, in order of increasing precedence."""
_MAX_WORDS: Final = 60
"""The maximum number of words of an expression: each may be a parenthesis, which nests calls."""
_MAX_DIGITS: Final = 19


def expr(process: Process) -> Run:
    try:
        value = _evaluate(list(process.arguments))
    except _BadCondition as error:
        yield process.error(str(error))
        return 2
    yield write_text(f"{value}\n")
    return int(not _is_true(value))


def _evaluate(words: list[str]) -> str:
    if len(words) <= _MAX_WORDS:
        value = _expression(words, 0)
        if not words:
            return value
    raise _BadCondition("syntax error")


def _expression(words: list[str], level: int) -> str:
    """Remove an expression from the start of the words, and return its value."""
    if level == len(_LEVELS):
        return _operand(words)
    value = _expression(words, level + 1)
    while words and words[0] in _LEVELS[level]:
        operator = _LEVELS[level][words.pop(0)]
        value = operator(value, _expression(words, level + 1))
    return value


def _operand(words: list[str]) -> str:
    if not words:
        raise _BadCondition("syntax error")
    word = words.pop(0)
    if word != "(":
        return word
    value = _expression(words, 0)
    if not words or words.pop(0) != ")":
        raise _BadCondition("syntax error")
    return value


def _is_true(value: str) -> bool:
    return value not in ("", "0")


def _number(text: str) -> int:
    number = int_or_none(text) if len(text) <= _MAX_DIGITS else None
    if number is None:
        raise _BadCondition("non-integer argument")
    return number


def _divide(left: int, right: int) -> tuple[int, int]:
    """Return quotient and remainder, rounded towards zero as in C."""
    if right == 0:
        raise _BadCondition("division by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient, left - quotient * right


def _compare(left: str, right: str, comparison: Callable[[Any, Any], bool]) -> str:
    """Compare two numbers as numbers, and other values as strings."""
    numbers = int_or_none(left), int_or_none(right)
    pair = (left, right) if None in numbers else numbers
    return str(int(comparison(*pair)))
