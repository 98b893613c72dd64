"""The log of one run of a simulated container that runs in real time, or that has been replayed."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from mockube.container_runtime.logs import LogLine, LogSource
from mockube.container_runtime.runs import ContainerRun

from .programs.log_replay import LOST

MAX_LOG: Final = 1 << 20
"""The maximum bytes of a run's log."""
_MAX_PART: Final = 4096
"""The bytes of a line without an end from which on it is a part of its own."""
_PREFIX: Final = len("2030-01-01T00:00:00.000000000Z stdout F ")
"""The bytes that a container runtime writes before each line."""
_MAX_FILE: Final = 10 << 20
"""The size of a file of a log from which on a kubelet begins a new one: the default of `containerLogMaxSize`."""
_ROTATION_INTERVAL: Final = timedelta(seconds=10)
"""The default of `containerLogMonitorInterval`. The files before the last two are compressed and hardly count."""
_LINES: Final = 500
"""The maximum number of lines of a log that one call reads."""


class LogFiles:
    """How many bytes the files of a log have on the disk of their node: the present one, and the one before it."""

    def __init__(self) -> None:
        self._present = self._rotated = 0
        self._checked: datetime | None = None
        """When a kubelet looked last whether the present file is too large."""

    @property
    def size(self) -> int:
        return self._present + self._rotated

    def add(self, at: datetime, length: int) -> None:
        """Count a line; begin a new file first if the present one is too large, as a kubelet does from time to time."""
        if self._checked is None or at - self._checked >= _ROTATION_INTERVAL:
            self._checked = at
            if self._present > _MAX_FILE:
                self._rotated, self._present = self._present, 0
        self._present += _PREFIX + length


class RunLog:
    """The last lines of a run's output."""

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque()
        self.dropped = 0
        """The number of earlier lines that were dropped."""
        self._size = 0
        self._files = LogFiles()
        self._parts = {1: b"", 2: b""}

    def write(self, at: datetime, stream: int, data: bytes) -> None:
        *complete_lines, self._parts[stream] = (self._parts[stream] + data).split(b"\n")
        for line in complete_lines:
            self.append(LogLine(at, stream, line + b"\n"))
        if len(self._parts[stream]) >= _MAX_PART:
            self.flush(at)

    def flush(self, at: datetime) -> None:
        """Add incomplete lines to the log."""
        for stream, part in self._parts.items():
            if part:
                self.append(LogLine(at, stream, part))
                self._parts[stream] = b""

    def tail(self, size: int) -> str:
        """Return the last characters of the log."""
        return b"".join(line.text for line in self.lines)[-size:].decode("utf-8", "replace")

    def append(self, line: LogLine) -> None:
        """Add a line, or a part of one."""
        self.lines.append(line)
        self._size += len(line.text)
        self._files.add(line.at, len(line.text))
        while self._size > MAX_LOG:
            self._size -= len(self.lines.popleft().text)
            self.dropped += 1

    @property
    def disk_usage(self) -> int:
        return self._files.size


class RunLogReader:
    """A `LogSource` over a `RunLog`."""

    due = None

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._position = 0

    def is_behind(self, _: datetime) -> bool:
        return self._position < self._log.dropped + len(self._log.lines)

    def advance(self, _: datetime) -> Iterator[LogLine]:
        first = max(self._position, self._log.dropped) - self._log.dropped
        lines = [*islice(self._log.lines, first, first + _LINES)]
        self._position = self._log.dropped + first + len(lines)
        return iter(lines)

    def skip(self, last: LogLine, count: int) -> None:
        """Go on after a line, which is the one of this number with its time."""
        lines = self._log.lines
        later = next((index for index, line in enumerate(reversed(lines)) if line.at < last.at), len(lines))
        self._position = self._log.dropped + len(lines) - later
        same = sum(line.at == last.at for line in islice(lines, len(lines) - later, None))
        self._position += min(same, count)

    def close(self) -> None:
        """Do nothing: the log is in memory."""


class JoinableLog:
    """The log of a run that is computed, and the lines that it writes in real time once a client has joined it."""

    def __init__(self, source: LogSource, find: Callable[[], RunLogReader | None]) -> None:
        """`find` returns the log of the run in real time, if there is one."""
        self._source = source
        self._find = find
        self._is_joined = False
        self._last: LogLine | None = None
        self._count = 0
        """The number of lines with the time of the last one."""

    @property
    def due(self) -> datetime | None:
        return self._present().due

    def is_behind(self, until: datetime) -> bool:
        return self._present().is_behind(until)

    def advance(self, until: datetime) -> Iterator[LogLine]:
        for line in self._present().advance(until):
            self._count = self._count + 1 if self._last is not None and line.at == self._last.at else 1
            self._last = line
            yield line

    def close(self) -> None:
        self._source.close()

    def _present(self) -> LogSource:
        if not self._is_joined and (recorded := self._find()) is not None:
            if self._last is not None:
                recorded.skip(self._last, self._count)
            self._source.close()
            self._source, self._is_joined = recorded, True
        return self._source


def lost_log(run: ContainerRun) -> RunLogReader:
    """Return the log of a run in real time that is not in memory: a line that says so."""
    log = RunLog()
    log.write(run.started, 2, LOST)
    return RunLogReader(log)
