"""Patterns with the wildcards of file names: `*`, `?`, `[a-z]` and `[!a-z]`, with the results of Python's fnmatch.

Nothing backtracks. The parts between stars have fixed lengths, so the first occurrence of each part behind the one
before it decides. A part without wildcards is found by `str.find`, in linear time. For any other part, the positions of
each of its characters in the text are bits of an integer, and shifts combine them to the positions of the part.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from .memoize import memoize

MAX_WILDCARDS: Final = 5_000
"""The maximum number of wildcards of a pattern, and of ranges in its classes."""
MAX_STEPS: Final = 1_000_000_000
"""The maximum product of the characters of a text and of the parts with wildcards that have to be searched: 0.1 s."""
MAX_LOOKUPS: Final = 32_000_000
"""The maximum product of the characters of an ASCII text and of different characters and classes in such parts: 0.1 s."""
_UNICODE_COST: Final = 8
"""The cost of a character of any other text, relative to one of an ASCII text."""
_DISTINCT_COST: Final = 32
"""The cost of each different character of such a text."""

_WILDCARD: Final = re.compile(r"[*?\[]")
_RANGE: Final = re.compile(r"(.)-(.)", re.DOTALL)


class WildcardsTooCostly(ValueError):
    """A pattern has too many wildcards for the text."""


class _Class(Struct, frozen=True):
    """A class such as `[!a-z_]`."""

    negated: bool
    members: frozenset[str]
    starts: tuple[str, ...]
    """The first characters of the ranges, which do not overlap, in order."""
    ends: tuple[str, ...]

    def has(self, char: str) -> bool:
        index = bisect_right(self.starts, char) - 1
        return (char in self.members or (index >= 0 and char <= self.ends[index])) is not self.negated


_Item = str | int | _Class
"""Literal characters, a number of any characters, or one character of a class."""


class _Part(Struct, frozen=True):
    """A part between two stars."""

    items: tuple[_Item, ...]
    size: int

    def mirror(self) -> "_Part":
        return _Part(
            tuple(item[::-1] if isinstance(item, str) else item for item in self.items[::-1]), self.size
        )

    @property
    def is_plain(self) -> bool:
        """Whether it can be found without bit sets."""
        return not self.items or (len(self.items) == 1 and not isinstance(self.items[0], _Class))


class _Text:
    """A text, and the positions of characters in it: the highest bit is the first character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_ascii = text.isascii()
        self._positions: dict[str | _Class, int] = {}
        self._distinct: frozenset[str] | None = None

    def check_cost(self, parts: Sequence[_Part]) -> None:
        costly = [part for part in parts if not part.is_plain]
        if not costly:
            return
        classes = {item for part in costly for item in part.items if isinstance(item, _Class)}
        literals = {char for part in costly for item in part.items if isinstance(item, str) for char in item}
        steps = len(self.text) * sum(part.size for part in costly)
        lookups = self._lookup_cost() * (len(classes) + len(literals))
        if steps > MAX_STEPS or lookups > MAX_LOOKUPS:
            raise WildcardsTooCostly("the pattern has too many wildcards for a text of this length")

    def _lookup_cost(self) -> int:
        size = len(self.text)
        return size if self._is_ascii else _UNICODE_COST * size + _DISTINCT_COST * len(self._chars())

    def _chars(self) -> frozenset[str]:
        if self._distinct is None:
            self._distinct = frozenset(self.text)
        return self._distinct

    def has_at(self, part: _Part, position: int) -> bool:
        text = self.text
        if position + part.size > len(text):
            return False
        for item in part.items:
            if isinstance(item, str):
                if not text.startswith(item, position):
                    return False
                position += len(item)
            elif isinstance(item, int):
                position += item
            elif not item.has(text[position]):
                return False
            else:
                position += 1
        return True

    def find(self, part: _Part, start: int, *, last: bool = False) -> int:
        """Return the first or the last position of a part from `start` on; -1 if there is none."""
        text, size = self.text, len(self.text)
        if start + part.size > size:
            return -1
        if not part.is_plain:
            places = self._places(part) & ((1 << (size - start)) - 1)
            return size - (places & -places if last else places).bit_length() if places else -1
        item = part.items[0] if part.items else 0
        if not isinstance(item, str):
            return size - part.size if last else start
        if not last:
            return text.find(item, start)
        # Unlike `find`, `rfind` is not linear.
        distance = text[start:][::-1].find(item[::-1])
        return -1 if distance < 0 else size - distance - len(item)

    def _places(self, part: _Part) -> int:
        # The text does not end within the part.
        places, offset = -1 << (part.size - 1), 0
        for item in part.items:
            if isinstance(item, int):
                offset += item
                continue
            for char in item if isinstance(item, str) else (item,):
                places &= self._positions_of(char) << offset
                offset += 1
                if not places:
                    return 0
        return places

    def _positions_of(self, char: str | _Class) -> int:
        positions = self._positions.get(char)
        if positions is None:
            chars = self._chars()
            members = {char} if isinstance(char, str) else {each for each in chars if char.has(each)}
            if self._is_ascii:
                table = bytes(49 if chr(code) in members else 48 for code in range(256))
                positions = int(self.text.encode().translate(table), 2)
            else:
                digits = {ord(each): "1" if each in members else "0" for each in chars}
                positions = int(self.text.translate(digits), 2)
            self._positions[char] = positions
        return positions


