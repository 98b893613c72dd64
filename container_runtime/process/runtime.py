"""The run-time of containers that run as processes of this machine."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start, timeout
from mockube.component_base.temporary_folder import remove_abandoned_folders, temporary_folder
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.disk_usage import DiskUsage, has_disk_limits
from mockube.container_runtime.load import Stats
from mockube.container_runtime.logs import LogSource
from mockube.container_runtime.objects import REFRESH_SECONDS, ObjectsUnavailable
from mockube.container_runtime.pod_network.network import PodNetwork
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.port_connections import connect_port
from mockube.container_runtime.port_probe import PortAnswer, PortProbe
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.runs import ContainerNotFound, ContainerRun
from mockube.container_runtime.runtime import (
    Attachment,
    Command,
    ExecRequest,
    PortConnection,
    RuntimeEvents,
    RuntimeProblem,
)
from mockube.container_runtime.simulation_values import AUTO
from mockube.container_runtime.state import NEVER_RAN, ContainerKill, ContainerState
from mockube.container_runtime.streams import ClientConnection
from mockube.container_runtime.volume_folders import VolumeFolders

from .command import CommandSpec
from .folders import write_volumes
from .image_service import ProcessImages
from .images import ImageMap
from .local_process import GroupWatch, LocalProcess
from .log_files import LogFile
from .log_folder import LogFolder
from .memory_groups import MemoryGroups
from .namespace_support import NamespaceSupport
from .pod_processes import PodProcesses
from .port_owners import PortOwners
from .process_network import ProcessNetwork
from .process_run import PodObjects, ProcessRun, RunChecks, RunContext
from .streams import attach_to, run_exec

LOG: Final = logging.getLogger(__name__)

FORCED_GRACE: Final = 1.0
"""The grace period in seconds for the processes of a pod that was deleted by force."""
SHUTDOWN_GRACE: Final = 0.3
"""The grace period in seconds for all processes when the kubelet ends."""
_PODS: Final = "mockube-pods-"
_FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")


class _PodRecord:
    def __init__(self, objects: PodObjects, watch: GroupWatch) -> None:
        self.objects = objects
        self.processes = PodProcesses(watch)
        self.port_owners = PortOwners(meta.uid(objects.pod))
        self.runs: dict[str, ProcessRun] = {}
        """The latest run of each container."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.refresh_task: asyncio.Task[None] | None = None

    async def with_processes(self, container: ReadOnlyTree, spec: CommandSpec) -> CommandSpec:
        """Return the command of a container with its namespace of processes."""
        return await self.processes.with_namespace(self.objects.pod, container, spec, self._process_of)

    def _process_of(self, name: str) -> LocalProcess | None:
        run = self.runs.get(name)
        return run.process if run is not None and run.state.exit is None else None


class ProcessServices(Struct, frozen=True, kw_only=True):
    """What the containers have from the kubelet."""

    clock: Clock
    events: RuntimeEvents
    server: str
    """The URL of the API server."""
    objects_of: Callable[[ReadOnlyTree], PodObjects]
    record_event: Callable[[ReadOnlyTree, str, str, str, str], None]
    """Records an Event about a part of a pod: with its type, its reason, and its message."""
    checks: Callable[[ProcessRun, ReadOnlyTree | None], RunChecks]
    volumes: Callable[[], VolumeFolders]
    """Returns what has the contents of volumes that containers may write."""
    logs: Path | None = None
    """The folder of the logs, which outlive the kubelet; None for one that does not."""
    pod_uids: Callable[[], Awaitable[AbstractSet[str]]]
    """Waits until the pods are known, and returns their uids."""
    network: PodNetwork | None = None
    """What gives pods networks of their own; None if processes have that of this machine."""
    network_mode: str = AUTO


