"""Tables, and the codes that commands end with."""

import signal
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from mockube.failure import Failure, Missing, TimedOut, UsageError


def table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the head. As wide as what is in it, three spaces between."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


class Code(IntEnum):
    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    TIMEOUT = 4
    UNHEALTHY = 5
    """Of a cluster or of a machine that was looked at: the answer, and no failure."""


CODES: Final[Mapping[type[Failure], Code]] = {
    Failure: Code.ERROR,
    UsageError: Code.USAGE,
    Missing: Code.NOT_FOUND,
    TimedOut: Code.TIMEOUT,
}


def code_of(failure: Failure) -> Code:
    return next(CODES[kind] for kind in type(failure).__mro__ if kind in CODES)


def signal_exit_code(number: signal.Signals) -> int:
    """The exit code in shells of a command that a signal has ended."""
    return 128 + number
