"""Tables, and the exit codes of commands."""

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final

from mockube.component_base.printable import printable
from mockube.failure import Failure, Missing, TimedOut, UsageError

_PROGRAM: Final = "MOCKUBE_PROGRAM"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a text table with aligned columns; the first row is the header."""
    rows = [[*map(printable, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def is_colored() -> bool:
    """Return whether to print in colors: at a terminal, unless the variable NO_COLOR has a value."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def program_name() -> str:
    """Return what a user types to run mockube: its path if it is not on the PATH, as after `make up`.

    The program of one file sets a variable: its path is one in a cache.
    """
    return os.environ.get(_PROGRAM) or (
        "mockube"
        if shutil.which("mockube") or not sys.argv[0].endswith("mockube")
        else os.path.relpath(sys.argv[0])
    )


class Code(IntEnum):
    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    TIMEOUT = 4
    UNHEALTHY = 5
    """The result of a check of a cluster or machine, and not an error."""


CODES: Final[Mapping[type[Failure], Code]] = {
    Failure: Code.ERROR,
    UsageError: Code.USAGE,
    Missing: Code.NOT_FOUND,
    TimedOut: Code.TIMEOUT,
}


def code_of(failure: Failure) -> Code:
    return next(CODES[kind] for kind in type(failure).__mro__ if kind in CODES)


def signal_exit_code(number: signal.Signals) -> int:
    """Return the exit code in a shell of a command that a signal ended."""
    return 128 + number


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before the work that makes its content; its folders may be missing."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if path.is_dir():
        raise UsageError(f"{path} is a folder")
    if existing != path and not existing.is_dir():
        raise UsageError(f"{existing} is no folder")
    if not os.access(existing, os.W_OK):
        raise UsageError(f"{existing} cannot be written")
