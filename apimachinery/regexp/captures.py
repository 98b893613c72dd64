"""Matches with their groups in linear time, for patterns of which each request may be compared with many."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from .engine import CapturingMatch, CapturingProgram, compile_leftmost
from .errors import Problem, RegexpError
from .matcher import ProgramCache
from .parser import parse

MAX_COST: Final = 50_000
"""The maximum number of instructions of a program: 30 ms to compile. PCRE2 has 64 KiB for one."""
MAX_LENGTH: Final = 64 << 10
"""The maximum length of a pattern: 0.4 s to parse."""
_MAX_SHOWN: Final = 200
MAX_STEPS: Final = 10_000_000
"""The maximum product of instructions and bytes in a search: 0.4 s at worst. PCRE2 has the same number for its steps."""
_CACHED_BYTES: Final = 64 << 20
_IGNORES_CASE: Final = "(?i)"

_PROGRAMS: Final[ProgramCache[CapturingProgram]] = ProgramCache(_CACHED_BYTES, compile_leftmost)


class Groups(NamedTuple):
    """The groups of a match: all of them, the whole match first, and those with names. A group that took no part is empty."""

    texts: tuple[str, ...]
    named: Mapping[str, str]

    def text(self, index: int) -> str:
        """Return a group; "" for one that the pattern does not have."""
        return self.texts[index] if index < len(self.texts) else ""


class CapturingPattern(Struct, frozen=True):
    """A valid pattern. A search that would take too long finds nothing, as PCRE2 gives up."""

    source: str
    cost: int

    @property
    def groups(self) -> int:
        """The number of groups."""
        return _PROGRAMS.get(self.source).groups

    def search(self, text: str) -> Groups | None:
        """Return the leftmost match."""
        return self._find(lambda program, data: program.search(data), text)

    def match(self, text: str) -> Groups | None:
        """Return the match at the beginning of a text."""
        return self._find(lambda program, data: program.match(data), text)

    def fullmatch(self, text: str) -> Groups | None:
        """Return the match of all of a text."""
        return self._find(lambda program, data: program.fullmatch(data), text)

    def _find(
        self, apply: Callable[[CapturingProgram, bytes], CapturingMatch | None], text: str
    ) -> Groups | None:
        data = _encode(text)
        if self.cost * len(data) > MAX_STEPS:
            return None
        try:
            program = _PROGRAMS.get(self.source)
        except RegexpError:
            return None  # it needs more memory than was estimated
        match = apply(program, data)
        return None if match is None else _groups(program, match, data)


def capturing_pattern(
    pattern: str, *, ignores_case: bool = False, max_cost: int = MAX_COST
) -> CapturingPattern:
    """Return a pattern; raise `RegexpError` if it is invalid or too large. It is compiled when it is needed."""
    if len(pattern) > MAX_LENGTH:
        raise RegexpError(Problem.TOO_LARGE, pattern[:_MAX_SHOWN])
    cost = parse(pattern).cost
    source = pattern
    if ignores_case:
        source = _IGNORES_CASE + pattern
        cost = parse(source).cost
    if cost > max_cost:
        raise RegexpError(Problem.TOO_LARGE, pattern)
    return CapturingPattern(source, cost)


def _groups(program: CapturingProgram, match: CapturingMatch, data: bytes) -> Groups:
    spans = [match.span(index) for index in range(program.groups + 1)]
    texts = tuple(_decode(data[start:end]) if start >= 0 else "" for start, end in spans)
    return Groups(texts, {name.decode(): texts[index] for name, index in program.groupindex.items()})


def _encode(text: str) -> bytes:
    """Return a text in UTF-8; what was decoded from other bytes becomes these again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
