"""The lines of a container's log, and their source."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple, Protocol

MAX_LINE: Final = 16 * 1024
"""The maximum bytes of a line; a longer line is written in parts, as by a container runtime."""


class LogLine(NamedTuple):
    at: datetime
    stream: int
    text: bytes
    """The line with its newline, or a part of a line without one."""


class LogSource(Protocol):
    """A reader of one run's log."""

    @property
    def due(self) -> datetime | None:
        """The time of the next line; None if it is unknown, or if there is none."""

    def is_behind(self, until: datetime) -> bool: ...

    def advance(self, until: datetime) -> Iterator[LogLine]:
        """Read a piece of the log up to a time; call again while `is_behind`."""

    def close(self) -> None: ...
