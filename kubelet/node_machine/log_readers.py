"""The logs that crictl reads: part by part, so that a long one needs no memory, and one that is followed is not read again."""

from collections import OrderedDict, deque
from datetime import datetime
from itertools import count
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.log_stream import current_run
from mockube.container_runtime.logs import LogLine, LogSource
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.container_runtime.runs import ContainerRun

MAX_READERS: Final = 50
"""Logs that are open at a time; beyond them the one that was read longest ago is closed."""
MAX_LINES: Final = 5_000
"""The lines of one part, about which more may be read."""
MAX_TAIL: Final = 100_000
"""The last lines that can be requested."""
MAX_TAIL_BYTES: Final = 8 << 20


class LogReader:
    """Reads the log of one run of a container."""

    def __init__(
        self,
        source: LogSource,
        pod: ReadOnlyTree,
        name: str,
        run: ContainerRun,
        *,
        since: datetime | None = None,
        tail: int = -1,
    ) -> None:
        """`tail` is the number of the last lines that are read at first; all if it is negative."""
        self.source = source
        self.pod = pod
        self._name = name
        self._run = run
        self._since = since
        self._tail = tail
        self.has_more = True
        """Whether there are further lines already."""
        self.has_ended = False
        """Whether the run has ended, so that there will be no others."""

    async def read(self, now: datetime, pod: ReadOnlyTree | None) -> list[LogLine]:
        """Return the next lines; `pod` is its latest version, None if it does not exist any more."""
        run = current_run(pod, self._name, self._run)
        finished = now if run is None else run.finished
        self.has_ended = finished is not None
        until = finished or now
        lines = await (self._read_part(until) if self._tail < 0 else self._read_tail(until))
        self._tail = -1
        self.has_more = self.source.is_behind(until)
        return lines

    async def _read_part(self, until: datetime) -> list[LogLine]:
        lines: list[LogLine] = []
        while self.source.is_behind(until) and len(lines) < MAX_LINES:
            lines += self._selected(until)
            await yield_to_loop()
        return lines

    async def _read_tail(self, until: datetime) -> list[LogLine]:
        lines: deque[LogLine] = deque(maxlen=min(self._tail, MAX_TAIL))
        while self.source.is_behind(until):
            lines.extend(self._selected(until))
            await yield_to_loop()
        size = sum(len(line.text) for line in lines)
        while size > MAX_TAIL_BYTES:
            size -= len(lines.popleft().text)
        return [*lines]

    def _selected(self, until: datetime) -> list[LogLine]:
        return [line for line in self.source.advance(until) if self._since is None or line.at >= self._since]


class LogReaders:
    """The open logs by number."""

    def __init__(self) -> None:
        self._readers: OrderedDict[int, LogReader] = OrderedDict()
        self._numbers = count(1)

    def add(self, reader: LogReader) -> int:
        number = next(self._numbers)
        self._readers[number] = reader
        if len(self._readers) > MAX_READERS:
            self.close(next(iter(self._readers)))
        return number

    def find(self, number: int) -> LogReader:
        reader = self._readers.get(number)
        if reader is None:
            raise ServiceFailed("the log was closed, because too many others are read")
        self._readers.move_to_end(number)
        return reader

    def close(self, number: int) -> None:
        reader = self._readers.pop(number, None)
        if reader is not None:
            reader.source.close()
