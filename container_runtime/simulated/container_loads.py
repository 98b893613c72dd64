"""What simulated containers use: CPU for requests and commands, memory, and the containers that ran out of it.

The usage is computed when it is read, from records that change only when something happens.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.behavior import KILLED
from mockube.container_runtime.config.resource_limits import limit_of
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.load import NO_LOAD, OOM_KILLED, RunLoad, Stats
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status, running_seconds
from mockube.container_runtime.state import ContainerKill

from . import predictions
from .client_pace import CLIENT
from .cpu_record import QUOTA_SLACK, CpuRecord
from .programs.commands import live_command
from .programs.image_load import request_seconds, server_of
from .shell.memory import Memory, OutOfMemory

_MIN_WAIT: Final = 0.005
"""The shortest time of a request that is waited for: a timer costs as much."""
_SLOW: Final = 1.0
"""The seconds after which a probe gives up by default."""
_MANY: Final = 2.0
"""The number of requests from which on they are balanced among the pods of a Service."""
_PROGRAM_SIZE: Final = 1 << 20
"""The memory of a simulated program at rest."""


class _Record(Struct):
    cpu: CpuRecord = field(default_factory=CpuRecord)
    filled: dict[object, float] = field(default_factory=dict)
    """The memory of the commands that run in real time."""
    in_volumes: int = 0
    """The bytes that the present run has written into volumes in memory, which count as its own."""
    kill: ContainerKill | None = None
    is_slow: bool = False
    """Whether requests have taken as long as probes wait by default, so that probes wait for their answers, too."""


class _Records(dict[str, _Record]):
    """Those of a pod, by the container's name."""


