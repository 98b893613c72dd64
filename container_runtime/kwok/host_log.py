"""A file of this machine as the log of a container."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from mockube.apimachinery.timestamps import TimestampError, parse_time
from mockube.container_runtime.logs import LogLine
from mockube.container_runtime.runtime import RuntimeProblem

POLL_INTERVAL: Final = timedelta(seconds=1)
"""The interval in which a followed file is read."""
CHUNK: Final = 64 << 10
_STREAMS: Final = {b"stdout": 1, b"stderr": 2}


class HostLog:
    """A `LogSource` over a file of this machine, in a container runtime's format or plain."""

    def __init__(self, path: Path, started: datetime, *, follow: bool = True) -> None:
        """`started` is the time of lines without a time."""
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise RuntimeProblem(f"{path}: {error.strerror}") from error
        self._started = started
        self._follows = follow
        self._rest = b""
        self._read_until = started

    @property
    def due(self) -> datetime | None:
        return self._read_until + POLL_INTERVAL if self._follows else None

    def is_behind(self, until: datetime) -> bool:
        self._read_until = until
        position = self._file.tell()
        end = self._file.seek(0, 2)
        self._file.seek(position)
        return end > position

    def advance(self, _: datetime) -> Iterator[LogLine]:
        *lines, self._rest = (self._rest + self._file.read(CHUNK)).split(b"\n")
        for line in lines:
            yield self._line(line)

    def _line(self, line: bytes) -> LogLine:
        time, _, rest = line.partition(b" ")
        stream, _, rest = rest.partition(b" ")
        tag, _, text = rest.partition(b" ")
        try:
            if stream in _STREAMS and tag in (b"F", b"P"):
                at = parse_time(time.decode("ascii", "replace"))
                return LogLine(at, _STREAMS[stream], text + b"\n" if tag == b"F" else text)
        except TimestampError:
            pass
        return LogLine(self._started, 1, line + b"\n")

    def skip_to_end(self) -> None:
        self._file.seek(0, 2)

    def close(self) -> None:
        self._file.close()
