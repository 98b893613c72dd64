"""The expansion of parameters: `$x`, `${x:-word}`, `${x##pattern}`, `${x[@]}` and the like."""

import re
from collections.abc import Generator, Sequence
from typing import Final, Protocol

from .arithmetic import evaluate
from .fields import Piece
from .patterns import Pattern, replace_matches, replacement_texts, strip
from .process import CommandStart, Effect, Steps, count_work, slices
from .quoting import quote
from .state import BadIndex, DiscardError, ExpansionError, Shell, ShellExit
from .syntax import Parameter, Text, Word

_CHARACTERS_PER_COMMAND: Final = 16 * 1024
_CONVERTED_AT_ONCE: Final = 1024
_VALUES_PER_COMMAND: Final = 100
_CHANGED_PER_COMMAND: Final = 3
_VALUE_NANOSECONDS: Final = 500
"""What an argument, or an element of an array, takes."""
_C_BLANKS: Final = " \t\n\r\v\f"
"""What dash skips around a number that is the value of a variable."""
_ALL: Final = frozenset({"@", "*"})
_INDIRECT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")

ExpandedPieces = Generator[Effect, bytes | None, list[Piece]]
Expansion = Generator[Effect, bytes | None, str]


class WordExpansions(Protocol):
    """The expansion of the words in an expansion."""

    def pieces(self, shell: Shell, word: Word) -> ExpandedPieces: ...

    def text(self, shell: Shell, word: Word) -> Expansion: ...

    def pattern(self, shell: Shell, word: Word) -> Generator[Effect, bytes | None, Pattern]: ...

    def number(self, shell: Shell, expression: Word) -> Generator[Effect, bytes | None, int]: ...


