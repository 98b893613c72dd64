"""Parsing of escape sequences and character classes."""

from typing import Final

from . import unicode
from .engine import named_class_cost
from .errors import Problem, RegexpError

_LAST_RUNE: Final = 0x10FFFF
_RANGE_COST: Final = 12
"""The number of instructions for a range of characters beyond ASCII, which is matched byte by byte."""
_PERL: Final = frozenset("dDsSwW")
_POSIX: Final = unicode.words(
    "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit"
)
_CONTROL: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_OCTAL, _HEXADECIMAL = frozenset("01234567"), frozenset("0123456789abcdefABCDEF")
_CASED: Final = r"\p{Lu}\p{Ll}\p{Lt}"


class Escapes:
    """The escape sequences and classes of one pattern. Positions are indexes into its text; an end is exclusive."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._replacements: list[tuple[int, int, str]] = []
        self._last_posix_end = text.rfind(":]")

    def engine_pattern(self) -> str:
        """Return the pattern with the class names of the matching engine."""
        parts, position = [], 0
        for start, end, replacement in self._replacements:
            parts += [self._text[position:start], replacement]
            position = end
        return "".join([*parts, self._text[position:]])

    def replace(self, start: int, end: int, replacement: str) -> None:
        """Give a part of the pattern, which is behind those that are replaced already, another form for the matching engine."""
        self._replacements.append((start, end, replacement))

    def named_class(self, start: int, *, in_brackets: bool = False) -> tuple[int, int]:
        r"""Return the end and the cost of a named class, such as `\d` or `\pL`; the start and 0 if there is none."""
        kind = self._text[start + 1 : start + 2]
        if self._text[start : start + 1] != "\\" or not kind:
            return start, 0
        if kind in _PERL:
            return start + 2, _RANGE_COST if kind.isupper() else 3
        return self._unicode_class(start, in_brackets=in_brackets) if kind in "pP" else (start, 0)

    # --- Unicode classes

    def _unicode_class(self, start: int, *, in_brackets: bool) -> tuple[int, int]:
        text = self._text
        if start + 2 >= len(text):
            raise RegexpError(Problem.CLASS_RANGE, text[start:])
        end = start + 3
        class_text = text[start + 2]
        if class_text == "{":
            end = text.find("}", start) + 1
            if not end:
                raise RegexpError(Problem.CLASS_RANGE, text[start:])
            class_text = text[start + 3 : end - 1]
        negated = (text[start + 1] == "P") is not class_text.startswith("^")
        name = unicode.class_name(class_text.removeprefix("^"))
        engine_class = None if name is None else _engine_class(name, negated=negated, in_brackets=in_brackets)
        if name is None or engine_class is None:
            raise RegexpError(Problem.CLASS_RANGE, text[start:end])
        self.replace(start, end, engine_class)
        return end, named_class_cost(engine_class if in_brackets is False else f"[{engine_class}]")

    # --- one character

    def character(self, start: int) -> tuple[int, int]:
        """Return the code point of an escape sequence, and its end."""
        text = self._text
        if start + 1 == len(text):
            raise RegexpError(Problem.TRAILING_BACKSLASH, "")
        kind, end = text[start + 1], start + 2
        if kind in _OCTAL and (kind == "0" or text[end : end + 1] in _OCTAL):
            while end < start + 4 and text[end : end + 1] in _OCTAL:
                end += 1
            return int(text[start + 1 : end], 8), end
        if kind == "x":
            return self._hexadecimal(start)
        if kind in _CONTROL:
            return _CONTROL[kind], end
        if kind.isascii() and not kind.isalnum():
            return ord(kind), end
        raise RegexpError(Problem.ESCAPE, text[start:end])

    def _hexadecimal(self, start: int) -> tuple[int, int]:
        text, position = self._text, start + 2
        if text[position : position + 1] != "{":
            digits = text[position : position + 2]
            if len(digits) < 2 or not _HEXADECIMAL.issuperset(digits):
                raise RegexpError(Problem.ESCAPE, text[start : position + 2])
            return int(digits, 16), position + 2
        point, position = 0, position + 1
        while text[position : position + 1] in _HEXADECIMAL and point <= _LAST_RUNE:
            point = point * 16 + int(text[position], 16)
            position += 1
        if point > _LAST_RUNE:
            raise RegexpError(Problem.ESCAPE, text[start:position])
        if text[position : position + 1] != "}" or position == start + 3:
            raise RegexpError(Problem.ESCAPE, text[start : position + 1])
        return point, position + 1

    # --- classes in brackets

    def bracket_class(self, start: int) -> tuple[int, int]:
        """Return the end and the cost of a class such as `[a-z]`."""
        text, position = self._text, start + 1
        negated = text.startswith("^", position)
        position += negated
        first, cost = position, _RANGE_COST if negated else 1
        while position == first or not text.startswith("]", position):
            position, added = self._member(position, start)
            cost += added
        return position + 1, cost

    def _member(self, position: int, start: int) -> tuple[int, int]:
        end = self._posix_class_end(position)
        if end > position:
            return end, 3
        end, cost = self.named_class(position, in_brackets=True)
        return (end, cost) if end > position else self._range(position, start)

    def _posix_class_end(self, position: int) -> int:
        """Return the end of a class such as `[:alpha:]`, or the start if there is none."""
        text = self._text
        if not text.startswith("[:", position) or self._last_posix_end < position + 2:
            return position
        end = text.index(":]", position + 2) + 2
        if text[position + 2 : end - 2].removeprefix("^") not in _POSIX:
            raise RegexpError(Problem.CLASS_RANGE, text[position:end])
        return end

    def _range(self, position: int, start: int) -> tuple[int, int]:
        text = self._text
        low, end = self._class_character(position, start)
        high = low
        if text.startswith("-", end) and end + 1 < len(text) and text[end + 1] != "]":
            high, end = self._class_character(end + 1, start)
            if high < low:
                raise RegexpError(Problem.CLASS_RANGE, text[position:end])
        return end, 2 if high < 0x80 else _RANGE_COST

    def _class_character(self, position: int, start: int) -> tuple[int, int]:
        text = self._text
        if position >= len(text):
            raise RegexpError(Problem.MISSING_BRACKET, text[start:])
        return self.character(position) if text[position] == "\\" else (ord(text[position]), position + 1)


def _engine_class(name: str, *, negated: bool, in_brackets: bool) -> str | None:
    """Return a class in the syntax of the matching engine; None if it has no such class."""
    if name in (unicode.ASSIGNED, unicode.UNASSIGNED):
        return None
    inside = {unicode.ASCII: r"\x00-\x7F", unicode.CASED: _CASED}.get(name)
    if inside is None:
        return f"\\{'P' if negated else 'p'}{{{name}}}"
    if not in_brackets:
        return f"[{'^' if negated else ''}{inside}]"
    if not negated:
        return inside
    return r"\x{80}-\x{10FFFF}" if name == unicode.ASCII else None
