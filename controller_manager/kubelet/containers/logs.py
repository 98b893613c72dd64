"""What a container has logged by a time: its command is replayed from its start, in slices. No I/O, no event loop."""

from collections.abc import Iterator
from datetime import datetime
from math import inf
from typing import Final, NamedTuple

from mockube.apimachinery.timestamps import after, span_of
from mockube.controller_manager.kubelet.shell.process import Host, Output, RepeatedIteration, Run, Sleep

SLICE: Final = 500
"""Effects that are replayed in one go."""
MAX_EFFECTS: Final = 50_000
"""A log that takes more to replay than this begins later."""
MAX_TURNS_SHOWN: Final = 5_000
"""Of a loop in which nothing changes: those before are left out of the log."""
MAX_LINE: Final = 16 * 1024
"""Bytes; a longer line is written in parts, as a container runtime does."""


class LogLine(NamedTuple):
    at: datetime
    stream: int
    text: bytes
    """With its newline, unless it is a part of a line."""


class LogReplay:
    """The log of one run, as far as it was replayed."""

    def __init__(self, running: Run, host: Host, started: datetime) -> None:
        self._running = running
        self._host = host
        self._started = started
        self._effects = 0
        self._answer: bytes | None = None
        self._parts = {1: bytearray(), 2: bytearray()}
        self.has_ended = False

    @property
    def due(self) -> datetime | None:
        """When the command continues; None if it never does."""
        if self.has_ended or self._host.elapsed == inf:
            return None
        return after(self._started, span_of(self._host.elapsed))

    def is_behind(self, until: datetime) -> bool:
        due = self.due
        return due is not None and due <= until

    def advance(self, until: datetime) -> Iterator[LogLine]:
        """Replay a slice of what happens up to a time; call again while `is_behind`."""
        for _ in range(SLICE):
            if not self.is_behind(until):
                return
            yield from self._step(until)
        self._effects += SLICE
        if self._effects >= MAX_EFFECTS:
            self._effects = 0
            self._host.elapsed = max(self._host.elapsed, (until - self._started).total_seconds())

    def close(self) -> None:
        self._running.close()

    def _step(self, until: datetime) -> Iterator[LogLine]:
        try:
            effect = self._running.send(self._answer) if self._answer else next(self._running)
        except StopIteration:
            self.has_ended = True
            for stream, part in self._parts.items():
                yield from self._flush(stream, part)
            return
        self._answer = None
        match effect:
            case Output(descriptor=stream, data=data):
                yield from self._lines(stream, data)
            case Sleep(seconds=seconds):
                self._host.elapsed += seconds
            case RepeatedIteration(seconds=seconds):
                behind = (until - self._started).total_seconds() - self._host.elapsed
                turns = int(behind / seconds) - MAX_TURNS_SHOWN
                self._answer = str(turns).encode() if turns > 0 else None
            case _:  # there is nothing to read
                pass

    def _lines(self, stream: int, data: bytes) -> Iterator[LogLine]:
        part = self._parts.setdefault(stream, bytearray())
        part += data
        *lines, rest = bytes(part).split(b"\n")
        part[:] = rest
        at = self.due or self._started
        for line in lines:
            yield LogLine(at, stream, line + b"\n")
        if len(part) > MAX_LINE:
            yield from self._flush(stream, part)

    def _flush(self, stream: int, part: bytearray) -> Iterator[LogLine]:
        if part:
            text = bytes(part)
            part.clear()
            yield LogLine(after(self._started, span_of(self._host.elapsed)), stream, text)