class ExpressionVariables:
    """The variables of a shell for arithmetic expressions."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def read(self, name: str, index: str | None) -> str | None:
        shell = self._shell
        value = shell.parameter(name) if index is None else element(shell, name, index)
        if value is None and "nounset" in shell.options and shell.is_bash:
            raise unset_error(name, index)
        return value if value is None or shell.is_bash else value.strip(_C_BLANKS)

    def assign(self, name: str, index: str | None, value: int) -> None:
        shell = self._shell
        if index is None:
            shell.assign(name, str(value))
        else:
            shell.variables.set_element(name, element_key(shell, name, index), str(value))


class BadSubscript(DiscardError):
    """A negative index is before the first element."""


def evaluate_index(shell: Shell, index: str) -> int:
    try:
        return evaluate(index, ExpressionVariables(shell))
    except DiscardError as error:
        raise BadIndex(str(error), error.bash) from None


def element_key(shell: Shell, name: str, index: str) -> int | str:
    """Return the key of an element: a text in an associative array, or else the value of an expression."""
    variable = shell.variables.variable(name)
    if variable is not None and variable.is_map:
        return index
    key = evaluate_index(shell, index)
    if key < 0:
        elements = variable.elements if variable is not None else None
        key += 1 + max((int(each) for each in elements or {}), default=-1)
    if key < 0:
        raise BadSubscript(f"{name}: bad array subscript", f"{name}[{index}]: bad array subscript")
    return key


def element(shell: Shell, name: str, index: str) -> str | None:
    variable = shell.variables.variable(name)
    try:
        key = element_key(shell, name, index)
    except BadSubscript:
        return None
    if variable is None or variable.elements is None:
        return shell.parameter(name) if key == 0 else None
    return variable.elements.get(key)


def _report_bad_subscript(shell: Shell, name: str, index: str) -> Steps:
    """Report an index before the first element, which has no value; with `set -e` such a report ends bash."""
    try:
        element_key(shell, name, index)
    except BadSubscript as error:
        yield from shell.report(str(error))
        if "errexit" in shell.options:
            raise ShellExit(1) from None


def elements(shell: Shell, name: str) -> list[str]:
    variable = shell.variables.variable(name)
    if variable is None or variable.elements is None:
        value = shell.parameter(name)
        return [] if value is None else [value]
    return list(variable.elements.values())


def unset_error(name: str, index: str | None = None, *, braced: bool = True) -> ExpansionError:
    bash_name = name if index is None else f"{name}[{index}]"
    sign = "" if braced or not name.isdecimal() else "$"
    return ExpansionError(f"{name}: parameter not set", f"{sign}{bash_name}: unbound variable")


def expand_parameter(shell: Shell, part: Parameter, expansions: WordExpansions) -> ExpandedPieces:
    if part.operator == "bad":
        raise DiscardError("Bad substitution", f"{part.name}: bad substitution")
    index = None if part.index is None else (yield from expansions.text(shell, part.index))
    if part.operator.startswith("indirect") and index not in _ALL:
        target = _value(shell, part.name, index) or ""
        operator = part.operator.removeprefix("indirect").strip()
        name, bracket, rest = target.partition("[")
        if not name:
            raise DiscardError(f"{part.name}: invalid indirect expansion")
        if not _INDIRECT.fullmatch(name):
            raise DiscardError(f"{target}: invalid variable name")
        if "nounset" in shell.options and not operator and shell.parameter(name) is None:
            raise unset_error(f"!{part.name}")
        inner = (Text(rest.removesuffix("]"), quoted=True),) if bracket else None
        part = Parameter(
            name=name, operator=operator, word=part.word, second=part.second, index=inner, quoted=part.quoted
        )
        return (yield from expand_parameter(shell, part, expansions))
    if index is not None and index.startswith("-") and index[1:].isdecimal():
        yield from _report_bad_subscript(shell, part.name, index)
    expansion = _Expansion(shell, part, index, expansions)
    if part.operator == "names":
        names = [name for name in shell.variable_names() if name.startswith(part.name)]
        return (yield from expansion.join(names))
    if part.name in _ALL or index in _ALL:
        return (yield from expansion.all_values())
    return (yield from expansion.one_value())


def _value(shell: Shell, name: str, index: str | None) -> str | None:
    return shell.parameter(name) if index is None else element(shell, name, index)


class _Expansion:
    def __init__(self, shell: Shell, part: Parameter, index: str | None, expansions: WordExpansions) -> None:
        self._shell = shell
        self._part = part
        self._index = index
        self._expansions = expansions

    def _pieces(self, text: str) -> list[Piece]:
        return [Piece(text, self._part.quoted, splits=not self._part.quoted)]

    def join(self, values: Sequence[str]) -> ExpandedPieces:
        """Return all arguments or elements as fields, or as one field for `"$*"`."""
        quoted = self._part.quoted
        is_star = "*" in (self._part.name, self._index)
        separators = self._shell.variables.get("IFS")
        separator = (" " if separators is None else separators[:1]) if is_star else " "
        if quoted and is_star:
            return [Piece(separator.join(values), quoted=True)]
        pieces: list[Piece] = []
        for index, value in enumerate(values):
            if index % _VALUES_PER_COMMAND == _VALUES_PER_COMMAND - 1:
                yield CommandStart()
            if pieces:
                pieces.append(Piece(separator, quoted=quoted, breaks=True))
            pieces.append(Piece(value, quoted, splits=not quoted))
        return pieces

    def _values(self) -> list[str]:
        name = self._part.name
        values = list(self._shell.arguments) if name in _ALL else elements(self._shell, name)
        self._shell.process.host.work += _VALUE_NANOSECONDS * len(values)
        return values

    def all_values(self) -> ExpandedPieces:
        part, shell = self._part, self._shell
        values = self._values()
        match part.operator:
            case "":
                return (yield from self.join(values))
            case "length":
                return self._pieces(str(len(values)))
            case "indirect":
                variable = shell.variables.variable(part.name)
                keys = [0] if variable is None or variable.elements is None else list(variable.elements)
                return (yield from self.join([str(key) for key in keys] if values else []))
            case ":":
                first, count = yield from self._range()
                values = self._values_from(first, values)
                return (yield from self.join(values if count is None else values[: max(count, 0)]))
            case _:
                return (yield from self._change_all(values))

    def _values_from(self, first: int, values: list[str]) -> list[str]:
        """Return the arguments from a position on, or the elements from an index on; a negative one is from the end."""
        variable = self._shell.variables.variable(self._part.name)
        if self._part.name in _ALL:
            values = [self._shell.script_name, *values]
        if variable is None or variable.is_map or variable.elements is None:
            keys = list(range(len(values)))
        else:
            keys = [int(key) for key in variable.elements]
        first = first if first >= 0 else first + 1 + max(keys, default=-1)
        return [] if first < 0 else [value for key, value in zip(keys, values, strict=True) if key >= first]

    def _change_all(self, values: list[str]) -> ExpandedPieces:
        part = self._part
        if part.operator[-1] in "-+=?" and part.operator[0] != "/":
            text = "".join(values)
            is_missing = not values or (part.operator.startswith(":") and not text)
            replaced = yield from self._default(is_missing=is_missing)
            return (yield from self.join(values)) if replaced is None else replaced
        changed_values = list(values)
        for index, value in enumerate(values):
            if index % _CHANGED_PER_COMMAND == _CHANGED_PER_COMMAND - 1:
                yield CommandStart()
            changed_values[index] = yield from self._change(value)
        return (yield from self.join(changed_values))

    def one_value(self) -> ExpandedPieces:
        part = self._part
        value = _value(self._shell, part.name, self._index)
        operator = part.operator
        if operator and operator[-1] in "-+=?" and operator[0] != "/":
            is_missing = value is None or (operator.startswith(":") and not value)
            replaced = yield from self._default(is_missing=is_missing)
            return self._pieces(value or "") if replaced is None else replaced
        if value is None and "nounset" in self._shell.options:
            raise unset_error(part.name, self._index, braced=part.braced)
        if operator == "length":
            return self._pieces(str(len(value or "")))
        if operator and not (value is None and operator == "@Q"):
            value = yield from self._change(value or "")
        return self._pieces(value or "")

    def _default(self, *, is_missing: bool) -> Generator[Effect, bytes | None, list[Piece] | None]:
        """Apply `-`, `=`, `?` or `+`; return None for the value itself."""
        part, shell = self._part, self._shell
        match part.operator[-1]:
            case "-" if is_missing:
                return (yield from self._word())
            case "+":
                return self._pieces("")[: int(part.quoted)] if is_missing else (yield from self._word())
            case "=" if is_missing:
                if not (part.name[0].isalpha() or part.name[0] == "_"):
                    raise ExpansionError(f"{part.name}: bad variable name")
                text = yield from self._expansions.text(shell, part.word)
                if self._index is None:
                    shell.assign(part.name, text)
                else:
                    key = element_key(shell, part.name, self._index)
                    shell.variables.set_element(part.name, key, text)
                return self._pieces(text)
            case "?" if is_missing:
                text = yield from self._expansions.text(shell, part.word)
                problem = "parameter not set or null" if part.operator == ":?" else "parameter not set"
                bash_problem = "parameter null or not set" if part.operator == ":?" else "parameter not set"
                raise ExpansionError(
                    f"{part.name}: {text or problem}", f"{part.name}: {text if part.word else bash_problem}"
                )
        return None

    def _word(self) -> ExpandedPieces:
        pieces = yield from self._expansions.pieces(self._shell, self._part.word)
        if self._part.quoted:
            return [Piece("", quoted=True), *pieces]
        return [piece if piece.quoted or piece.breaks else piece._replace(splits=True) for piece in pieces]

    def _range(self) -> Generator[Effect, bytes | None, tuple[int, int | None]]:
        first = yield from self._expansions.number(self._shell, self._part.word)
        count = None
        if self._part.second is not None:
            count = yield from self._expansions.number(self._shell, self._part.second)
        return first, count

    def _change(self, value: str) -> Expansion:
        part, shell = self._part, self._shell
        operator = part.operator
        if operator in ("#", "##", "%", "%%"):
            return (
                yield from strip(value, operator, (yield from self._expansions.pattern(shell, part.word)))
            )
        if operator[0] == "/":
            pattern = yield from self._expansions.pattern(shell, part.word)
            if shell.is_bash and "patsub_replacement" in shell.features:
                pieces = yield from self._expansions.pieces(shell, part.second or ())
                replacement = replacement_texts(
                    [(" ", True) if piece.breaks else (piece.text, piece.quoted) for piece in pieces]
                )
            else:
                replacement = [(yield from self._expansions.text(shell, part.second or ()))]
            return (yield from replace_matches(value, operator, pattern, replacement))
        yield from count_work(len(value), _CHARACTERS_PER_COMMAND)
        if operator == ":":
            first, count = yield from self._range()
            return _substring(value, first, count)
        if operator[0] in "^,":
            pattern = yield from self._expansions.pattern(shell, part.word)
            return (yield from _change_case(value, operator, pattern))
        return _transform(value, operator)


def _substring(value: str, first: int, count: int | None) -> str:
    start = first if first >= 0 else first + len(value)
    if not 0 <= start <= len(value) or (start == len(value) and not value):
        return ""
    if count is None:
        return value[start:]
    end = start + count if count >= 0 else len(value) + count
    if end < start and count < 0:
        raise DiscardError(f"{count}: substring expression < 0")
    return value[start:end]


def _change_case(value: str, operator: str, pattern: Pattern) -> Expansion:
    convert = str.upper if operator[0] == "^" else str.lower
    end = len(value) if len(operator) == 2 else 1
    if not pattern.items:
        return convert(value[:end]) + value[end:]
    table = {ord(char): convert(char) for char in set(value[:end]) if pattern.matches(char)}
    parts = []
    for part in slices(value[:end], _CONVERTED_AT_ONCE):
        yield CommandStart()
        parts.append(part.translate(table))
    return "".join(parts) + value[end:]


def _transform(value: str, operator: str) -> str:
    match operator:
        case "@Q":
            return quote(value)
        case "@U":
            return value.upper()
        case "@L":
            return value.lower()
        case "@u":
            return value[:1].upper() + value[1:]
        case _:
            raise ExpansionError(f"${{...{operator}}} is not simulated")
