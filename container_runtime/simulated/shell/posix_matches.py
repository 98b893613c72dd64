"""Matches of POSIX programs: the longest of the leftmost matches, with the positions of its groups, in linear time."""

import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.engine import CapturingProgram, compile_capturing
from mockube.apimachinery.regexp.errors import Problem, RegexpError
from mockube.apimachinery.regexp.matcher import check
from mockube.apimachinery.regexp.parser import parse

from . import limits
from .process import Steps, count_work

STEPS_PER_COMMAND: Final = 40_000
"""The product of the instructions of a pattern and the characters of a text that are searched in the time of a command of the shell."""
SCANNED_PER_COMMAND: Final = 6_000_000
"""The square of the length of a text whose matches are searched in the time of a command of the shell."""
_MATCH_STEPS: Final = 3_000
"""The steps in whose time the positions of a match are found."""
_UNBOUNDED: Final = re.compile(r"[*+]|\{[0-9]+,\}")
_MEMORY: Final = 16 << 20

Spans = Sequence[tuple[int, int]]
"""The positions of a match and of its groups in characters; -1 for a group that did not take part."""


@memoize(256, max_length=300)
def _program(pattern: str) -> CapturingProgram:
    try:
        return compile_capturing(parse(pattern).pattern, _MEMORY)
    except ValueError:
        raise RegexpError(Problem.TOO_LARGE, pattern) from None


class SearchSteps:
    """The steps of all searches of a program, which count as commands of the shell, and of which those that are left over stay."""

    def __init__(self) -> None:
        self.total = 0
        self._counted = 0

    def add(self, steps: int) -> None:
        self.total += steps

    def count(self) -> Steps:
        """Count what was added since the last time as so many commands as it takes time."""
        commands = (self.total - self._counted) // STEPS_PER_COMMAND
        self._counted += commands * STEPS_PER_COMMAND
        yield from count_work(commands, 1)


def count_search(pattern: str, text: str) -> Steps:
    """Count the search for a match as so many commands as it takes time."""
    yield from count_work(len(text) * check(pattern), STEPS_PER_COMMAND)


def find_matches(
    pattern: str,
    text: str,
    maximum: int = -1,
    start: int = 0,
    count_steps: Callable[[int], None] = lambda _: None,
) -> Iterator[Spans]:
    """Yield the matches without overlap from a position on; raise `RegexpError` if the search would take too long.

    `count_steps` is called with the steps of each part of the search.
    """
    steps = len(text) * check(pattern)
    if steps > limits.MAX_MATCH_STEPS:
        raise RegexpError(Problem.TOO_LARGE, pattern)
    count_steps(steps)
    program = _program(pattern)
    positions = _Positions(text)
    position = positions.byte_of(start)
    last_end = -1
    scan_limit = limits.MAX_SCANNED if _UNBOUNDED.search(pattern) else sys.maxsize
    for count in itertools.count():
        if not maximum or position > len(positions.data):
            return
        count_steps(_MATCH_STEPS)
        scan_limit -= len(positions.data) - position
        if count and scan_limit < limits.MAX_SCANNED:
            count_steps(len(positions.data) - position)
        if count > limits.MAX_MATCHES or scan_limit < 0:
            raise RegexpError(Problem.TOO_LARGE, pattern)
        match = program.search(positions.data, position)
        if match is None:
            return
        begin, end = match.span()
        if end > begin or begin != last_end:
            maximum -= 1
            yield [
                (-1, -1) if (span := match.span(group))[0] < 0 else positions.characters(span)
                for group in range(program.groups + 1)
            ]
        last_end = end
        position = end if end > begin else positions.following(end)


class _Positions:
    """A text in UTF-8, and the conversion of positions in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_ascii = text.isascii()
        self.data = text.encode(errors="replace")
        self._byte = 0
        self._character = 0

    def byte_of(self, character: int) -> int:
        return character if self._is_ascii else len(self._text[:character].encode(errors="replace"))

    def characters(self, span: tuple[int, int]) -> tuple[int, int]:
        if self._is_ascii:
            return span
        start = self._character_of(span[0])
        return start, start + len(self.data[span[0] : span[1]].decode(errors="replace"))

    def _character_of(self, byte: int) -> int:
        """Count from the last position, which is seldom behind this one."""
        if byte < self._byte:
            self._byte = self._character = 0
        self._character += len(self.data[self._byte : byte].decode(errors="replace"))
        self._byte = byte
        return self._character

    def following(self, byte: int) -> int:
        byte += 1
        while byte < len(self.data) and self.data[byte] & 0xC0 == 0x80:
            byte += 1
        return byte
