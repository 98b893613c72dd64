"""`/containerLogs`: the log of one run of a container, as much of it as was requested, and on as it is written."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.kubelet.containers.logs import LogLine
from mockube.controller_manager.kubelet.containers.runs import ContainerRun, NoLogs, run_of
from mockube.controller_manager.supervision import yield_to_loop

MAX_TAIL_BYTES: Final = 10 << 20
"""That the last lines of a log may take, which is what a kubelet keeps of a log."""
_STREAMS: Final = {"Stdout": frozenset({1}), "Stderr": frozenset({2}), "All": frozenset({1, 2})}
_FLAGS: Final = {"": False, "false": False, "0": False}

Write = Callable[[bytes], Awaitable[None]]


class BadLogOptions(Exception):
    pass


class LogOptions(Struct, frozen=True, kw_only=True):
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit: int | None = None
    """Bytes."""
    streams: frozenset[int] = _STREAMS["All"]


def log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    seconds, since = _number(query, "sinceSeconds"), query.get("sinceTime")
    try:
        start = parse_time(since) if since else None
    except ValueError as error:
        raise BadLogOptions('{"message": "Unable to decode query."}') from error
    if seconds is not None:
        start = now - timedelta(seconds=min(seconds, 10**9))
    tail = query.get("tail", "")
    lines = _number(query, "tailLines") if tail in ("", "all") else int_or_none(tail)
    limit, stream = _number(query, "limitBytes"), query.get("stream") or "All"
    if stream not in _STREAMS or (lines or 0) < 0 or (limit is not None and limit < 1):
        raise BadLogOptions('{"message": "Invalid request."}')
    return LogOptions(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        since=start,
        tail=lines,
        limit=limit,
        streams=_STREAMS[stream],
    )


def _number(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    value = int_or_none(query[name])
    if value is None:
        raise BadLogOptions('{"message": "Unable to decode query."}')
    return value


def _flag(query: Mapping[str, str], name: str) -> bool:
    return _FLAGS.get(query.get(name, "").lower(), True)


class _Budget(Struct):
    remaining: int | None

    def take(self, data: bytes) -> bytes:
        if self.remaining is None:
            return data
        allowed = data[: self.remaining]
        self.remaining -= len(allowed)
        return allowed

    @property
    def is_exhausted(self) -> bool:
        return self.remaining == 0


class LogSource(Protocol):
    """The log of one run, as far as it was read."""

    @property
    def due(self) -> datetime | None:
        """When the next line is due; None if unknown, or if there is none."""

    def is_behind(self, until: datetime) -> bool: ...

    def advance(self, until: datetime) -> Iterator[LogLine]:
        """Read a piece of what was logged up to a time; call again while `is_behind`."""

    def close(self) -> None: ...


class PodWatchers:
    """Wakes the followers of a pod after a change; most pods have none."""

    def __init__(self) -> None:
        self._events: dict[Key, set[asyncio.Event]] = {}

    def on_change(self, change: Change) -> None:
        self.wake(change.last_known.key)

    def wake(self, key: Key) -> None:
        for event in self._events.get(key, ()):
            event.set()

    @contextmanager
    def watching(self, key: Key) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._events.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            self._events[key].discard(event)
            if not self._events[key]:
                del self._events[key]


class LogStream:
    """Return one response: the present log, and with `follow` new lines until the run ends."""

    def __init__(
        self,
        options: LogOptions,
        replay: LogSource,
        run: ContainerRun,
        *,
        clock: Clock,
        current: Callable[[], ContainerRun | None],
        changed: asyncio.Event,
    ) -> None:
        """`current` returns the run as the pod shows it now, None if it is over; `changed` is set when the pod changes."""
        self._options = options
        self._replay = replay
        self._run = run
        self._clock = clock
        self._current = current
        self._changed = changed
        self._budget = _Budget(options.limit)

    async def write_to(self, write: Write) -> None:
        finished = self._run.finished
        await self._write_past(write, finished or self._clock.now())
        while self._options.follow and finished is None and not self._budget.is_exhausted:
            self._changed.clear()
            run = self._current()
            finished = self._clock.now() if run is None else run.finished
            await self._write_new(write, finished or self._clock.now())
            if finished is None:
                await self._wait()

    async def _write_past(self, write: Write, until: datetime) -> None:
        tail = self._options.tail
        last: deque[bytes] = deque(maxlen=tail)
        size = 0
        while self._replay.is_behind(until):
            lines = self._format_lines(self._replay.advance(until))
            if tail is None:
                await self._write(write, lines)
                if self._budget.is_exhausted:
                    return
                continue
            for line in lines:
                size += len(line) - (len(last[0]) if last and len(last) == tail else 0)
                last.append(line)
                while size > MAX_TAIL_BYTES:
                    size -= len(last.popleft())
            await yield_to_loop()
        await self._write(write, last)

    async def _write_new(self, write: Write, until: datetime) -> None:
        while self._replay.is_behind(until) and not self._budget.is_exhausted:
            await self._write(write, self._format_lines(self._replay.advance(until)))

    def _format_lines(self, lines: Iterable[LogLine]) -> list[bytes]:
        options = self._options
        return [
            f"{line.at:%Y-%m-%dT%H:%M:%S.%f}000Z ".encode() + line.text if options.timestamps else line.text
            for line in lines
            if line.stream in options.streams and (options.since is None or line.at >= options.since)
        ]

    async def _write(self, write: Write, lines: Iterable[bytes]) -> None:
        data = self._budget.take(b"".join(lines))
        if data:
            await write(data)
        await yield_to_loop()

    async def _wait(self) -> None:
        """Wait until the command continues, or the pod changes."""
        due = self._replay.due
        if due is None:
            await self._changed.wait()
            return
        delay = max((due - self._clock.now()).total_seconds(), 0.0)
        timer = self._clock.call_later(delay, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()


def current_run(pod: ReadOnlyTree | None, uid: str, name: str, run: ContainerRun) -> ContainerRun | None:
    """The same run as its pod shows it now; None if another has taken its place, or the pod's."""
    if pod is None or pod["metadata"].get("uid") != uid:
        return None
    try:
        latest = run_of(pod, name)
        if latest.started == run.started:
            return latest
        latest = run_of(pod, name, previous=True)
    except NoLogs:
        return None
    return latest if latest.started == run.started else None
