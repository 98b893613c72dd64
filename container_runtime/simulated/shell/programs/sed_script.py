"""The parser of sed's scripts."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.regular_expressions import (
    basic_expression,
    extended_expression,
)

_LABEL_END: Final = re.compile(r"[;\n}]")
_NUMBER: Final = re.compile(r"[0-9]+")


class SedError(Exception):
    """A script is invalid, or a limit is exceeded."""


class LineAddress(Struct, frozen=True, kw_only=True):
    """A line number, `$`, or an expression."""

    line: int = 0
    is_last: bool = False
    expression: str | None = None
    """"" for the last expression."""
    step: int = 0
    relative: int = 0
    """The number of lines behind the first address, `,+N`."""
    multiple: int = 0


class SedSubstitution(Struct, frozen=True, kw_only=True):
    expression: str
    replacement: tuple[str | int, ...]
    """Texts and the numbers of groups."""
    is_global: bool
    number: int
    prints: bool
    file: str


class SedCommand(Struct, kw_only=True):
    name: str
    first: LineAddress | None = None
    second: LineAddress | None = None
    negated: bool = False
    text: str = ""
    """The text of a, i and c, a label, or a file name."""
    end: int = 0
    """The index behind the block that begins here."""
    substitution: SedSubstitution | None = None
    table: dict[int, str] | None = None


def parse_script(text: str, *, is_extended: bool) -> list[SedCommand]:
    return _Parser(text, is_extended=is_extended).commands()


class _Parser:
    def __init__(self, text: str, *, is_extended: bool) -> None:
        self._text = text
        self._position = 0
        self._convert: Callable[[str], str] = extended_expression if is_extended else basic_expression

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _skip(self, characters: str) -> None:
        while self._peek() and self._peek() in characters:
            self._position += 1

    def commands(self) -> list[SedCommand]:
        commands: list[SedCommand] = []
        blocks: list[SedCommand] = []
        while True:
            self._skip(" \t\n;")
            if not self._peek():
                break
            if self._peek() == "#":
                self._until("\n")
                continue
            if self._peek() == "}":
                self._position += 1
                if not blocks:
                    raise SedError("unexpected '}'")
                blocks.pop().end = len(commands)
                continue
            command = self._command()
            commands.append(command)
            if command.name == "{":
                blocks.append(command)
            if len(commands) > limits.MAX_SED_COMMANDS:
                raise SedError("the script has too many commands")
        if blocks:
            raise SedError("unterminated {")
        return commands

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._position)
        stop = len(self._text) if stop < 0 else stop
        text = self._text[self._position : stop]
        self._position = stop
        return text

    def _command(self) -> SedCommand:
        first = self._address()
        second = None
        if first is not None:
            self._skip(" \t")
            if self._peek() == ",":
                self._position += 1
                self._skip(" \t")
                second = self._second_address()
        self._skip(" \t")
        negated = self._peek() == "!"
        if negated:
            self._skip("! \t")
        name = self._peek()
        self._position += 1
        command = SedCommand(name=name, first=first, second=second, negated=negated)
        self._arguments(command)
        return command

    def _address(self) -> LineAddress | None:
        char = self._peek()
        if char.isdigit():
            line = self._number()
            if self._peek() == "~":
                self._position += 1
                return LineAddress(line=line, step=self._number())
            return LineAddress(line=line)
        if char == "$":
            self._position += 1
            return LineAddress(is_last=True)
        if char in ("/", "\\") and char:
            if char == "\\":
                self._position += 1
            expression = self._parse_delimited(self._peek())
            ignores_case = self._peek() == "I"
            self._position += ignores_case
            converted = self._convert(expression) if expression else ""
            return LineAddress(expression=f"(?i:{converted})" if ignores_case else converted)
        return None

    def _second_address(self) -> LineAddress:
        sign = self._peek()
        if sign in ("+", "~") and sign:
            self._position += 1
            number = self._number()
            return LineAddress(relative=number) if sign == "+" else LineAddress(multiple=max(number, 1))
        address = self._address()
        if address is None:
            raise SedError("unexpected ','")
        return address

    def _number(self) -> int:
        match = _NUMBER.match(self._text, self._position)
        if match is None or len(match[0]) > 9:
            raise SedError("invalid number")
        self._position = match.end()
        return int(match[0])

    def _parse_delimited(self, mark: str, *, in_expression: bool = True) -> str:
        """Consume a text between delimiters; the second delimiter is consumed."""
        self._position += 1
        parts: list[str] = []
        in_bracket = False
        while self._position < len(self._text):
            char = self._text[self._position]
            if char == "\\" and not in_bracket:
                following = self._text[self._position + 1 : self._position + 2]
                self._position += 2
                if following == mark:
                    parts.append(mark)
                elif following == "n" and in_expression:
                    parts.append("\n")
                else:
                    parts.append(char + following)
                continue
            if in_expression and char == "[" and not in_bracket and "]" in self._text[self._position + 2 :]:
                in_bracket = True
                following = self._text[self._position + 1 : self._position + 3]
                length = 3 if following == "^]" else 2 if following[:1] == "]" else 1
                parts.append(self._text[self._position : self._position + length])
                self._position += length
                continue
            if char == "]":
                in_bracket = False
            elif char == mark and not in_bracket:
                self._position += 1
                return "".join(parts)
            parts.append(char)
            self._position += 1
        raise SedError("unterminated address regex" if in_expression else "unterminated 's' command")

    def _arguments(self, command: SedCommand) -> None:
        name = command.name
        if name == "s":
            command.substitution = self._substitution()
        elif name == "y":
            mark = self._peek()
            source = self._unescape(self._parse_delimited(mark, in_expression=False))
            self._position -= 1
            target = self._unescape(self._parse_delimited(mark, in_expression=False))
            if len(source) != len(target):
                raise SedError("y command strings have different lengths")
            command.table = dict(zip(map(ord, source), target, strict=True))
        elif name in ("a", "i", "c"):
            command.text = self._text_argument()
        elif name in (":", "b", "t", "T"):
            self._skip(" \t")
            end = _LABEL_END.search(self._text, self._position)
            stop = len(self._text) if end is None or (name == ":" and end[0] == "}") else end.start()
            command.text = self._text[self._position : stop].strip()
            self._position = stop
        elif name in ("r", "w"):
            self._skip(" \t")
            command.text = self._until("\n").strip()
        elif name in ("q", "Q", "l"):
            self._skip(" \t")
            command.text = str(self._number()) if self._peek().isdigit() else ""
        elif name not in ("{", "p", "P", "d", "D", "n", "N", "g", "G", "h", "H", "x", "="):
            raise SedError(f"unsupported command {name}" if name else "missing command")

    @staticmethod
    def _unescape(text: str) -> str:
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)

    def _text_argument(self) -> str:
        self._skip(" \t")
        if self._peek() == "\\":
            self._position += 1
            self._skip(" \t")
            if self._peek() == "\n":
                self._position += 1
        parts: list[str] = []
        while self._position < len(self._text):
            char = self._text[self._position]
            self._position += 1
            if char == "\n":
                break
            if char == "\\":
                char = self._peek()
                self._position += 1
                char = {"t": "\t", "n": "\n"}.get(char, char)
            parts.append(char)
        return "".join(parts) + "\n"

    def _substitution(self) -> SedSubstitution:
        mark = self._peek()
        if mark in ("\\", "\n", ""):
            raise SedError("bad format in substitution expression")
        expression = self._parse_delimited(mark)
        self._position -= 1
        replacement = self._parse_delimited(mark, in_expression=False)
        is_global = prints = ignores_case = False
        number, file = 1, ""
        while (flag := self._peek()) and flag not in ";\n} \t#":
            if flag.isdigit():
                number = self._number()
                continue
            self._position += 1
            if flag == "w":
                self._skip(" \t")
                file = self._until("\n").strip()
            elif flag in "gpiIm":
                is_global = is_global or flag == "g"
                prints = prints or flag == "p"
                ignores_case = ignores_case or flag in "iI"
            else:
                raise SedError("unknown option to s")
        converted = self._convert(expression) if expression else ""
        return SedSubstitution(
            expression=f"(?i:{converted})" if ignores_case and converted else converted,
            replacement=tuple(_replacement(replacement)),
            is_global=is_global,
            number=number,
            prints=prints,
            file=file,
        )


def _replacement(text: str) -> list[str | int]:
    parts: list[str | int] = []
    literal: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        group: int | None = None
        if char == "&":
            group = 0
        elif char == "\\" and position < len(text):
            following = text[position]
            position += 1
            if following.isdigit():
                group = int(following)
            elif following in "LUEl":
                raise SedError(f"\\{following} in a replacement is not simulated")
            else:
                char = {"n": "\n", "t": "\t", "r": "\r"}.get(following, following)
        if group is None:
            literal.append(char)
            continue
        parts += ["".join(literal), group]
        literal.clear()
    return [*parts, "".join(literal)]
