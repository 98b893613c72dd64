"""The stream of one container run's log: its present lines, and with `follow` those that are added until the run ends."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.supervision import run_until

from . import limits
from .logs import LogLine, LogSource
from .objects import PodVersions
from .runs import ContainerRun, NoLogs, run_of
from .streams import STDOUT, Streams

STREAMS: Final = {"Stdout": frozenset({1}), "Stderr": frozenset({2}), "All": frozenset({1, 2})}
Write = Callable[[bytes], Awaitable[None]]


class LogOptions(Struct, frozen=True, kw_only=True):
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit: int | None = None
    """The maximum number of bytes."""
    streams: frozenset[int] = STREAMS["All"]


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


def current_run(pod: ReadOnlyTree | None, name: str, run: ContainerRun) -> ContainerRun | None:
    """Return the run's latest state from the latest version of its pod; None if the container restarted twice or there is no pod."""
    if pod is None:
        return None
    try:
        latest = run_of(pod, name)
        if latest.started == run.started:
            return latest
        latest = run_of(pod, name, previous=True)
    except NoLogs:
        return None
    return latest if latest.started == run.started else None


@contextmanager
def follow_log(
    source: LogSource, pod: ReadOnlyTree, name: str, run: ContainerRun, pods: PodVersions, clock: Clock
) -> Iterator[Callable[[Streams], Coroutine[Any, Any, None]]]:
    """Return what sends new lines of a run's log to a client, for a container whose output is nowhere else; it reads no input."""
    since = clock.now()

    async def follow(streams: Streams) -> None:
        if streams.stdin is not None:
            streams.stdin.discard()
        with pods.subscribe(pod) as pod_changed:
            stream = LogStream(
                LogOptions(follow=True, since=since),
                source,
                run,
                clock=clock,
                latest_run=lambda: current_run(pods.latest(pod), name, run),
                pod_changed=pod_changed,
            )
            await run_until(streams.departure.wait(), stream.write_to(partial(streams.write, STDOUT)))

    with closing(source):
        yield follow
