"""The stream of one container run's log, with tail and follow, for `/containerLogs` in `endpoints`. `containers/logs` has its text."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.resources import Key
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.simulated.programs.commands import ContainerRun, NoLogs, run_of
from mockube.container_runtime.simulated.programs.log_replay import LogLine

from . import limits

_STREAMS: Final = {"Stdout": frozenset({1}), "Stderr": frozenset({2}), "All": frozenset({1, 2})}
_FLAGS: Final = {"": False, "false": False, "0": False}

Write = Callable[[bytes], Awaitable[None]]


class BadLogOptions(Exception):
    """The query of a log request is invalid; the message is the body of the response 400."""


class LogOptions(Struct, frozen=True, kw_only=True):
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit: int | None = None
    """The maximum number of bytes."""
    streams: frozenset[int] = _STREAMS["All"]


def log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Parse the query of a log request; raise `BadLogOptions` if it is invalid."""
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


class _ByteBudget(Struct):
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
    """A reader of one run's log."""

    @property
    def due(self) -> datetime | None:
        """The time of the next line; None if it is unknown, or if there is none."""

    def is_behind(self, until: datetime) -> bool: ...

    def advance(self, until: datetime) -> Iterator[LogLine]:
        """Read a piece of the log up to a time; call again while `is_behind`."""

    def close(self) -> None: ...


class PodWatchers:
    """Wakes the log followers of a pod after a change of the pod or new output."""

    def __init__(self) -> None:
        self._events: dict[Key, set[asyncio.Event]] = {}

    def on_change(self, change: Change) -> None:
        self.wake(change.last_known.key)

    def wake(self, key: Key) -> None:
        for event in self._events.get(key, ()):
            event.set()

    @contextmanager
    def subscribe(self, key: Key) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        self._events.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            self._events[key].discard(event)
            if not self._events[key]:
                del self._events[key]


class LogStream:
    """The body of one response: the present log, and with `follow` new lines until the run ends."""

    def __init__(
        self,
        options: LogOptions,
        source: LogSource,
        run: ContainerRun,
        *,
        clock: Clock,
        latest_run: Callable[[], ContainerRun | None],
        pod_changed: asyncio.Event,
    ) -> None:
        """`latest_run` returns the run's latest state, None if it is unknown; `pod_changed` is set by changes."""
        self._options = options
        self._source = source
        self._run = run
        self._clock = clock
        self._latest_run = latest_run
        self._pod_changed = pod_changed
        self._budget = _ByteBudget(options.limit)

    async def write_to(self, write: Write) -> None:
        """Write the log until its end, the byte limit, or with `follow` the end of the run."""
        finished = self._run.finished
        await self._write_present(write, finished or self._clock.now())
        while self._options.follow and finished is None and not self._budget.is_exhausted:
            self._pod_changed.clear()
            run = self._latest_run()
            finished = self._clock.now() if run is None else run.finished
            await self._write_new(write, finished or self._clock.now())
            if finished is None:
                await self._wait()

    async def _write_present(self, write: Write, until: datetime) -> None:
        tail = self._options.tail
        tail_lines: deque[bytes] = deque(maxlen=tail)
        size = 0
        while self._source.is_behind(until):
            lines = self._format_lines(self._source.advance(until))
            if tail is None:
                await self._write(write, lines)
                if self._budget.is_exhausted:
                    return
                continue
            for line in lines:
                size += len(line) - (len(tail_lines[0]) if tail_lines and len(tail_lines) == tail else 0)
                tail_lines.append(line)
                while size > limits.MAX_TAIL_BYTES:
                    size -= len(tail_lines.popleft())
            await yield_to_loop()
        await self._write(write, tail_lines)

    async def _write_new(self, write: Write, until: datetime) -> None:
        while self._source.is_behind(until) and not self._budget.is_exhausted:
            await self._write(write, self._format_lines(self._source.advance(until)))

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
        due = self._source.due
        if due is None:
            await self._pod_changed.wait()
            return
        delay = max((due - self._clock.now()).total_seconds(), 0.0)
        timer = self._clock.call_later(delay, self._pod_changed.set)
        try:
            await self._pod_changed.wait()
        finally:
            timer.cancel()


def current_run(pod: ReadOnlyTree | None, uid: str, name: str, run: ContainerRun) -> ContainerRun | None:
    """Return the run's latest state; None if the container restarted twice or the pod was replaced."""
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
