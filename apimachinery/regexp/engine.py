"""The matching engine: RE2, which is to C++ what package regexp is to Go.

Its time is linear in the text and in the size of a program, and a program uses no more memory than it is given.
"""

from functools import cache
from typing import Final, Protocol

import re2

_CLASS_MEMORY: Final = 1 << 20


class Match(Protocol):
    """Where a pattern matched, in bytes."""

    def span(self) -> tuple[int, int]: ...


class Program(Protocol):
    """A pattern that is ready to be matched."""

    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


def compile_program(pattern: str, memory: int) -> Program:
    """Raise `ValueError` if the program needs more memory, or the engine does not support the syntax."""
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    options.never_capture = True
    try:
        program: Program = re2.compile(pattern.encode(errors="replace"), options)
    except re2.error as error:
        raise ValueError(str(error)) from None
    # The package keeps the latest 128 programs; what is kept is the caller's decision.
    re2.purge()
    return program


@cache
def named_class_cost(pattern: str) -> int:
    """Instructions for a class by one of the names that there are."""
    return compile_program(pattern, _CLASS_MEMORY).programsize