class Wildcards(Struct, frozen=True):
    """A parsed pattern."""

    parts: tuple[_Part, ...]
    """The parts between stars: a pattern without a star is one part."""

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches all of a text; raise `WildcardsTooCostly` if that would take too long."""
        first, *middle = self.parts
        searched = _Text(text)
        if not middle:
            return first.size == len(text) and searched.has_at(first, 0)
        last = middle.pop()
        searched.check_cost(middle)
        end = _end_of(searched, first, middle)
        start = len(text) - last.size
        return end is not None and start >= end and searched.has_at(last, start)

    def prefix_end(self, text: str, *, is_greedy: bool) -> int | None:
        """Return the end of the shortest matching beginning of a text, or of the longest if greedy. Errors are those of `matches`."""
        first, *others = self.parts
        searched = _Text(text)
        if not others:
            return first.size if searched.has_at(first, 0) else None
        searched.check_cost(others)
        *middle, last = others
        end = _end_of(searched, first, middle)
        start = -1 if end is None else searched.find(last, end, last=is_greedy)
        return None if start < 0 else start + last.size

    def suffix_start(self, text: str, *, is_greedy: bool) -> int | None:
        """Return the start of the shortest matching end of a text, or of the longest if greedy. Errors are those of `matches`."""
        mirrored = Wildcards(tuple(part.mirror() for part in self.parts[::-1]))
        end = mirrored.prefix_end(text[::-1], is_greedy=is_greedy)
        return None if end is None else len(text) - end


def _end_of(text: _Text, first: _Part, middle: Sequence[_Part]) -> int | None:
    """Return the least end of parts with stars between them, the first of which is at the beginning."""
    if not text.has_at(first, 0):
        return None
    end = first.size
    for part in middle:
        start = text.find(part, end)
        if start < 0:
            return None
        end = start + part.size
    return end


def escape_wildcards(text: str) -> str:
    """Return a pattern that matches only this text."""
    return _WILDCARD.sub(r"[\g<0>]", text)


def matches_wildcards(text: str, pattern: str) -> bool:
    """Return whether a pattern matches all of a text. Errors are those of `parse_wildcards` and `Wildcards.matches`."""
    return parse_wildcards(pattern).matches(text)


@memoize(1024, max_length=300)
def parse_wildcards(pattern: str) -> Wildcards:
    """Parse a pattern. Every text is one: a bracket that is not closed is a character. Raise `WildcardsTooCostly`."""
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._last_bracket = pattern.rfind("]")
        self._parts: list[_Part] = []
        self._items: list[_Item] = []
        self._literals: list[str] = []
        self._wildcards = 0

    def parse(self) -> Wildcards:
        pattern, position = self._pattern, 0
        while match := _WILDCARD.search(pattern, position):
            start = match.start()
            self._literals.append(pattern[position:start])
            self._count(1)
            position = start + 1
            if match[0] == "[":
                position = self._add_class(position)
                continue
            self._end_literals()
            if match[0] == "*":
                self._end_part()
            elif self._items and isinstance(self._items[-1], int):
                self._items[-1] += 1
            else:
                self._items.append(1)
        self._literals.append(pattern[position:])
        self._end_part()
        first, *others = self._parts
        # Successive stars are one.
        return Wildcards((first, *(part for part in others[:-1] if part.size), *others[-1:]))

    def _count(self, number: int) -> None:
        self._wildcards += number
        if self._wildcards > MAX_WILDCARDS:
            raise WildcardsTooCostly(f"the pattern has more than {MAX_WILDCARDS} wildcards")

    def _end_literals(self) -> None:
        text = "".join(self._literals)
        self._literals.clear()
        if text:
            self._items.append(text)

    def _end_part(self) -> None:
        self._end_literals()
        sizes = (
            item if isinstance(item, int) else len(item) if isinstance(item, str) else 1
            for item in self._items
        )
        self._parts.append(_Part(tuple(self._items), sum(sizes)))
        self._items.clear()

    def _add_class(self, start: int) -> int:
        """Add the class behind a bracket, or the bracket if it is not closed; return the end."""
        pattern = self._pattern
        negated = pattern.startswith("!", start)
        body = start + negated
        # A bracket at the beginning is a member.
        minimum = body + pattern.startswith("]", body)
        if self._last_bracket < minimum:
            self._literals.append("[")
            return start
        end = pattern.index("]", minimum)
        members = pattern[body:end]
        if len(members) == 1 and not negated:
            self._literals.append(members)
        else:
            self._count(members.count("-"))
            self._end_literals()
            self._items.append(_class(members, negated=negated))
        return end + 1


def _class(text: str, *, negated: bool) -> _Class:
    starts: list[str] = []
    ends: list[str] = []
    for start, end in sorted(_RANGE.findall(text)):
        if start > end:
            continue
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return _Class(negated, frozenset(_RANGE.sub("", text)), tuple(starts), tuple(ends))