class ProcessRuntime:
    """A `ContainerRuntime` whose containers are processes of this machine."""

    def __init__(self, images: ImageMap, services: ProcessServices) -> None:
        self._images = images
        self.image_service = ProcessImages(images)
        self._services = services
        self._clock = services.clock
        self._pods: dict[str, _PodRecord] = {}
        self._cleanup_tasks: set[asyncio.Task[None]] = set()
        self._context: RunContext | None = None
        self._network = ProcessNetwork(services.network, services.network_mode)
        if services.network is not None:
            services.network.on_lost(self._restart_without_network)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watch, services = GroupWatch(), self._services
        with temporary_folder(_PODS) as folder:
            logs = LogFolder(services.logs or folder / "logs")
            self._context = RunContext(
                clock=self._clock,
                record_event=services.record_event,
                checks=services.checks,
                watch=watch,
                folder=folder,
                logs=logs,
                support=NamespaceSupport(folder).check,
                memory=MemoryGroups(),
                volumes=services.volumes(),
                network=self._network,
                server=services.server,
                on_change=services.events.report_change,
                on_output=services.events.report_output,
            )
            removal = start(
                "files of programs that were killed", self._remove_abandoned_files(logs, logs.pods())
            )
            try:
                yield
            finally:
                try:
                    await cancel_and_wait([removal])
                    await self._end_all()
                    await services.volumes().release()
                finally:  # also if this is cancelled, because there is no time left
                    network_end = start("the end of the pods' network", self._network.close())
                    await watch.end()
                    await network_end

    def runs(self, pod: ReadOnlyTree, name: str) -> bool:
        return name in self.states(pod)

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ContainerState]:
        record = self._pods.get(meta.uid(pod))
        script = script_of(meta.annotations(pod))
        states: dict[str, ContainerState] = {}
        for _, container in _containers(pod):
            name = container["name"]
            run = record.runs.get(name) if record else None
            if run is not None:
                states[name] = run.state
            elif script.command(name) is None and self._images.find(container.get("image") or ""):
                states[name] = NEVER_RAN
        return states

    def disk_usage(self, pod: ReadOnlyTree) -> DiskUsage | None:
        """Return None: processes write to the disk of this machine."""
        del pod
        return None

    def node_disk_use(self, node: str) -> int:
        """Return 0, as above."""
        del node
        return 0

    def node_path_type(self, node: str, path: str) -> str:
        """Return "": processes write to the disk of this machine."""
        del node, path
        return ""

    def node_files(self, node: str, folder: str) -> Mapping[str, bytes] | None:
        """Return None: a node has the simulated files alone."""
        del node, folder
        return None

    def add_node_files(self, node: str, files: Mapping[str, bytes]) -> None:
        pass

    def kills(self, _: ReadOnlyTree) -> Mapping[str, ContainerKill]:
        return {}

    def container_stats(self, _pod: ReadOnlyTree, _name: str) -> Stats | None:
        return None

    def may_change(self, pod: ReadOnlyTree) -> bool:
        del pod
        return True

    def live_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
        """Return nothing: the checks of each run make all of its probes and hooks."""
        del pod, container
        return {}

    # --- starting and ending runs

    def start_container(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        uid = meta.uid(pod)
        if self._context is None:
            return
        record = self._pods.get(uid)
        if record is None:
            record = self._pods[uid] = _PodRecord(self._services.objects_of(pod), self._context.watch)
        previous_run = record.runs.get(name)
        if previous_run is not None and previous_run.state.restarts >= restarts:
            return
        field, container = next(
            (field, candidate) for field, candidate in _containers(pod) if candidate["name"] == name
        )
        image = self._images.find(container["image"])
        if image is None:
            return
        run = ProcessRun(
            self._context,
            record.objects,
            container,
            field=f"spec.{field}{{{name}}}",
            image=image,
            restarts=restarts,
            with_processes=record.with_processes,
        )
        record.runs[name] = run
        task = start(f"container {name} of {meta.namespaced_name(pod)}", self._run(run))
        record.tasks.add(task)
        task.add_done_callback(record.tasks.discard)
        if record.refresh_task is None:
            record.refresh_task = start(
                f"volumes of {meta.namespaced_name(pod)}", self._refresh_volumes(record)
            )

    async def _run(self, run: ProcessRun) -> None:
        await run.run()
        await self._services.volumes().note_changes(run.pod)

    def stop_container(self, pod: ReadOnlyTree, name: str, grace: float) -> None:
        run = self._latest_run(pod, name)
        if run is not None:
            run.stop(grace)

    def update_pod(self, pod: ReadOnlyTree) -> None:
        record = self._pods.get(meta.uid(pod))
        if record is not None:
            record.objects.pod = pod
            if _has_ended(pod) and not record.tasks:  # its address is free
                self._start_cleanup("the end of a pod's network", self._network.release(pod))
                self._start_cleanup("the end of a pod's processes", record.processes.release())

    def remove_containers(self, uid: str) -> None:
        """Do nothing, as above: `remove_pod` drops the files."""

    def remove_pod(self, uid: str) -> None:
        record = self._pods.pop(uid, None)
        if record is not None:
            self._start_cleanup("the end of a pod", self._clean_up(uid, record))
        elif self._context is not None:
            self._start_cleanup("the end of a pod", asyncio.to_thread(self._context.logs.remove_pod, uid))

    def _start_cleanup(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = start(name, work)
        self._cleanup_tasks.add(task)
        task.add_done_callback(self._cleanup_tasks.discard)

    def _restart_without_network(self, pod: ReadOnlyTree) -> None:
        """End the processes of a pod whose network is gone, as a kubelet does; their next runs have another one."""
        record = self._pods.get(meta.uid(pod))
        if record is None:
            return
        record.processes.stop()
        for run in record.runs.values():
            run.lose_network()

    # --- commands, output and ports

    async def exec_sync(
        self,
        pod: ReadOnlyTree,
        name: str,
        command: Sequence[str],
        seconds: float,
        *,
        restarts: int | None = None,
        on_unknown: Callable[[str], None] = lambda _: None,
    ) -> CommandResult | None:
        del restarts, on_unknown  # there is one running process, and the machine's programs
        run, begin = self._running(pod, name), self._clock.monotonic()
        try:
            async with timeout(self._clock, seconds):
                code, output = await run.execute(command)
        except TimeoutError:
            return CommandResult(exit_code=0, seconds=float("inf"))
        return CommandResult(exit_code=code, output=output, seconds=self._clock.monotonic() - begin)

    async def probe_port(
        self, pod: ReadOnlyTree, name: str, request: PortProbe, *, restarts: int | None = None
    ) -> PortAnswer:
        """Return nothing that is known: the checks of each run make its probes."""
        del pod, request, restarts
        return PortAnswer(unknown=f"container {name}", is_listening=False)

    async def exec(self, pod: ReadOnlyTree, name: str, request: ExecRequest) -> Command:
        return partial(run_exec, self._running(pod, name), request)

    @asynccontextmanager
    async def attach(self, pod: ReadOnlyTree, name: str, *, has_terminal: bool) -> AsyncIterator[Attachment]:
        del has_terminal  # the process has a terminal of its own
        run = self._running(pod, name)
        with run.output.listen() as output:
            yield partial(attach_to, run, output)

    async def logs(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        path = None if self._context is None else self._context.logs.log(meta.uid(pod), name, run.restarts)
        if path is None or not path.exists():
            raise RuntimeProblem(
                f"unable to retrieve container logs for container {name!r} of pod {meta.namespaced_name(pod)}"
            )
        return LogFile(path)

    async def port_forward(self, pod: ReadOnlyTree, port: int) -> PortConnection:
        failed = f"error forwarding port {port} to pod {meta.uid(pod)}, uid : failed to connect to localhost:{port}"
        connect = self.listener(pod, port)
        if connect is None:
            raise RuntimeProblem(f"{failed}: dial tcp4 127.0.0.1:{port}: connect: connection refused")

        async def forward(client: ClientConnection) -> str:
            problem = await connect(client)
            return f"{failed}: {problem}" if problem else ""

        return forward

    def listener(
        self, pod: ReadOnlyTree, port: int, *, simulated: bool = True, source: str = "127.0.0.1"
    ) -> PortConnection | None:
        del simulated
        process_port = self.process_port(pod, port)
        if process_port is None or not self._may_connect(pod, port, process_port):
            return None
        return partial(connect_port, process_port.seen_from(source), self._clock)

    def _may_connect(self, pod: ReadOnlyTree, port: int, process_port: ProcessPort) -> bool:
        """Return whether a port is the pod's: in its own network, mapped by the file of images, or one on which a process of it listens."""
        if process_port.has_own_network:
            return True
        record = self._pods[meta.uid(pod)]
        is_mapped = any(port in run.mapped_ports for run in record.runs.values())
        return is_mapped or record.port_owners.has(process_port.port)

    def process_port(self, pod: ReadOnlyTree, port: int) -> ProcessPort | None:
        """Return where a pod's port is reached; None if no process of the pod runs."""
        record = self._pods.get(meta.uid(pod))
        alive = [run for run in record.runs.values() if run.state.is_alive] if record else []
        run = next((run for run in alive if port in run.ports), next(iter(alive), None))
        return None if run is None else run.port_of(port)

    def _latest_run(self, pod: ReadOnlyTree, name: str) -> ProcessRun | None:
        record = self._pods.get(meta.uid(pod))
        return record.runs.get(name) if record else None

    def _running(self, pod: ReadOnlyTree, name: str) -> ProcessRun:
        run = self._latest_run(pod, name)
        if run is None or run.spec is None or run.state.exit is not None:
            raise ContainerNotFound(name)
        return run

    # --- volumes, logs, and the end

    async def _remove_abandoned_files(self, logs: LogFolder, earlier: AbstractSet[str]) -> None:
        """Remove the folders of programs that were killed, and the logs of earlier pods that were deleted since."""
        await asyncio.to_thread(remove_abandoned_folders, _PODS)
        if earlier:
            for uid in earlier - await self._services.pod_uids():
                await asyncio.to_thread(logs.remove_pod, uid)

    async def _refresh_volumes(self, record: _PodRecord) -> None:
        """Update the pod's volumes from the API periodically."""
        while True:
            try:
                await self._clock.sleep(REFRESH_SECONDS)
                for run in [*record.runs.values()]:
                    if run.spec is not None and run.state.exit is None:
                        await self._refresh_run_volumes(run, record.objects)
                await self._services.volumes().note_changes(record.objects.pod)
                if has_disk_limits(record.objects.pod):
                    self._services.events.report_change(record.objects.pod)
            except Exception:
                LOG.exception(
                    "volumes of pod %s were not updated; the update will be retried",
                    meta.namespaced_name(record.objects.pod),
                )

    async def _refresh_run_volumes(self, run: ProcessRun, objects: PodObjects) -> None:
        assert self._context is not None
        try:
            references = await objects.load(run.container)
        except ObjectsUnavailable:
            return
        if not objects.mount_problem(run.container, references)[1]:
            now = self._clock.now()
            write_volumes(self._context.folder, objects.pod, run.container, references, now)

    async def _clean_up(self, uid: str, record: _PodRecord) -> None:
        assert self._context is not None
        try:
            await _end_runs(record, FORCED_GRACE)
        finally:
            await cancel_and_wait([*record.tasks])
            await self._network.release(record.objects.pod)
            # A pod may leave many files.
            await asyncio.to_thread(shutil.rmtree, self._context.folder / uid, ignore_errors=True)
            await asyncio.to_thread(self._context.logs.remove_pod, uid)

    async def _end_all(self) -> None:
        pods, self._pods = [*self._pods.values()], {}
        await asyncio.gather(*(_end_runs(record, SHUTDOWN_GRACE) for record in pods), *self._cleanup_tasks)


async def _end_runs(record: _PodRecord, grace: float) -> None:
    if record.refresh_task is not None:
        await cancel_and_wait([record.refresh_task])
    for run in record.runs.values():
        run.stop(grace)
    try:
        await asyncio.gather(*record.tasks)
    finally:
        await record.processes.release()


def _has_ended(pod: ReadOnlyTree) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _containers(pod: ReadOnlyTree) -> Iterator[tuple[str, ReadOnlyTree]]:
    """Yield each container of the pod with its field."""
    for field in _FIELDS:
        for container in pod["spec"].get(field) or ():
            yield field, container
