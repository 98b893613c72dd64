"""One run of a simulated container whose command runs in real time: its state, its log, its output and input."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock, Timer
from mockube.container_runtime.attach import attach
from mockube.container_runtime.behavior import KILLED, TERM, has_open_input
from mockube.container_runtime.logs import LogLine, LogSource
from mockube.container_runtime.output import AttachedOutput, ContainerOutput
from mockube.container_runtime.runs import ContainerNotFound, ContainerRun
from mockube.container_runtime.state import ContainerState, Exit
from mockube.container_runtime.streams import InputStream, Streams

from .network.calls import NetworkCaller
from .shell.process import ShownProcess

MAX_LOG: Final = 1 << 20
"""The maximum bytes of a run's log."""
READ: Final = 4096
LINES: Final = 500
"""The maximum number of lines of a log that one call reads."""


class RunLog:
    """The last lines of a run's output."""

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque()
        self.dropped = 0
        """The number of earlier lines that were dropped."""
        self._size = 0
        self._parts = {1: b"", 2: b""}

    def write(self, at: datetime, stream: int, data: bytes) -> None:
        *complete_lines, self._parts[stream] = (self._parts[stream] + data).split(b"\n")
        for line in complete_lines:
            self._add(LogLine(at, stream, line + b"\n"))
        if len(self._parts[stream]) >= READ:
            self.flush(at)

    def flush(self, at: datetime) -> None:
        """Add incomplete lines to the log."""
        for stream, part in self._parts.items():
            if part:
                self._add(LogLine(at, stream, part))
                self._parts[stream] = b""

    def append(self, line: LogLine) -> None:
        """Add a line, or a part of one, that was written before."""
        self._add(line)

    def tail(self, size: int) -> str:
        """Return the last characters of the log."""
        return b"".join(line.text for line in self.lines)[-size:].decode("utf-8", "replace")

    def _add(self, line: LogLine) -> None:
        self.lines.append(line)
        self._size += len(line.text)
        while self._size > MAX_LOG:
            self._size -= len(self.lines.popleft().text)
            self.dropped += 1


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
        lines = [*islice(self._log.lines, first, first + LINES)]
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
    log.write(
        run.started,
        2,
        b"mockube: the log of this run is lost: the controller manager that had it has ended\n",
    )
    return RunLogReader(log)