class ContainerLoads:
    def __init__(
        self,
        images: ImageTable,
        records: Records,
        clock: Clock,
        is_live: Callable[[ReadOnlyTree, ReadOnlyTree], object] | None = None,
        on_slow: Callable[[ReadOnlyTree], None] = lambda _: None,
    ) -> None:
        """`is_live` returns whether the command of a container runs in real time, besides those that demand it; `on_slow` is called with a pod whose answers become slow."""
        self._on_slow = on_slow
        self._clock = clock
        self._images = images
        self._is_live = is_live or partial(live_command, images)
        self._records = records

    def end_commands(self, pod: ReadOnlyTree, name: str) -> None:
        """Forget the memory of the commands of a container, which end with its run."""
        record = self._records_of(pod).get(name)
        if record is not None:
            record.filled.clear()

    def cpu_of(self, pod: ReadOnlyTree, name: str) -> CpuRecord:
        return self._record(pod, name).cpu

    def memory_for(self, pod: ReadOnlyTree, container: ReadOnlyTree, node_memory: float) -> Memory:
        """Return the memory in which a command runs in real time."""
        record = self._record(pod, container["name"])
        limit = limit_of(pod, container, "memory")
        bound = node_memory if limit is None else min(limit, node_memory)

        command = object()

        def available() -> float:
            computed = self._computed_usage(pod, container)
            others = sum(size for other, size in record.filled.items() if other is not command)
            return bound - others - record.in_volumes - (0.0 if computed is None else computed.memory)

        def note(size: float) -> None:
            if size:
                record.filled[command] = size
            else:
                record.filled.pop(command, None)

        return Memory(available, note)

    def forget_volumes(self, pod: ReadOnlyTree, name: str) -> None:
        """Note that a new run of a container has written nothing into volumes in memory."""
        self._record(pod, name).in_volumes = 0

    def charge_volumes(self, pod: ReadOnlyTree, name: str, memory: Memory, size: int) -> None:
        """Count what a command has written into volumes in memory, or removed; raise `OutOfMemory` if that is too much."""
        record = self._record(pod, name)
        record.in_volumes = max(record.in_volumes + size, 0)
        if size > 0 and memory.is_exceeded:
            raise OutOfMemory

    async def serve_request(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> None:
        """Let the server of a container work on a request, as long as it takes."""
        image = server_of(self._images, container)
        busy = 0.0 if image is None else request_seconds(image)
        if not busy:
            return
        client = CLIENT.get()
        weight, gap = (1.0, 0.0) if client is None else client.weigh_request()
        limit = limit_of(pod, container, "cpu")
        cpu, now = self.cpu_of(pod, container["name"]), self._clock.monotonic()
        seconds = cpu.duration(now, busy, inf if limit is None else limit)
        self._note_duration(pod, container["name"], seconds)
        start, end = (now - gap, now) if gap else (now, now + seconds)
        backends = () if client is None or weight < _MANY else client.backends()
        for other, answering in backends or ((pod, container),):
            self.cpu_of(other, answering["name"]).add(start, end, busy * weight / max(len(backends), 1))
        if seconds < _MIN_WAIT:
            return
        if client is None:
            await self._clock.sleep(seconds)
            return
        with client.waiting(seconds, 0.0):
            await self._clock.sleep(seconds)

    def _note_duration(self, pod: ReadOnlyTree, name: str, seconds: float) -> None:
        record = self._record(pod, name)
        if seconds >= _SLOW and not record.is_slow:
            record.is_slow = True
            self._on_slow(pod)

    def is_slow(self, pod: ReadOnlyTree) -> bool:
        """Return whether requests to a container of a pod have taken long."""
        return any(record.is_slow for record in self._records_of(pod).values())

    def serve_probe(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> float:
        """Return how long the server of a container, which works on it, takes for the request of a probe."""
        image = server_of(self._images, container)
        busy = 0.0 if image is None else request_seconds(image)
        limit, now = limit_of(pod, container, "cpu"), self._clock.monotonic()
        cpu = self.cpu_of(pod, container["name"])
        seconds = cpu.duration(now, busy, inf if limit is None else limit)
        cpu.add(now, now + seconds, busy)
        return seconds

    # --- containers that a command in them ends

    def kill(self, pod: ReadOnlyTree, name: str, code: int = KILLED, reason: str = OOM_KILLED) -> None:
        """End the present run of a container; by default because a command in it uses more memory than there is."""
        restarts = (container_status(pod, name) or {}).get("restartCount") or 0
        record = self._record(pod, name)
        record.filled.clear()
        record.in_volumes = 0
        record.kill = ContainerKill(restarts=restarts, at=self._clock.now(), code=code, reason=reason)

    def kills(self, pod: ReadOnlyTree) -> Mapping[str, ContainerKill]:
        records = self._records_of(pod)
        return {name: record.kill for name, record in records.items() if record.kill is not None}

    # --- usage

    def stats(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Stats | None:
        """Return what a running container uses now; None if its program is unknown."""
        name = container["name"]
        computed = self._computed_usage(pod, container)
        if computed is None:
            return None
        record = self._records_of(pod).get(name)
        recorded = 0.0 if record is None else record.cpu.cores(self._clock.monotonic())
        filled = 0.0 if record is None else sum(record.filled.values()) + record.in_volumes
        limit = limit_of(pod, container, "cpu")
        cores = min(
            computed.cores + recorded,
            inf if limit is None else limit + (QUOTA_SLACK if recorded else 0.0),
        )
        size = computed.memory + filled
        memory = limit_of(pod, container, "memory")
        return Stats(cores=cores, memory=size if memory is None else min(size, memory))

    def _computed_usage(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Stats | None:
        """Return what a container uses without its requests and the commands that run in real time."""
        seconds = running_seconds(pod, container["name"], self._clock.now())
        load = None if seconds is None else self._load(pod, container)
        if seconds is None or load is None:
            return None
        at_rest = _PROGRAM_SIZE if server_of(self._images, container) is None else 0.0
        return Stats(cores=load.cores_at(seconds), memory=load.memory_at(seconds) + at_rest)

    def _load(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> RunLoad | None:
        """Return what the computed run of a container uses: nothing if it runs in real time; None if nobody knows."""
        if self._is_live(pod, container):
            return NO_LOAD
        script = script_of(meta.annotations(pod))
        run_program = predictions.program_of_run(self._images, pod, container, script)
        status = container_status(pod, container["name"]) or {}
        started = parse_time(status["state"]["running"]["startedAt"])
        behavior = run_program(restarts=status.get("restartCount") or 0, started=started)
        if behavior is not None and behavior.load is not NO_LOAD:
            return behavior.load
        at_rest = predictions.server_load(self._images, container, script)
        if at_rest is not NO_LOAD:
            return at_rest
        return None if behavior is None else behavior.load

    def _record(self, pod: ReadOnlyTree, name: str) -> _Record:
        return self._records.ensure(meta.uid(pod), _Records).setdefault(name, _Record())

    def _records_of(self, pod: ReadOnlyTree) -> Mapping[str, _Record]:
        return self._records.find(meta.uid(pod), _Records) or _NO_RECORDS


_NO_RECORDS: Final[Mapping[str, _Record]] = {}
