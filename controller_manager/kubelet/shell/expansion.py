"""The expansion of words: parameters, substitutions, arithmetic, field splitting, and file name patterns."""

import ast
import operator
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from posixpath import dirname, join
from typing import Final, Protocol

from mockube.apimachinery.wildcards import WildcardsTooCostly, escape_wildcards, parse_wildcards
from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import CommandStart, Effect, Process, count_work
from mockube.controller_manager.kubelet.shell.syntax import (
    Command,
    Parameter,
    Part,
    ShellSyntaxError,
    Substitution,
    Text,
    Word,
)

MAX_VALUE: Final = 1 << 20
"""The maximum number of characters of an expanded word."""
_PATTERN: Final = re.compile(r"[*?]|\[[^\[]")
_NAME: Final = re.compile(r"\$?([A-Za-z_][A-Za-z0-9_]*)")
_CHARACTERS_PER_COMMAND: Final = 16 * 1024
"""The length of a text whose search takes as long as a command at most."""
_FILES_PER_COMMAND: Final = 50
_FIELDS_PER_COMMAND: Final = 500
_EXPRESSION_PER_COMMAND: Final = 100
"""The length of an arithmetic expression that takes as long as a command."""
_NUMBER_LIMIT: Final = 1 << 63


class ShellState(Protocol):
    """The parts of a shell that words refer to."""

    process: Process

    def parameter(self, name: str) -> str | None: ...

    def arguments(self) -> Sequence[str]: ...

    def assign(self, name: str, value: str) -> None: ...

    def capture(self, script: Command) -> Generator[Effect, bytes | None, str]: ...


_TOO_LONG: Final = "the arguments are too long"

Expansion = Generator[Effect, bytes | None, str]


def expand_words(shell: ShellState, words: Sequence[Word]) -> Generator[Effect, bytes | None, list[str]]:
    """Return the fields of all words."""
    fields: list[str] = []
    size = 0
    for word in words:
        added = yield from _fields(shell, word, MAX_VALUE - size)
        size += sum(map(len, added)) + len(added)
        if size > MAX_VALUE:
            raise ShellSyntaxError(_TOO_LONG)
        fields += added
    return fields


def expand_text(shell: ShellState, word: Word) -> Expansion:
    """Return the expansion of a word as one field."""
    text = ""
    for part in word:
        text += yield from _value(shell, part)
        if len(text) > MAX_VALUE:
            raise ShellSyntaxError("the value is too long")
    return text


def _expand_pattern(shell: ShellState, word: Word) -> Expansion:
    """Return the expansion of a word as a pattern, in which quoted characters stand for themselves."""
    pattern: list[str] = []
    size = 0
    for part in word:
        value = yield from _value(shell, part)
        size += len(value)
        if size > MAX_VALUE:
            raise ShellSyntaxError("the pattern is too long")
        pattern.append(escape_wildcards(value) if part.quoted else value)
    return "".join(pattern)


def matches_pattern(shell: ShellState, text: str, word: Word) -> Generator[Effect, bytes | None, bool]:
    """Return whether a word is a pattern that matches all of a text."""
    pattern = yield from _expand_pattern(shell, word)
    yield from count_work(len(text) + len(pattern), _CHARACTERS_PER_COMMAND)
    try:
        return parse_wildcards(pattern).matches(text)
    except WildcardsTooCostly as error:
        raise ShellSyntaxError(str(error)) from error


def _fields(shell: ShellState, word: Word, maximum: int) -> Generator[Effect, bytes | None, list[str]]:
    """Expand a word: split unquoted values at blanks, and replace a field with an unquoted pattern by matching files."""
    split = _SplitFields(maximum)
    for part in word:
        if isinstance(part, Parameter) and part.name == "@" and part.quoted and not part.operator:
            split.add_arguments(shell.arguments())
        else:
            yield from split.add(part, (yield from _value(shell, part)))
    file_names: list[str] = []
    size = 0
    for index, field in enumerate(split.fields):
        yield from _count_field(index)
        names = yield from _matching_files(shell.process, field)
        size += sum(map(len, names))
        if size > maximum:
            raise ShellSyntaxError(_TOO_LONG)
        file_names += names
    return file_names


def _count_field(index: int) -> Generator[Effect, bytes | None, None]:
    if index % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1:
        yield CommandStart()


class _SplitFields:
    """The fields of a word: their pieces, and whether each is quoted."""

    def __init__(self, maximum: int) -> None:
        self.fields: list[list[tuple[str, bool]]] = []
        self._is_open = False
        """Whether the next value continues the last field."""
        self._remaining = maximum

    def _reserve(self, size: int) -> None:
        self._remaining -= size
        if self._remaining < 0:
            raise ShellSyntaxError(_TOO_LONG)

    def add_arguments(self, arguments: Sequence[str]) -> None:
        self._reserve(sum(map(len, arguments)) + len(arguments))
        values = [[(value, True)] for value in arguments]
        if values and self._is_open:
            self.fields[-1] += values[0]
            del values[0]
        self.fields += values
        self._is_open = bool(arguments) or self._is_open

    def add(self, part: Part, value: str) -> Generator[Effect, bytes | None, None]:
        self._reserve(len(value))
        if part.quoted or isinstance(part, Text):
            pieces = [value]
        else:
            pieces = value.split()
            self._is_open = self._is_open and not value[:1].isspace()
        for index, piece in enumerate(pieces):
            yield from _count_field(index)
            if self._is_open and index == 0:
                self.fields[-1].append((piece, part.quoted))
            else:
                self.fields.append([(piece, part.quoted)])
            self._is_open = True
        if pieces and not part.quoted and value[-1:].isspace():
            self._is_open = False


