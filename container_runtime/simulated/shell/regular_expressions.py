"""POSIX regular expressions, basic and extended, as expressions of the matching engine."""

import re
from typing import Final

from .patterns import CLASSES

_PLAIN: Final = re.compile(r"[A-Za-z0-9 _/:=,@%&~#!\"'<>;`-]+")
_INTERVAL: Final = re.compile(r"[0-9]{1,4}(?:,[0-9]{0,4})?")
_WORD_ESCAPES: Final = {
    "w": "[0-9A-Za-z_]", "W": "[^0-9A-Za-z_]", "s": "[\\s]", "S": "[^\\s]", "b": "\\b", "B": "\\B",
    "<": "\\b", ">": "\\b", "n": "\\n", "t": "\\t",
}  # fmt: skip


class BadRegularExpression(ValueError):
    """An expression is invalid, or uses a feature that is not simulated."""


def basic_expression(text: str) -> str:
    r"""Return a basic expression, in which `\(`, `\{`, `\|`, `\+` and `\?` are special, for the matching engine."""
    return _Converter(text, is_extended=False).convert()


def extended_expression(text: str) -> str:
    return _Converter(text, is_extended=True).convert()


class _Converter:
    def __init__(self, text: str, *, is_extended: bool) -> None:
        self._text = text
        self._position = 0
        self._is_extended = is_extended
        self._output: list[str] = []
        self._groups = 0
        self._is_start = True
        """Whether the position is that of a beginning, where `*` is a character."""

    def convert(self) -> str:
        text = self._text
        while self._position < len(text):
            char = text[self._position]
            plain = _PLAIN.match(text, self._position)
            if plain:
                # A repetition applies to the last character only.
                self._append(plain[0])
                self._position = plain.end()
            elif char == "[":
                self._append(self._bracket())
            elif char == "\\":
                self._escape()
            else:
                self._position += 1
                self._special(char)
        if self._groups:
            raise BadRegularExpression("Unmatched ( or \\(")
        return "".join(self._output)

    def _append(self, expression: str) -> None:
        self._output.append(expression)
        self._is_start = False

    def _special(self, char: str) -> None:
        text = self._text
        if char == ".":
            self._append("(?s:.)")
        elif char == "*":
            self._append("\\*" if self._is_start else "*")
        elif char == "^":
            is_anchor = self._is_extended or self._is_start
            self._output.append("^" if is_anchor else "\\^")
            self._is_start = is_anchor
        elif char == "$":
            rest = text[self._position :]
            is_anchor = self._is_extended or not rest or rest.startswith(("\\)", "\\|"))
            self._append("$" if is_anchor else "\\$")
        elif self._is_extended and char in "+?{|()":
            self._operator(char)
        else:
            self._append(re.escape(char))

    def _operator(self, char: str) -> None:
        """Append a repetition, an alternation or a parenthesis."""
        if char == "(":
            self._groups += 1
            self._output.append("(")
            self._is_start = True
        elif char == ")" and self._groups:
            self._groups -= 1
            self._append(")")
        elif char == "|":
            self._output.append("|")
            self._is_start = True
        elif char == "{":
            self._interval()
        elif char in "+?" and not self._is_start:
            self._append(char)
        elif char == ")" and not self._is_extended:
            raise BadRegularExpression("Unmatched ) or \\)")
        else:
            self._append(re.escape(char))

    def _interval(self) -> None:
        match = _INTERVAL.match(self._text, self._position)
        end = "}" if self._is_extended else "\\}"
        if match is None or not self._text.startswith(end, match.end()):
            if not self._is_extended:
                raise BadRegularExpression("Invalid preceding regular expression")
            self._append("\\{")
            return
        self._append(f"{{{match[0]}}}")
        self._position = match.end() + len(end)

    def _escape(self) -> None:
        following = self._text[self._position + 1 : self._position + 2]
        if not following:
            raise BadRegularExpression("Trailing backslash")
        self._position += 2
        if following.isdigit() and following != "0":
            raise BadRegularExpression("backreferences are not simulated")
        if not self._is_extended and following in "(){|+?":
            self._operator(following)
        elif following in _WORD_ESCAPES:
            self._append(_WORD_ESCAPES[following])
        else:
            self._append(re.escape(following))

    def _bracket(self) -> str:
        text = self._text
        position = self._position + 1
        negated = text.startswith("^", position)
        position += negated
        first = position
        members: list[str] = []
        while position < len(text):
            char = text[position]
            if char == "]" and position > first:
                self._position = position + 1
                return f"[{'^' if negated else ''}{''.join(members)}]"
            end = text.find(":]", position + 2) if text.startswith("[:", position) else -1
            if end >= 0:
                ranges = CLASSES.get(text[position + 2 : end])
                if ranges is None:
                    raise BadRegularExpression("Invalid character class name")
                members += [_range(start, stop) for start, stop in ranges]
                position = end + 2
                continue
            if text.startswith(("[.", "[="), position):
                raise BadRegularExpression("collating symbols are not simulated")
            if text[position + 1 : position + 2] == "-" and text[position + 2 : position + 3] not in (
                "]",
                "",
            ):
                if char > text[position + 2]:
                    raise BadRegularExpression("Invalid range end")
                members.append(_range(char, text[position + 2]))
                position += 3
                continue
            members.append(_range(char, char))
            position += 1
        raise BadRegularExpression("Unmatched [, [^, [:, [., or [=")


def _range(start: str, end: str) -> str:
    return f"\\x{{{ord(start):x}}}-\\x{{{ord(end):x}}}"


def literal_expression(text: str) -> str:
    """Return an expression that matches only a text."""
    return re.escape(text)
