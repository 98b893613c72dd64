"""`test` and `[`, which evaluate conditions on strings, numbers and files, and `expr`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none

from . import limits
from .access import SEARCH, ContainerUser, is_allowed
from .devices import is_special
from .messages import WordedError, message_of
from .process import Process, Run
from .vfs.file_entry import FileEntry, FileError

_NUMBERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_TEXTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "=": lambda left, right: left == right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
}
_FILE_PAIRS: Final = frozenset({"-nt", "-ot", "-ef"})
_UNARY: Final = frozenset("-" + letter for letter in "bcdefghkLnOGprsStuwxzN")
_SPACE: Final = re.compile(r"\s*(\S*)\s*")


class BadCondition(WordedError):
    """A condition is invalid."""


def test(process: Process) -> Run:
    arguments = list(process.arguments)
    if process.name == "[" and (not arguments or arguments.pop() != "]"):
        yield process.error("missing `]'" if process.is_bash else "missing ]")
        return 2
    try:
        return int(not _evaluate(process, arguments))
    except BadCondition as error:
        yield process.error(message_of(error, is_bash=process.is_bash))
        return 2


def _evaluate(process: Process, arguments: Sequence[str]) -> bool:
    """Evaluate a condition by the number of its arguments, as POSIX requires."""
    value: bool | None = None
    match list(arguments):
        case [] | [_]:
            value = bool(arguments and arguments[0])
        case ["!", text]:
            value = not text
        case [operator, text] if operator in _UNARY:
            value = unary(process, operator, text)
        case [left, operator, right] if _is_binary(operator):
            value = binary(process, left, operator, right)
        case ["!", _, _] | ["!", _, _, _]:
            value = not _evaluate(process, arguments[1:])
        case ["(", *inner, ")"] if len(inner) in (1, 2):
            value = _evaluate(process, inner)
        case [first, _] if process.is_bash:
            raise BadCondition("", f"{first}: unary operator expected")
        case [_, second, _] if process.is_bash and second not in ("-a", "-o"):
            raise BadCondition("", f"{second}: binary operator expected")
        case _:
            pass
    return _evaluate_long(process, arguments) if value is None else value


def _evaluate_long(process: Process, arguments: Sequence[str]) -> bool:
    parser = _Parser(process, arguments)
    value = parser.disjunction()
    parser.check_end()
    return value


def _is_binary(operator: str) -> bool:
    return operator in _TEXTS or operator in _NUMBERS or operator in _FILE_PAIRS


class _Parser:
    """A parser of conditions with `-a`, `-o` and parentheses."""

    def __init__(self, process: Process, arguments: Sequence[str]) -> None:
        self._process = process
        self._words = arguments
        self._position = 0
        self._depth = 0

    def _peek(self, offset: int = 0) -> str | None:
        index = self._position + offset
        return self._words[index] if index < len(self._words) else None

    def check_end(self) -> None:
        word = self._peek()
        if word is not None:
            words = f"syntax error: `{word}' unexpected" if word.startswith("-") else "too many arguments"
            raise BadCondition(f"{self._words[self._position - 1]}: unexpected operator", words)

    def disjunction(self) -> bool:
        self._depth += 1
        if self._depth > limits.MAX_NESTED_CONDITIONS:
            raise BadCondition("too many parentheses")
        value = self._conjunction()
        while self._peek() == "-o":
            self._position += 1
            right = self._conjunction()
            value = value or right
        self._depth -= 1
        return value

    def _conjunction(self) -> bool:
        value = self._negation()
        while self._peek() == "-a":
            self._position += 1
            right = self._negation()
            value = value and right
        return value

    def _negation(self) -> bool:
        negated = False
        while self._peek() == "!" and self._peek(1) is not None:
            self._position += 1
            negated = not negated
        return self._primary() is not negated

    def _primary(self) -> bool:
        word, following = self._peek(), self._peek(1)
        if word is None and not self._process.is_bash:
            return False
        if word is None:
            raise BadCondition("argument expected")
        if word == "(" and following is not None:
            return self._evaluate_group()
        if following is not None and _is_binary(following) and self._peek(2) is not None:
            self._position += 3
            return binary(self._process, word, following, self._words[self._position - 1])
        if following is not None and _is_binary(following) and not self._process.is_bash:
            raise BadCondition(f"{following}: argument expected")
        self._position += 1
        if word in _UNARY and following is not None:
            self._position += 1
            return unary(self._process, word, following)
        return bool(word)

    def _evaluate_group(self) -> bool:
        self._position += 1
        value = self.disjunction()
        if self._peek() != ")":
            found = f", found {word}" if (word := self._peek()) is not None else ""
            raise BadCondition("closing paren expected", f"`)' expected{found}")
        self._position += 1
        return value


def unary(process: Process, operator: str, text: str) -> bool:
    if operator in ("-z", "-n"):
        return bool(text) is (operator == "-n")
    if operator == "-t":
        return process.host.has_terminal and text in ("0", "1", "2")
    if operator not in _UNARY:
        raise BadCondition(f"{operator}: unexpected operator", f"{operator}: unary operator expected")
    return is_file(process, operator, text)


def binary(process: Process, left: str, operator: str, right: str) -> bool:
    if operator in _TEXTS:
        return _TEXTS[operator](left, right)
    if operator in _NUMBERS:
        return _NUMBERS[operator](_number(left), _number(right))
    first, second = _entry(process, left), _entry(process, right)
    if operator == "-ef":
        files = process.host.files
        return first is not None and files.resolve(process.path(left)) == files.resolve(process.path(right))
    if operator == "-ot":
        first, second = second, first
    if first is None or second is None:  # Only bash has a file that does not exist for an older one.
        return process.is_bash and first is not None
    return first.modified > second.modified


def _number(text: str) -> int:
    match = _SPACE.fullmatch(text)
    number = int_or_none(match[1].removeprefix("+")) if match else None
    if number is None:
        raise BadCondition(f"Illegal number: {text}", f"{text}: integer expression expected")
    return number


def _entry(process: Process, path: str) -> FileEntry | None:
    try:
        return process.host.files.entry(process.path(path)) if path else None
    except FileError:
        return None


def is_file(process: Process, operator: str, path: str) -> bool:
    """Return whether a file exists that has the property of an operator such as `-d`."""
    files, absolute_path = process.host.files, process.path(path)
    if not path:
        return False
    if is_special(absolute_path):
        return operator in _OF_DEVICE
    try:
        if operator in ("-L", "-h"):
            return files.has(absolute_path) and bool(files.link_entry(absolute_path).target)
        if not files.exists(absolute_path):
            return operator in _OF_UNKNOWN and files.unknown.is_expected(absolute_path)
        entry = files.entry(absolute_path)
    except FileError:
        return False
    if path.endswith("/") and not entry.is_directory:
        return False
    check = _TESTS.get(operator)
    if operator == "-w" and files.place(files.resolve(absolute_path)).read_only:
        return False
    return check is not None and check(process, entry)


def _has_access(process: Process, entry: FileEntry, bit: int) -> bool:
    host = process.host
    identity = ContainerUser(host.user, host.group, host.other_groups, host.files.rights.user.capabilities)
    if entry.is_guess or (bit == SEARCH and entry.is_directory and identity.has("DAC_OVERRIDE")):
        return True
    return is_allowed(identity, entry.user, entry.group, entry.mode, bit)


_OF_UNKNOWN: Final = frozenset({"-e", "-f", "-d", "-r", "-w", "-x", "-s"})
"""The tests that hold for a file that may be in the image."""
_OF_DEVICE: Final = frozenset({"-c", "-e", "-r", "-w"})
_TESTS: Final[Mapping[str, Callable[[Process, FileEntry], bool]]] = {
    "-e": lambda _process, _entry: True,
    "-f": lambda _, entry: not entry.is_directory,
    "-d": lambda _, entry: entry.is_directory,
    "-s": lambda _, entry: entry.size > 0,
    "-r": lambda process, entry: _has_access(process, entry, 4),
    "-w": lambda process, entry: _has_access(process, entry, 2) and not entry.read_only,
    "-x": lambda process, entry: _has_access(process, entry, 1),
    "-O": lambda process, entry: process.host.user == entry.user,
    "-G": lambda process, entry: process.host.group == entry.group,
    "-g": lambda _, entry: bool(entry.mode & 0o2000),
    "-u": lambda _, entry: bool(entry.mode & 0o4000),
    "-k": lambda _, entry: bool(entry.mode & 0o1000),
    "-N": lambda _process, _entry: True,
}
