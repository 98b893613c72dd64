"""Patterns of the shell: `*`, `?` and classes, in which quoted characters stand for themselves."""

import re
from collections.abc import Generator, Iterable, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.wildcards import (
    MAX_WILDCARDS,
    WildcardsTooCostly,
    escape_wildcards,
    parse_wildcards,
)

from . import limits
from .posix_matches import count_search, find_matches
from .process import CommandStart, Effect, Steps, count_work
from .state import ExpansionError, ExpansionTooLong

_CHARACTERS_PER_COMMAND: Final = 16 * 1024
"""The length of a text whose search takes as long as a command at most."""
_STEPS_PER_COMMAND: Final = 200_000
"""The product of the lengths of a text and of a pattern with wildcards whose match takes as long as a command at most."""
_MATCHES_PER_COMMAND: Final = 20
_REPLACEMENT: Final = re.compile(r"(\\[\\&])|(&)|([^\\&]+|\\)")
"""Matches the parts of a replacement in bash: an escaped character, a reference to the match, and other text."""
_SEARCHES_PER_COMMAND: Final = 50
_SPECIAL: Final = re.compile(r"[*?\[\\]")
CLASSES: Final = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "blank": ((" ", " "), ("\t", "\t")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
    "word": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
}
"""The ranges of the named classes of characters."""
_NAMED_CLASS: Final = re.compile(rf"\[:({'|'.join(CLASSES)}):\]")


class CharacterClass(Struct, frozen=True):
    """A class such as `[!a-z]`."""

    negated: bool
    ranges: tuple[tuple[str, str], ...]

    def wildcards(self) -> str:
        ranges = [pair for pair in self.ranges if pair[0] <= pair[1]]
        special = [end for pair in ranges if pair[0] == pair[1] and (end := pair[0]) in "]-"]
        others = [f"{start}-{end}" for start, end in ranges if not (start == end and start in "]-")]
        bracket = "]" if "]" in special else ""
        members = bracket + "".join(others) + ("-" if "-" in special else "")
        if not members:
            return "[!\0-\U0010ffff]" if not self.negated else "?"
        return f"[{'!' if self.negated else ''}{members}]"

    def regular_expression(self) -> str:
        members = "".join(
            f"\\x{{{ord(start):x}}}-\\x{{{ord(end):x}}}" for start, end in self.ranges if start <= end
        )
        if not members:
            return "(?s:.)" if self.negated else "[^\\x{0}-\\x{10ffff}]"
        return f"[{'^' if self.negated else ''}{members}]"


Item = str | CharacterClass
"""A literal text with a leading `=`, `*`, `?`, or a class."""


class Pattern(Struct, frozen=True):
    items: tuple[Item, ...]

    @property
    def has_wildcards(self) -> bool:
        return any(not isinstance(item, str) or item in ("*", "?") for item in self.items)

    @property
    def literal(self) -> str:
        """The text of a pattern without wildcards."""
        return "".join(item[1:] for item in self.items if isinstance(item, str))

    def wildcards(self) -> str:
        return "".join(
            item.wildcards()
            if isinstance(item, CharacterClass)
            else item
            if item in ("*", "?")
            else escape_wildcards(item[1:])
            for item in self.items
        )

    def regular_expression(self) -> str:
        expressions = {"*": "(?s:.*)", "?": "(?s:.)"}
        return "".join(
            item.regular_expression()
            if isinstance(item, CharacterClass)
            else expressions.get(item) or re.escape(item[1:])
            for item in self.items
        )

    def matches(self, text: str) -> bool:
        return bool(self.matching([text]))

    def matching(self, texts: Iterable[str]) -> list[str]:
        """Return those of the texts that match."""
        if not self.has_wildcards:
            literal = self.literal
            return [text for text in texts if text == literal]
        try:
            wildcards = parse_wildcards(self.wildcards())
            return [text for text in texts if wildcards.matches(text)]
        except WildcardsTooCostly as error:
            raise ExpansionError(str(error)) from error


Pieces = Sequence[tuple[str, bool]]
"""Texts, and whether each is quoted."""


def parse_pattern(pieces: Pieces) -> Generator[Effect, bytes | None, Pattern]:
    """Return a pattern; raise `ExpansionError` if it is too long."""
    scanner = _Scanner(pieces)
    yield from scanner.scan()
    return Pattern(tuple(scanner.items))


def pattern_of(text: str) -> Pattern:
    """Return the pattern that an argument of a program is, which is short."""
    scanner = _Scanner([(text, False)])
    for _ in scanner.scan():
        pass
    return Pattern(tuple(scanner.items))


