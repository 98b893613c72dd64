"""The log file of a run, with a line for each line of output: `TIME stdout F text`, as container runtimes write it.

Each run has at most two files of 10 MiB.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import FileIO
from os import fstat
from pathlib import Path
from typing import Final

from mockube.container_runtime.logs import MAX_LINE, LogLine

MAX_FILE: Final = 10 << 20
"""A kubelet's containerLogMaxSize, after which it rotates the file."""
CHUNK: Final = 64 << 10
_NAMES: Final = {1: b"stdout", 2: b"stderr"}
_NUMBERS: Final = {name: number for number, name in _NAMES.items()}
_MAX_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)


class LogWriter:
    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self._path = path
        self._now = now
        self._file = path.open("ab", buffering=0)
        self._size = 0
        self._parts = {stream: bytearray() for stream in _NAMES}

    def write(self, stream: int, data: bytes) -> None:
        """Write the complete lines; an incomplete line is written when it is complete, or exceeds `MAX_LINE`."""
        part = self._parts[stream]
        part += data
        *lines, rest = bytes(part).split(b"\n")
        records = []
        for line in lines:
            records += _records(line, complete=True)
        while len(rest) > MAX_LINE:
            records += [(b"P", rest[:MAX_LINE])]
            rest = rest[MAX_LINE:]
        part[:] = rest
        self._append(stream, records)

    def close(self) -> None:
        for stream, part in self._parts.items():
            self._append(stream, _records(bytes(part), complete=False) if part else [])
        self._file.close()

    def _append(self, stream: int, records: list[tuple[bytes, bytes]]) -> None:
        if not records:
            return
        prefix = f"{self._now():%Y-%m-%dT%H:%M:%S.%f}000Z ".encode() + _NAMES[stream]
        data = b"".join(b"%b %b %b\n" % (prefix, tag, text) for tag, text in records)
        if self._size and self._size + len(data) > MAX_FILE:
            self._file.close()
            self._path.replace(rotated_path(self._path))
            self._file = self._path.open("ab", buffering=0)
            self._size = 0
        self._file.write(data)
        self._size += len(data)


def _records(line: bytes, *, complete: bool) -> list[tuple[bytes, bytes]]:
    """Split a line into records with the tag `F` for a full line or its end, and `P` for another part."""
    pieces = [line[start : start + MAX_LINE] for start in range(0, len(line), MAX_LINE)] or [b""]
    last = b"F" if complete else b"P"
    return [*((b"P", piece) for piece in pieces[:-1]), (last, pieces[-1])]


def rotated_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


class LogFile:
    """A reader of a run's log, which can read on after more was written."""

    due: Final[datetime | None] = None
    """None, because the time of the next write is unknown."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._rest = b""
        self._open(rotated_path(path) if rotated_path(path).exists() else path)

    def is_behind(self, _: datetime) -> bool:
        return self._remaining_bytes() > 0

    def advance(self, _: datetime) -> Iterator[LogLine]:
        """Yield the lines of the next piece of the file."""
        if self._file is None:
            return
        *lines, self._rest = (self._rest + self._file.read(CHUNK)).split(b"\n")
        for line in lines:
            time, stream, tag, text = line.split(b" ", 3)
            at = datetime.strptime(time[:26].decode(), "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=UTC)
            yield LogLine(at, _NUMBERS[stream], text + b"\n" if tag == b"F" else text)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, path: Path) -> None:
        try:
            self._file = path.open("rb", buffering=0)
        except FileNotFoundError:
            self._file = None

    def _remaining_bytes(self) -> int:
        """Return the number of unread bytes; after the end of a rotated file, open the new file."""
        if self._file is None:
            self._open(self._path)
        if self._file is None:
            return 0
        remaining = self._unread_bytes()
        if remaining == 0 and not self._is_current():
            self._file.close()
            self._file = self._path.open("rb", buffering=0)
            remaining = self._unread_bytes()
        return remaining

    def _unread_bytes(self) -> int:
        assert self._file is not None
        return fstat(self._file.fileno()).st_size - self._file.tell()

    def _is_current(self) -> bool:
        assert self._file is not None
        try:
            current = self._path.stat()
        except FileNotFoundError:
            return True
        opened = fstat(self._file.fileno())
        return (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino)


def log_tail(path: Path, size: int) -> str:
    """Return the last bytes of the log."""
    if not path.exists():
        return ""
    log, tail = LogFile(path), bytearray()
    try:
        while log.is_behind(_MAX_TIME):
            for line in log.advance(_MAX_TIME):
                tail += line.text
                del tail[:-size]
    finally:
        log.close()
    return tail.decode("utf-8", "replace")
