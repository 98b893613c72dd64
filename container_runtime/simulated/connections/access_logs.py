"""The lines that servers of known images log for the requests of clients, in their formats. They are bounded for each run."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.images.table import PortBehavior
from mockube.container_runtime.logs import LogLine, LogSource
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.run_log import LogFiles

from .port_answers import MAX_PATH, HttpAnswer, ReceivedRequest

_MAX_LINES: Final = 1000
"""The latest requests of one run of a container that its log has."""
_STDOUT, _STDERR = 1, 2
_NOT_FOUND: Final = 404


class _RequestLog(Struct):
    """The lines of a run, and what they take on the disk of the node."""

    lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=_MAX_LINES))
    files: LogFiles = field(default_factory=LogFiles)


class _RequestLogs(dict[tuple[str, int], _RequestLog]):
    """Those of a pod, by the container's name and the number of its restarts."""


class AccessLogs:
    def __init__(self, records: Records, clock: Clock, on_output: Callable[[ReadOnlyTree], None]) -> None:
        """`on_output` is called with a pod when one of its containers has logged a request."""
        self._records = records
        self._clock = clock
        self._on_output = on_output

    def note(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        behavior: PortBehavior,
        request: ReceivedRequest,
        answer: HttpAnswer,
    ) -> None:
        if behavior.access_log:
            self.write(pod, container["name"], _texts(behavior, request, answer, self._clock.now()))

    def write(self, pod: ReadOnlyTree, name: str, texts: Iterable[tuple[int, str]]) -> None:
        """Add lines to the log of the present run of a container, each with its descriptor."""
        now = self._clock.now()
        restarts = (container_status(pod, name) or {}).get("restartCount") or 0
        runs = self._records.ensure(meta.uid(pod), _RequestLogs)
        log = runs.get((name, restarts))
        if log is None:
            for run in [run for run in runs if run[0] == name and run[1] < restarts - 1]:
                del runs[run]
            log = runs[name, restarts] = _RequestLog()
        for stream, text in texts:
            line = LogLine(now, stream, f"{text}\n".encode())
            log.lines.append(line)
            log.files.add(now, len(line.text))
        self._on_output(pod)

    def disk_usage(self, uid: str) -> Iterator[tuple[str, int]]:
        """Yield the names of a pod's containers with what the lines of each of their runs take on the disk."""
        runs = self._records.find(uid, _RequestLogs) or _RequestLogs()
        return ((name, log.files.size) for (name, _), log in runs.items())

    def with_requests(self, source: LogSource, pod: ReadOnlyTree, name: str, restarts: int) -> LogSource:
        """Return the log of a run with the lines of its requests."""

        def lines() -> Iterable[LogLine]:
            log = (self._records.find(meta.uid(pod), _RequestLogs) or _RequestLogs()).get((name, restarts))
            return () if log is None else reversed(log.lines)

        return _LogWithRequests(source, lines)


def _texts(
    behavior: PortBehavior, request: ReceivedRequest, answer: HttpAnswer, now: datetime
) -> Iterator[tuple[int, str]]:
    """Yield the stream and the text of each line about a request."""
    address = request.client.rpartition(":")[0] or request.client
    line, size = f"{request.method} {request.path[:MAX_PATH]} HTTP/1.1", len(answer.body)
    at = f"{now:%d/%b/%Y:%H:%M:%S} +0000"
    referer, agent, forwarded = (
        request.headers.get(name) or "-" for name in ("referer", "user-agent", "x-forwarded-for")
    )
    match behavior.access_log:
        case "common":
            yield _STDOUT, f'{address} - - [{at}] "{line}" {answer.status} {size or "-"}'
        case "python":
            yield _STDERR, f'{address} - - [{now:%d/%b/%Y %H:%M:%S}] "{line}" {answer.status} -'
        case kind:
            if answer.status == _NOT_FOUND and behavior.root and not behavior.server.startswith("Apache"):
                path = f"{behavior.root}{request.path.partition('?')[0]}"[:MAX_PATH]
                yield (
                    _STDERR,
                    (
                        f'{now:%Y/%m/%d %H:%M:%S} [error] 30#30: *1 open() "{path}" failed (2: No such file or directory), client: '
                        f'{address}, server: localhost, request: "{line}", host: "{request.headers.get("host", "")}"'
                    ),
                )
            end = f' "{forwarded}"' if kind == "main" else ""
            yield _STDOUT, f'{address} - - [{at}] "{line}" {answer.status} {size} "{referer}" "{agent}"{end}'


class _LogWithRequests:
    """The log of a server at its start, followed by the lines of its requests."""

    def __init__(self, source: LogSource, latest: Callable[[], Iterable[LogLine]]) -> None:
        """`latest` returns the lines of the requests, the latest one first."""
        self._source = source
        self._lines = latest
        self._latest: LogLine | None = None

    @property
    def due(self) -> datetime | None:
        return self._source.due

    def is_behind(self, until: datetime) -> bool:
        return self._source.is_behind(until) or bool(self._pending(until))

    def advance(self, until: datetime) -> Iterator[LogLine]:
        yield from self._source.advance(until)
        if not self._source.is_behind(until):
            for line in self._pending(until):
                self._latest = line
                yield line

    def close(self) -> None:
        self._source.close()

    def _pending(self, until: datetime) -> list[LogLine]:
        """Return the lines after the latest one that was read; earlier ones may have been dropped meanwhile."""
        pending = list[LogLine]()
        for line in self._lines():
            if line is self._latest:
                break
            if line.at <= until:
                pending.append(line)
        return pending[::-1]
