"""Matching of patterns in time linear in the text, with limits and a cache of compiled programs."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

from mockube.apimachinery.cancellation import raise_if_cancelled
from mockube.apimachinery.memoize import memoize

from .engine import RegexpProgram, compile_program
from .errors import Problem, RegexpError
from .parser import parse

MAX_COST: Final = 350_000
"""The maximum number of instructions of a program: 0.2 s to compile. Go needs no limit: a class is one instruction there."""

MAX_STEPS: Final = 10_000_000_000
"""The maximum product of instructions and characters in a search: 20 s at worst. Go takes longer."""
MAX_UNCHECKED_TEXT: Final = MAX_STEPS // MAX_COST
"""The length up to which a text can be searched with any program."""

Program = TypeVar("Program")

_MIN_MEMORY: Final = 256 << 10
_BYTES_PER_INSTRUCTION: Final = 64
_CACHED_BYTES: Final = 256 << 20


@memoize(1024, max_length=300)
def check(pattern: str) -> int:
    """Return the estimated size of a pattern's program; raise `RegexpError` if the pattern is invalid or too large."""
    cost = parse(pattern).cost
    if cost > MAX_COST:
        raise RegexpError(Problem.TOO_LARGE, pattern)
    return cost


def contains_match(pattern: str, text: str) -> bool:
    """Return whether a text contains a match; raise `RegexpError` if the pattern is invalid or the search would take too long.

    Raise `Cancelled` if the work of this thread is cancelled. A search that has begun is not interrupted.
    """
    return _program(pattern, text).search(text.encode(errors="replace")) is not None


def contains_match_of(pattern: str) -> Callable[[str], bool]:
    """Return `contains_match` of a pattern, for many texts: the program is looked up once."""
    search = _program(pattern, "").search

    def contains(text: str) -> bool:
        if len(text) > MAX_UNCHECKED_TEXT:
            return contains_match(pattern, text)
        return search(text.encode(errors="replace")) is not None

    return contains


def find_all(pattern: str, text: str, maximum: int = -1) -> list[str]:
    """Return the matches, without overlap and at most `maximum` unless it is negative. Errors are those of `contains_match`.

    An empty match directly after another match is ignored, as in Go.
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


def _program(pattern: str, text: str) -> RegexpProgram:
    raise_if_cancelled()
    program = _PROGRAMS.get(pattern)
    if len(text) > MAX_UNCHECKED_TEXT and len(text) * check(pattern) > MAX_STEPS:
        raise RegexpError(Problem.TOO_LARGE, pattern)
    return program


def compile_pattern(pattern: str) -> None:
    """Compile a pattern into the cache; raise `RegexpError` if it is invalid."""
    raise_if_cancelled()
    _PROGRAMS.get(pattern)


class ProgramCache(Generic[Program]):
    """A cache of the most recently used programs, limited by their memory. `compile_pattern` has a pattern and the limit of its memory.

    Several threads can use it: large objects are validated in threads. The lock is not held during a compilation, which
    takes up to 0.2 s.
    """

    def __init__(self, limit: int, compile_pattern: Callable[[str, int], Program]) -> None:
        self._limit = limit
        self._compile_pattern = compile_pattern
        self._used_bytes = 0
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
            self._cache(pattern, program, cost)
        return program

    def _cache(self, pattern: str, program: Program, cost: int) -> None:
        if pattern in self._programs:
            return
        self._programs[pattern] = program, cost
        self._used_bytes += _memory(cost)
        while self._used_bytes > self._limit and len(self._programs) > 1:
            _, (_, evicted_cost) = self._programs.popitem(last=False)
            self._used_bytes -= _memory(evicted_cost)

    def _compile(self, pattern: str) -> tuple[Program, int]:
        parsed = parse(pattern)
        try:
            program = self._compile_pattern(parsed.pattern, _memory(parsed.cost))
        except ValueError:
            raise RegexpError(Problem.TOO_LARGE, pattern) from None
        return program, parsed.cost


def _memory(cost: int) -> int:
    """Return the memory limit of a program: twice the size of its instructions, the rest being for the states of a search."""
    return _MIN_MEMORY + _BYTES_PER_INSTRUCTION * cost


_PROGRAMS: Final = ProgramCache(_CACHED_BYTES, compile_program)
