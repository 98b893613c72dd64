"""The conditions of `find`."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from mockube.apimachinery.regexp.matcher import contains_match
from mockube.container_runtime.simulated.shell.patterns import pattern_of
from mockube.container_runtime.simulated.shell.process import Process, ProgramUsageError
from mockube.container_runtime.simulated.shell.regular_expressions import (
    BadRegularExpression,
    basic_expression,
    extended_expression,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry

from .modes import parse_mode

_SIZE: Final = re.compile(r"([-+]?)([0-9]{1,12})([bckwMG]?)")
_COUNT: Final = re.compile(r"([-+]?)([0-9]{1,9})")
_UNITS: Final = {"": 512, "b": 512, "c": 1, "k": 1024, "w": 2, "M": 1 << 20, "G": 1 << 30}


class FoundFile(Struct, frozen=True):
    """A path that is examined."""

    name: str
    path: str
    entry: FileEntry
    depth: int


def file_kind(entry: FileEntry) -> str:
    return "d" if entry.is_directory else "l" if entry.target else "f"


def pattern_test(word: str, text: str) -> Callable[[FoundFile], bool]:
    ignores_case = word.startswith("-i")
    pattern = pattern_of(text.lower() if ignores_case else text)

    def test(item: FoundFile) -> bool:
        value = (
            item.name.rstrip("/").rpartition("/")[2] or "/"
            if word.endswith("name") and word != "-wholename"
            else item.name
        )
        return pattern.matches(value.lower() if ignores_case else value)

    return test


def _compare(sign: str, value: float, number: int) -> bool:
    return value > number if sign == "+" else value < number if sign == "-" else value == number


def size_test(text: str) -> Callable[[FoundFile], bool]:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ProgramUsageError(f"invalid number '{text}'")
    unit = _UNITS[match[3]]
    return lambda item: _compare(match[1], (item.entry.size + unit - 1) // unit, int(match[2]))


def mode_test(text: str) -> Callable[[FoundFile], bool]:
    sign = text[:1] if text[:1] in ("-", "/", "+") and text else ""
    mode = parse_mode(text.removeprefix(sign), 0)
    if sign == "-":
        return lambda item: item.entry.mode & mode == mode
    if sign:
        return lambda item: not mode or bool(item.entry.mode & mode)
    return lambda item: item.entry.mode & 0o7777 == mode


def time_test(process: Process, word: str, text: str) -> Callable[[FoundFile], bool]:
    match = _COUNT.fullmatch(text)
    if match is None:
        raise ProgramUsageError(f"invalid number '{text}'")
    unit = 60 if word.endswith("min") else 86400
    now = process.host.now_running().timestamp()
    return lambda item: _compare(match[1], (now - item.entry.modified) // unit, int(match[2]))


def regex_test(text: str, *, ignores_case: bool) -> Callable[[FoundFile], bool]:
    try:
        expression = f"^(?:{basic_expression(text)})$"
    except BadRegularExpression:
        expression = f"^(?:{extended_expression(text)})$"
    expression = f"(?i:{expression})" if ignores_case else expression
    return lambda item: contains_match(expression, item.name)