def _matching_files(
    process: Process, field: Sequence[tuple[str, bool]]
) -> Generator[Effect, bytes | None, Sequence[str]]:
    text = "".join(piece for piece, _ in field)
    if not any(not quoted and _PATTERN.search(piece) for piece, quoted in field):
        return [text]
    folder = dirname(text)
    try:
        names = list(process.host.files.children(process.path(folder or ".")))
    except FileError:
        return [text]
    yield from count_work(len(names), _FILES_PER_COMMAND)
    escaped = "".join(escape_wildcards(piece) if quoted else piece for piece, quoted in field)
    try:
        pattern = parse_wildcards(escaped.rpartition("/")[2])
        matches = [name for name in names if not name.startswith(".") and pattern.matches(name)]
    except WildcardsTooCostly as error:
        raise ShellSyntaxError(str(error)) from error
    return [join(folder, name) for name in matches] or [text]


def _value(shell: ShellState, part: Part) -> Expansion:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Parameter):
        return (yield from _parameter(shell, part))
    if isinstance(part, Substitution):
        return (yield from shell.capture(part.script))
    expression = yield from expand_text(shell, part.expression)
    yield from count_work(len(expression), _EXPRESSION_PER_COMMAND)
    return str(evaluate(expression, shell.parameter))


def _parameter(shell: ShellState, part: Parameter) -> Expansion:
    if part.name in "@*":
        return " ".join(shell.arguments())
    value = shell.parameter(part.name)
    kind = part.operator
    if kind == "length":
        return str(len(value or ""))
    if kind in ("#", "##", "%", "%%"):
        pattern = yield from _expand_pattern(shell, part.word)
        return (yield from _strip(value or "", kind, pattern))
    is_missing = value is None or (kind.startswith(":") and not value)
    match kind[-1:]:
        case "-" if is_missing:
            return (yield from expand_text(shell, part.word))
        case "+":
            return "" if is_missing else (yield from expand_text(shell, part.word))
        case "=" if is_missing:
            assigned = yield from expand_text(shell, part.word)
            shell.assign(part.name, assigned)
            return assigned
        case "?" if is_missing:
            message = yield from expand_text(shell, part.word)
            raise ShellSyntaxError(f"{part.name}: {message or 'parameter not set or null'}")
    return value or ""


def _strip(value: str, kind: str, pattern: str) -> Expansion:
    yield from count_work(len(value) + len(pattern), _CHARACTERS_PER_COMMAND)
    is_greedy = len(kind) > 1
    try:
        parsed = parse_wildcards(pattern)
        if kind[0] == "#":
            return value[parsed.prefix_end(value, is_greedy=is_greedy) :]
        return value[: parsed.suffix_start(value, is_greedy=is_greedy)]
    except WildcardsTooCostly as error:
        raise ShellSyntaxError(str(error)) from error


# --- arithmetic

_OPERATIONS: Final[Mapping[type[ast.AST], Callable[[int, int], int | bool]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: int(left / right) if abs(left) < 1 << 53 else left // right,
    ast.Mod: lambda left, right: left - right * int(left / right),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def evaluate(text: str, parameter: Callable[[str], str | None]) -> int:
    """Return the value of an arithmetic expression; `parameter` returns the values of variables."""
    if len(text) > 1000:
        raise ShellSyntaxError("the arithmetic expression is too long")
    plain = text.replace("&&", " and ").replace("||", " or ").strip() or "0"
    plain = _NAME.sub(lambda match: match[0] if match[1] in ("and", "or") else match[1], plain)
    try:
        tree = ast.parse(plain, mode="eval").body
        return _evaluate(tree, parameter)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ShellSyntaxError(f"arithmetic syntax error: {text[:50]!r}") from error
    except ZeroDivisionError as error:
        raise ShellSyntaxError("divide by zero") from error


def _evaluate(node: ast.expr, parameter: Callable[[str], str | None]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return _in_range(value)
        case ast.Name(id=name):
            text = parameter(name) or "0"
            return _in_range(int(text[:20])) if text.isascii() and text.lstrip("-").isdigit() else 0
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _in_range(
                _OPERATIONS[type(operation)](_evaluate(left, parameter), _evaluate(right, parameter))
            )
        case ast.Compare(left=left, ops=[operation], comparators=[right]) if type(operation) in _OPERATIONS:
            return int(_OPERATIONS[type(operation)](_evaluate(left, parameter), _evaluate(right, parameter)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _in_range(-_evaluate(operand, parameter))
        case ast.BoolOp(op=ast.And(), values=values):
            return int(all(_evaluate(value, parameter) for value in values))
        case ast.BoolOp(op=ast.Or(), values=values):
            return int(any(_evaluate(value, parameter) for value in values))
        case _:
            raise ValueError(node)


def _in_range(value: int) -> int:
    return (int(value) + _NUMBER_LIMIT) % (2 * _NUMBER_LIMIT) - _NUMBER_LIMIT