class InteractiveRun:
    """One run of a container; it implements `CommandStreams` for its command."""

    def __init__(
        self, container: ReadOnlyTree, restarts: int, clock: Clock, on_output: Callable[[], None]
    ) -> None:
        self.container = container
        self.state = ContainerState(restarts=restarts, is_simulated=True)
        self.stdin = InputStream() if has_open_input(container) else None
        """The input, which is empty without `stdin`, and waits for ever with `tty` alone."""
        self.log = RunLog()
        self.task: asyncio.Task[None] | None = None
        self.stop_reason = ""
        self._clock = clock
        self.send_signal: Callable[[int], None] = lambda _: None
        """Sends a signal to the first process of the command."""
        self.listed_processes: Callable[[], Sequence[ShownProcess]] = tuple
        """Returns the processes of the command."""
        self.stop_code: int | None = None
        """The exit code of a command that ends at once when it is stopped; None for one that goes on, unless a trap ends it."""
        self._kill_at: datetime | None = None
        """When the run is killed, if it is being stopped."""
        self._kill_timer: Timer | None = None
        self.has_paused = asyncio.Event()
        """Set when the command waits for the first time, or ends: what it does at its start is done."""
        self._on_start: Callable[[], None] = lambda: None
        self._started = clock.now()
        self._is_sleeping = False
        self._is_signalled = False
        self._on_output = on_output
        self._output = ContainerOutput()

    async def write(self, stream: int, data: bytes) -> None:
        self.log.write(self._clock.now(), stream, data)
        self._on_output()
        await self._output.send(stream, data)

    def begin(self, on_start: Callable[[], None]) -> None:
        """Begin the command, which counts as started now; `on_start` is called when what it does at its start is done."""
        self._started = self._clock.now()
        self._on_start = on_start

    def pause(self) -> None:
        if self.has_paused.is_set():
            return
        self.has_paused.set()
        if self.state.started is None:
            self.state = replace(self.state, started=self._started, is_ready=True, passed_startup=True)
        self._on_start()

    def end(self, code: int, reason: str = "", message: str = "") -> None:
        self._cancel_kill()
        self.pause()
        now = self._clock.now()
        self.log.flush(now)
        end = Exit(code=code, at=now, reason=reason, message=message)
        self.state = replace(self.state, exit=end, is_ready=False)
        if self.stdin is not None:
            self.stdin.discard()
        self._output.end()
        self._on_output()

    def terminate(self) -> None:
        """Send SIGTERM to the first process of the command, which may end the run, at once or later."""
        if self.task is None or self.state.exit is not None or self.state.is_stopping:
            return
        self.state = replace(self.state, is_stopping=True)
        if self.stop_code is not None:
            self.task.cancel()
        else:
            self.signal(TERM)

    def signal(self, number: int) -> None:
        """Send a signal to the first process of the command, and wake it up."""
        if self.task is None or self.state.exit is not None:
            return
        self.send_signal(number)
        if self._is_sleeping and not self._is_signalled:
            self._is_signalled = True
            self.task.cancel()

    def kill(self, reason: str = "") -> None:
        """Kill the run; `reason` is that in the status, empty for Error."""
        if self.task is not None and self.state.exit is None:
            self.stop_reason = reason
            self.state = replace(self.state, is_stopping=True)
            self.stop_code, self._is_signalled = None, False
            self.task.cancel()

    def kill_by(self, deadline: datetime) -> None:
        """Kill the run at a time, unless it ends or is to be killed earlier."""
        if self.state.exit is not None or (self._kill_at is not None and self._kill_at <= deadline):
            return
        self._cancel_kill()
        self._kill_at = deadline
        seconds = (deadline - self._clock.now()).total_seconds()
        if seconds > 0:
            self._kill_timer = self._clock.call_later(seconds, self.kill)
        else:
            self.kill()

    def _cancel_kill(self) -> None:
        if self._kill_timer is not None:
            self._kill_timer.cancel()
            self._kill_timer = None

    def end_stopped(self) -> None:
        """Record the end of a run whose task was cancelled."""
        self.end(KILLED if self.stop_code is None else self.stop_code, self.stop_reason)

    async def sleep(self, seconds: float) -> float | None:
        """Sleep for the command; return the time after which a signal has ended the sleep, None without one."""
        begin = self._clock.monotonic()
        self.pause()
        self._is_sleeping = True
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            if not self._is_signalled or self.task is None:
                raise
            self._is_signalled = False
            self.task.uncancel()
            return self._clock.monotonic() - begin
        finally:
            self._is_sleeping = False
        return None

    def pausing(self, network: NetworkCaller) -> NetworkCaller:
        """Return the network of the command, at which it waits, too."""

        async def call(request: bytes) -> bytes:
            self.pause()
            return await network(request)

        return call

    @contextmanager
    def listen(self) -> Iterator[AttachedOutput]:
        """Queue the output from now on, up to `OUTPUT_END`.

        It raises `ContainerNotFound` if the run has ended; kubectl then reads the log.
        """
        if self.state.exit is not None:
            raise ContainerNotFound(self.container["name"])
        with self._output.listen() as output:
            yield output

    async def attach(self, output: AttachedOutput, streams: Streams) -> None:
        """Send the output to a client, and receive its input."""
        if self.stdin is None or not self.container.get("stdin"):
            await attach(output, streams, None)
        else:
            await attach(output, streams, partial(self._forward_input, self.stdin))

    async def _forward_input(self, stdin: InputStream, source: InputStream) -> None:
        while data := await source.read(READ):
            await stdin.feed(data)
        if self.container.get("stdinOnce"):
            await stdin.end()
