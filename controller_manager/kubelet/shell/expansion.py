"""The expansion of words: parameters, substitutions, arithmetic, field splitting, and file name patterns."""

import ast
import operator
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import dirname, join
from typing import Final, Protocol

from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import Effect, Process
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
_PATTERN: Final = re.compile(r"[*?\[]")
_NAME: Final = re.compile(r"\$?([A-Za-z_][A-Za-z0-9_]*)")
_NUMBER_LIMIT: Final = 1 << 63


class ShellState(Protocol):
    """The parts of a shell that words refer to."""

    process: Process

    def parameter(self, name: str) -> str | None: ...

    def arguments(self) -> Sequence[str]: ...

    def assign(self, name: str, value: str) -> None: ...

    def capture(self, script: Command) -> Generator[Effect, bytes | None, str]: ...


Expansion = Generator[Effect, bytes | None, str]


def expand_words(shell: ShellState, words: Sequence[Word]) -> Generator[Effect, bytes | None, list[str]]:
    """Return the fields of all words."""
    fields: list[str] = []
    for word in words:
        fields += yield from _fields(shell, word)
        if sum(map(len, fields)) > MAX_VALUE:
            raise ShellSyntaxError("the arguments are too long")
    return fields


def expand_text(shell: ShellState, word: Word) -> Expansion:
    """Return the expansion of a word as one field."""
    text = ""
    for part in word:
        text += yield from _value(shell, part)
        if len(text) > MAX_VALUE:
            raise ShellSyntaxError("the value is too long")
    return text


def _fields(shell: ShellState, word: Word) -> Generator[Effect, bytes | None, list[str]]:
    """Expand a word: split unquoted values at blanks, and replace a field with an unquoted pattern by matching files."""
    fields: list[list[tuple[str, bool]]] = []
    is_open = False
    for part in word:
        if isinstance(part, Parameter) and part.name == "@" and part.quoted and not part.operator:
            values = [[(value, True)] for value in shell.arguments()]
            if values and is_open:
                fields[-1] += values.pop(0)
            fields += values
            is_open = bool(values) or is_open
            continue
        value = yield from _value(shell, part)
        if part.quoted or isinstance(part, Text):
            pieces = [value]
        else:
            pieces = value.split()
            is_open = is_open and not value[:1].isspace()
        for index, piece in enumerate(pieces):
            if is_open and index == 0:
                fields[-1].append((piece, part.quoted))
            else:
                fields.append([(piece, part.quoted)])
            is_open = True
        if pieces and not part.quoted and value[-1:].isspace():
            is_open = False
    return [name for field in fields for name in _matching_files(shell.process, field)]


def _matching_files(process: Process, field: Sequence[tuple[str, bool]]) -> Sequence[str]:
    text = "".join(piece for piece, _ in field)
    if not any(not quoted and _PATTERN.search(piece) for piece, quoted in field):
        return [text]
    folder = dirname(text)
    try:
        names = process.host.files.children(process.path(folder or "."))
    except FileError:
        return [text]
    pattern = text.rpartition("/")[2]
    matches = [name for name in names if fnmatchcase(name, pattern) and not name.startswith(".")]
    return [join(folder, name) for name in matches] or [text]


def _value(shell: ShellState, part: Part) -> Expansion:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Parameter):
        return (yield from _parameter(shell, part))
    if isinstance(part, Substitution):
        return (yield from shell.capture(part.script))
    expression = yield from expand_text(shell, part.expression)
    return str(evaluate(expression, shell.parameter))


def _parameter(shell: ShellState, part: Parameter) -> Expansion:
    if part.name in "@*":
        return " ".join(shell.arguments())
    value = shell.parameter(part.name)
    kind = part.operator
    if kind == "length":
        return str(len(value or ""))
    if kind in ("#", "##", "%", "%%"):
        pattern = yield from expand_text(shell, part.word)
        return _strip(value or "", kind, pattern)
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


def _strip(value: str, kind: str, pattern: str) -> str:
    ends = range(len(value) + 1)
    if kind in ("##", "%"):
        ends = ends[::-1]
    for end in ends:
        part = value[:end] if kind[0] == "#" else value[end:]
        if fnmatchcase(part, pattern):
            return value[end:] if kind[0] == "#" else value[:end]
    return value


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