class _Scanner:
    def __init__(self, pieces: Pieces) -> None:
        self._text = "".join(text for text, _ in pieces)
        self._unquoted = "".join("a" * len(text) if quoted else text for text, quoted in pieces)
        """The text without the quoted characters that would be special."""
        self._last_bracket = self._unquoted.rfind("]")
        self._position = 0
        self._wildcards = 0
        self.items: list[Item] = []

    def scan(self) -> Steps:
        literal: list[str] = []
        searches = 0
        while self._position < len(self._text):
            searches += 1
            if not searches % _SEARCHES_PER_COMMAND:
                yield CommandStart()
            start, end = self._position, self._position + _CHARACTERS_PER_COMMAND
            match = _SPECIAL.search(self._unquoted, start, end)
            if match is None:
                literal.append(self._text[start:end])
                self._position = end
                continue
            literal.append(self._text[start : match.start()])
            self._position = match.end()
            if match[0] == "\\":
                literal.append(self._text[self._position : self._position + 1] or "\\")
                self._position += 1
                continue
            item: Item | None = self._class(self._position) if match[0] == "[" else match[0]
            if item is None:
                literal.append("[")
                continue
            self._end_literal(literal)
            self.items.append(item)
            self._count()
        self._end_literal(literal)
        if self._wildcards and len(self._text) > limits.MAX_PATTERN:
            raise ExpansionError("the pattern is too long")

    def _end_literal(self, literal: list[str]) -> None:
        if text := "".join(literal):
            self.items.append(f"={text}")
            literal.clear()

    def _count(self) -> None:
        self._wildcards += 1
        if self._wildcards > MAX_WILDCARDS:
            raise ExpansionError(f"the pattern has more than {MAX_WILDCARDS} wildcards")

    def _class(self, position: int) -> CharacterClass | None:
        """Parse a class from behind its bracket; return None if it is not closed."""
        unquoted = self._unquoted
        negated = unquoted[position : position + 1] in ("!", "^")
        position += negated
        first = position
        ranges: list[tuple[str, str]] = []
        while position <= self._last_bracket:
            if unquoted[position] == "]" and position > first:
                self._position = position + 1
                return CharacterClass(negated, tuple(ranges))
            self._count()
            if named := _NAMED_CLASS.match(unquoted, position):
                ranges += CLASSES[named[1]]
                position = named.end()
                continue
            position, char = self._member(position)
            is_range = unquoted[position : position + 1] == "-" and position < self._last_bracket
            if is_range and unquoted[position + 1] != "]":
                position, following = self._member(position + 1)
                ranges.append((char, following))
                continue
            ranges.append((char, char))
        return None

    def _member(self, position: int) -> tuple[int, str]:
        if self._unquoted[position] == "\\" and position + 1 < len(self._text):
            position += 1
        return position + 1, self._text[position]


def strip(value: str, kind: str, pattern: Pattern) -> Generator[Effect, bytes | None, str]:
    """Remove a matching beginning (`#`) or end (`%`), the longest one if the kind has two characters."""
    if not pattern.has_wildcards:
        literal = pattern.literal
        return value.removeprefix(literal) if kind[0] == "#" else value.removesuffix(literal)
    expression = pattern.wildcards()
    yield from count_work(len(value) + len(expression), _CHARACTERS_PER_COMMAND)
    yield from count_work(len(value) * len(expression), _STEPS_PER_COMMAND)
    is_greedy = len(kind) > 1
    try:
        parsed = parse_wildcards(expression)
        if kind[0] == "#":
            return value[parsed.prefix_end(value, is_greedy=is_greedy) :]
        return value[: parsed.suffix_start(value, is_greedy=is_greedy)]
    except WildcardsTooCostly as error:
        raise ExpansionError(str(error)) from error


def matches(text: str, pattern: Pattern) -> Generator[Effect, bytes | None, bool]:
    size = sum(map(_size, pattern.items))
    yield from count_work(len(text) + size, _CHARACTERS_PER_COMMAND)
    yield from count_work(len(text) * size if pattern.has_wildcards else 0, _STEPS_PER_COMMAND)
    return pattern.matches(text)


def _size(item: Item) -> int:
    return len(item) if isinstance(item, str) else 1


def replacement_texts(pieces: Sequence[tuple[str, bool]]) -> Sequence[str]:
    """Return the texts of bash's replacement of a match: each `&` that is not quoted, and that no backslash precedes, is the match."""
    texts = [""]
    for text, is_quoted in pieces:
        if is_quoted or ("&" not in text and "\\" not in text):
            texts[-1] += text
            continue
        for escaped, ampersand, other in _REPLACEMENT.findall(text):
            texts[-1] += escaped[1:] or other
            texts += [""] * len(ampersand)
    return texts


def replace_matches(
    value: str, kind: str, pattern: Pattern, replacement: Sequence[str]
) -> Generator[Effect, bytes | None, str]:
    """Replace the first match (`/`), all matches (`//`), or a match at the beginning (`/#`) or the end (`/%`).

    The match itself comes between the texts of the replacement.
    """
    if not pattern.has_wildcards:
        yield from count_work(len(value), _CHARACTERS_PER_COMMAND)
        return _replace_literal(value, kind, pattern.literal, pattern.literal.join(replacement))
    expression = pattern.regular_expression()
    yield from count_work(len(value) + len(expression), _CHARACTERS_PER_COMMAND)
    anchored = {"/#": f"^(?:{expression})", "/%": f"(?:{expression})$"}.get(kind, expression)
    try:
        yield from count_search(anchored, value)
        spans: list[tuple[int, int]] = []
        for match in find_matches(anchored, value, -1 if kind == "//" else 1):
            if not len(spans) % _MATCHES_PER_COMMAND:
                yield CommandStart()
            spans.append(match[0])
    except RegexpError as error:
        raise ExpansionError(str(error)) from error
    parts, position = [], 0
    for start, end in spans:
        if start == end and kind in ("/", "//"):
            continue
        parts += [value[position:start], value[start:end].join(replacement)]
        position = end
    return "".join(parts) + value[position:]


def _replace_literal(value: str, kind: str, literal: str, replacement: str) -> str:
    if kind == "/#":
        return replacement + value[len(literal) :] if value.startswith(literal) else value
    if kind == "/%":
        return value.removesuffix(literal) + replacement if value.endswith(literal) else value
    if not literal:
        return value
    growth = value.count(literal) if kind == "//" else 1
    if len(value) + growth * (len(replacement) - len(literal)) > limits.MAX_VALUE:
        raise ExpansionTooLong("the value is too long")
    return value.replace(literal, replacement, -1 if kind == "//" else 1)
