"""Whether a text contains a match of a pattern, in time linear in the text."""

from collections import OrderedDict
from threading import Lock
from typing import Final

from mockube.apimachinery.cancellation import raise_if_cancelled
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.engine import Program, compile_program
from mockube.apimachinery.regexp.errors import Problem, RegexpError
from mockube.apimachinery.regexp.parser import parse

MAX_COST: Final = 350_000
"""Instructions of a program: 0.2 s to compile. Go has no such bound: there, a class of many characters is one instruction."""

MAX_STEPS: Final = 10_000_000_000
"""Instructions times characters of a search: 20 s at worst. Go takes longer, beyond the time of any request."""
FREE_TEXT: Final = MAX_STEPS // MAX_COST
"""Characters that may be searched with every program."""

_MIN_MEMORY: Final = 256 << 10
_BYTES_PER_INSTRUCTION: Final = 64
_CACHED_BYTES: Final = 256 << 20


@memoize(1024, max_length=300)
def check(pattern: str) -> int:
    """The estimated size of the program; `RegexpError` if there is none for this pattern."""
    cost = parse(pattern).cost
    if cost > MAX_COST:
        raise RegexpError(Problem.TOO_LARGE, pattern)
    return cost


def contains_match(pattern: str, text: str) -> bool:
    """`RegexpError` if the pattern is none, or it would take too long to look for a match.

    `Cancelled` if the caller no longer waits for the answer: the search in one text is not interrupted.
    """
    return _program(pattern, text).search(text.encode(errors="replace")) is not None


def find_all(pattern: str, text: str, maximum: int = -1) -> list[str]:
    """All matches, one after the other, or so many of them; errors as of `contains_match`.

    An empty match next to the one before it is none, as in Go.
    """
    program = _program(pattern, text)
    data = text.encode(errors="replace")
    matches: list[str] = []
    position, end = 0, -1
    while len(matches) != maximum and position <= len(data):
        match = program.search(data, position)
        if match is None:
            break
        start, stop = match.span()
        if stop > start or start != end:
            matches.append(data[start:stop].decode(errors="replace"))
        end = stop
        position = stop if stop > start else _after_character(data, stop)
    return matches


def _after_character(data: bytes, position: int) -> int:
    position += 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def _program(pattern: str, text: str) -> Program:
    raise_if_cancelled()
    program = _PROGRAMS.get(pattern)
    if len(text) > FREE_TEXT and len(text) * check(pattern) > MAX_STEPS:
        raise RegexpError(Problem.TOO_LARGE, pattern)
    return program


def compile_pattern(pattern: str) -> None:
    """Have the program of a pattern ready; `RegexpError` if the pattern is none."""
    raise_if_cancelled()
    _PROGRAMS.get(pattern)


class _Programs:
    """The programs that were used last, as many as the memory that they may use allows.

    Large objects are checked in a thread, so two threads may call this at once. A program is compiled without the lock:
    that takes up to 0.2 s.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._programs: OrderedDict[str, tuple[Program, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, pattern: str) -> Program:
        with self._lock:
            entry = self._programs.get(pattern)
            if entry is not None:
                self._programs.move_to_end(pattern)
                return entry[0]
        program, cost = self._compile(pattern)
        with self._lock:
            self._keep(pattern, program, cost)
        return program

    def _keep(self, pattern: str, program: Program, cost: int) -> None:
        if pattern in self._programs:
            return
        self._programs[pattern] = program, cost
        self._used += _memory(cost)
        while self._used > self._limit and len(self._programs) > 1:
            _, (_, evicted) = self._programs.popitem(last=False)
            self._used -= _memory(evicted)

    def _compile(self, pattern: str) -> tuple[Program, int]:
        parsed = parse(pattern)
        try:
            program = compile_program(parsed.pattern, _memory(parsed.cost))
        except ValueError:
            raise RegexpError(Problem.TOO_LARGE, pattern) from None
        return program, parsed.cost


def _memory(cost: int) -> int:
    """Bytes that a program may use, twice what its instructions take; what is left is for the states it is in."""
    return _MIN_MEMORY + _BYTES_PER_INSTRUCTION * cost


_PROGRAMS: Final = _Programs(_CACHED_BYTES)
