"""kwok's objects for a simulated container's logs, exec, attach and port-forward.

The entry is in the Logs, Exec, Attach or PortForward of the pod's name, or else in the first object of the Cluster kind, by
name, that selects the pod. All of them use files, commands and ports of this machine, so they need `--allow-host-access`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.timestamps import TimestampError, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.container_runtime.simulated.programs.log_replay import LogLine
from mockube.kubelet.shared_work import SharedWork

from .http_errors import HttpError

GROUP_VERSION: Final = "/apis/kwok.x-k8s.io/v1alpha1"
FLAG: Final = "--allow-host-access"
DISCOVERY_SECONDS: Final = 10.0
"""How long the discovery of the served kinds is cached, in seconds."""
POLL_INTERVAL: Final = timedelta(seconds=1)
"""The interval in which a followed file is read."""
CHUNK: Final = 64 << 10
_STREAMS: Final = {b"stdout": 1, b"stderr": 2}


class KwokKind(Enum):
    """The kinds of kwok's objects; the value is the plural name."""

    LOGS = "logs"
    EXEC = "execs"
    ATTACH = "attaches"
    PORT_FORWARD = "portforwards"

    @property
    def entries(self) -> str:
        return "forwards" if self is KwokKind.PORT_FORWARD else self.value


class KwokObjects:
    def __init__(self, client: Client, clock: Clock, *, allowed: bool) -> None:
        self._client = client
        self._clock = clock
        self._allowed = allowed
        self._requests = SharedWork[ReadOnlyTree | None]()
        self._served: frozenset[str] = frozenset()
        self._served_until = 0.0

    async def entry(
        self, kind: KwokKind, pod: ReadOnlyTree, container_or_port: str | int
    ) -> ReadOnlyTree | None:
        """Return the entry of a container or a port, or None; raise `HttpError` for an entry without the flag."""
        served = await self._served_kinds()
        for source in await self._objects(kind, pod, served):
            entry = choose_entry((source.get("spec") or {}).get(kind.entries) or (), container_or_port)
            if entry is not None:
                if not self._allowed:
                    name = f"{source.get('kind') or kind.value} {meta.name(source)!r}"
                    raise HttpError(
                        403,
                        f"{name} uses files, commands or ports of the kubelet's machine, which needs {FLAG}",
                    )
                return entry
        return None

    async def list(self, plural: str) -> Sequence[ReadOnlyTree]:
        """Return all objects of a kind, sorted by name; empty if the kind is not served."""
        if plural not in await self._served_kinds():
            return ()
        return sorted((await self._get(plural) or {}).get("items") or (), key=meta.name)

    async def _objects(
        self, kind: KwokKind, pod: ReadOnlyTree, served: frozenset[str]
    ) -> Sequence[ReadOnlyTree]:
        objects: list[ReadOnlyTree] = []
        if kind.value in served:
            path = f"namespaces/{meta.namespace(pod)}/{kind.value}/{meta.name(pod)}"
            namespaced = await self._get(path)
            objects += [namespaced] if namespaced is not None else []
        if f"cluster{kind.value}" in served:
            cluster_objects = (await self._get(f"cluster{kind.value}") or {}).get("items") or ()
            objects += sorted((obj for obj in cluster_objects if selects(obj, pod)), key=meta.name)
        return objects

    async def _served_kinds(self) -> frozenset[str]:
        now = self._clock.monotonic()
        if now >= self._served_until:
            document = await self._get("") or {}
            self._served = frozenset(resource["name"] for resource in document.get("resources") or ())
            self._served_until = now + DISCOVERY_SECONDS
        return self._served

    async def _get(self, path: str) -> ReadOnlyTree | None:
        return await self._requests.run(path, partial(self._request, path))

    async def _request(self, path: str) -> ReadOnlyTree | None:
        try:
            response: ReadOnlyTree = await self._client.raw("GET", f"{GROUP_VERSION}/{path}".rstrip("/"))
        except NotFound:
            return None
        return response


def selects(cluster_object: ReadOnlyTree, pod: ReadOnlyTree) -> bool:
    """Return whether an object of a Cluster kind selects a pod."""
    selector = (cluster_object.get("spec") or {}).get("selector") or {}
    namespaces, names = selector.get("matchNamespaces"), selector.get("matchNames")
    return (not namespaces or meta.namespace(pod) in namespaces) and (not names or meta.name(pod) in names)


def choose_entry(entries: Sequence[ReadOnlyTree], container_or_port: str | int) -> ReadOnlyTree | None:
    """Return the first entry that names a container or a port, or else the first that names none; or None."""
    field = "ports" if isinstance(container_or_port, int) else "containers"
    named_entry = next((entry for entry in entries if container_or_port in (entry.get(field) or ())), None)
    return named_entry or next((entry for entry in entries if not entry.get(field)), None)


def exec_variables(entry: ReadOnlyTree, base: Mapping[str, str]) -> dict[str, str]:
    local: Mapping[str, Any] = entry.get("local") or {}
    return {**base, **{variable["name"]: variable.get("value") or "" for variable in local.get("envs") or ()}}


class HostLog:
    """A `LogSource` over a file of this machine, in a container runtime's format or plain."""

    def __init__(self, path: Path, started: datetime, *, follow: bool = True) -> None:
        """`started` is the time of lines without a time."""
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise HttpError(500, f"{path}: {error.strerror}") from error
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
