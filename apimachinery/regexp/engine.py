"""The matching engine: RE2, the C++ counterpart of Go's package regexp.

Its time is linear in the text and in the size of the program, and the memory of a program is limited.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Protocol

import re2

_CLASS_MEMORY: Final = 1 << 20


class Match(Protocol):
    """The start and the end of a match in bytes."""

    def span(self) -> tuple[int, int]: ...


class CapturingMatch(Protocol):
    """The start and the end in bytes of a match and of its groups; -1 for a group that did not take part."""

    def span(self, group: int = 0) -> tuple[int, int]: ...


class CapturingProgram(Protocol):
    """A compiled pattern whose matches have groups."""

    @property
    def groups(self) -> int: ...

    @property
    def groupindex(self) -> Mapping[bytes, int]: ...

    def search(self, text: bytes, pos: int = 0) -> CapturingMatch | None: ...

    def match(self, text: bytes) -> CapturingMatch | None: ...

    def fullmatch(self, text: bytes) -> CapturingMatch | None: ...


class RegexpProgram(Protocol):
    """A compiled pattern."""

    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


def compile_program(pattern: str, memory: int) -> RegexpProgram:
    """Compile a pattern; raise `ValueError` if it needs more than `memory` bytes, or the engine does not support its syntax."""
    program: RegexpProgram = _compile(pattern, memory, never_capture=True)
    return program


def compile_capturing(pattern: str, memory: int) -> CapturingProgram:
    """Compile a pattern that finds the longest of the leftmost matches, as POSIX requires, with its groups."""
    program: CapturingProgram = _compile(pattern, memory, longest_match=True)
    return program


def compile_leftmost(pattern: str, memory: int) -> CapturingProgram:
    """Compile a pattern that finds the match which Perl finds, with its groups and their names in `groupindex`."""
    program: CapturingProgram = _compile(pattern, memory)
    return program


def _compile(pattern: str, memory: int, **flags: bool) -> Any:
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    for name, value in flags.items():
        setattr(options, name, value)
    try:
        program = re2.compile(pattern.encode(errors="replace"), options)
    except re2.error as error:
        raise ValueError(str(error)) from None
    # The package caches the latest 128 programs; the caller has its own cache.
    re2.purge()
    return program


@cache
def named_class_cost(pattern: str) -> int:
    """Return the number of instructions for a character class."""
    return compile_program(pattern, _CLASS_MEMORY).programsize
