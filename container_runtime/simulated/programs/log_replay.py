"""The log of a simulated container up to a time: a replay of its command, in slices. No I/O, no event loop."""

from collections.abc import Iterator
from datetime import datetime
from math import inf
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.resource_limits import limit_of
from mockube.container_runtime.logs import MAX_LINE, LogLine
from mockube.container_runtime.simulated.shell.memory import Memory, OutOfMemory
from mockube.container_runtime.simulated.shell.outside import OutsideAnswer
from mockube.container_runtime.simulated.shell.process import (
    Host,
    Input,
    NetworkCall,
    Output,
    RepeatedIteration,
    Run,
    Sleep,
)

SLICE: Final = 500
"""The maximum number of effects that one call replays."""
MAX_EFFECTS: Final = 50_000
"""The number of effects after which a replay skips to the end, so that the log is incomplete."""
LOST: Final = b"mockube: the log of this run is lost: the controller manager that had it has ended\n"
MAX_ITERATIONS_LOGGED: Final = 5_000
"""The maximum number of logged iterations of a loop in which nothing changes: earlier ones are left out."""


def replay_memory(pod: ReadOnlyTree, container: ReadOnlyTree, node_memory: float) -> Memory:
    """Return the memory in which the command of a container is replayed: one that needs more ends there."""
    limit = limit_of(pod, container, "memory")
    available = node_memory if limit is None else min(limit, node_memory)
    return Memory(lambda: available)


class LogReplay:
    """A replay of one run that yields the lines of its log."""

    def __init__(self, execution: Run, host: Host, started: datetime) -> None:
        self._execution = execution
        self._host = host
        self._started = started
        self._effects = 0
        self._reply: bytes | None = None
        self._parts = {1: bytearray(), 2: bytearray()}
        self._slept_from = 0.0
        """The time at which the last sleep began, in seconds after the start."""
        self._sleep = Sleep(0.0)
        self.has_ended = False

    @property
    def due(self) -> datetime | None:
        """The time at which the command continues; None if it does not continue."""
        if self.has_ended or self._host.elapsed == inf:
            return None
        return after(self._started, span_of(self._host.elapsed))

    def is_behind(self, until: datetime) -> bool:
        due = self.due
        return due is not None and due <= until

    def advance(self, until: datetime) -> Iterator[LogLine]:
        """Replay a slice of the run up to a time and yield its lines; call again while `is_behind`."""
        for _ in range(SLICE):
            if not self.is_behind(until):
                return
            yield from self._step(until)
        self._effects += SLICE
        if self._effects >= MAX_EFFECTS:
            self._effects = 0
            self._host.elapsed = max(self._host.elapsed, (until - self._started).total_seconds())

    def close(self) -> None:
        self._execution.close()

    def unfinished_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the streams with the text that no newline has ended yet."""
        yield from ((stream, bytes(part)) for stream, part in self._parts.items() if part)

    def continue_from(self, now: datetime) -> Run:
        """Return the rest of the run, whose time does not pass by itself any more, from a time up to which it was replayed."""
        host, elapsed = self._host, (now - self._started).total_seconds()
        remaining, slept = host.elapsed - elapsed, elapsed - self._slept_from
        host.elapsed = 0.0
        return _rest(self._execution, replace(self._sleep, seconds=max(remaining, 0.0)), slept)

    def _step(self, until: datetime) -> Iterator[LogLine]:
        try:
            effect = self._execution.send(self._reply) if self._reply else next(self._execution)
        except (StopIteration, OutOfMemory):
            yield from self._end()
            return
        except OutsideAnswer:
            yield from self._lose()
            return
        self._reply = None
        match effect:
            case NetworkCall():
                yield from self._lose()
            case Output(descriptor=stream, data=data):
                yield from self._lines(stream, data)
            case Input() if self._host.has_open_input:
                self._host.elapsed = inf
            case Sleep(seconds=seconds):
                self._slept_from, self._sleep = self._host.elapsed, effect
                self._host.elapsed += seconds
            case RepeatedIteration(seconds=seconds, changes=False):
                remaining = (until - self._started).total_seconds() - self._host.elapsed
                iterations = int(remaining / seconds) - MAX_ITERATIONS_LOGGED
                self._reply = str(iterations).encode() if iterations > 0 else None
            case _:  # The input is empty.
                pass

    def _end(self) -> Iterator[LogLine]:
        self.has_ended = True
        for stream, part in self._parts.items():
            yield from self._flush(stream, part)

    def _lose(self) -> Iterator[LogLine]:
        """End at what cannot be repeated: an answer from outside of the container."""
        yield from self._end()
        yield from self._lines(2, LOST)

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


def _rest(execution: Run, sleep: Sleep, slept: float) -> Run:
    """Wait for the rest of a sleep that has lasted `slept` seconds, or for a signal that ends it; then go on."""
    reply = yield sleep
    if reply:
        reply = str(slept + float(reply)).encode()
    while True:
        try:
            effect = execution.send(reply) if reply else next(execution)
        except StopIteration as stop:
            code: int = stop.value
            return code
        reply = yield effect
