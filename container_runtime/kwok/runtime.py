"""The run-time of simulated containers of which kwok's objects replace logs, commands and ports by those of this machine."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.load import Stats
from mockube.container_runtime.log_stream import follow_log
from mockube.container_runtime.logs import LogSource
from mockube.container_runtime.objects import PodVersions
from mockube.container_runtime.port_connections import connect_port
from mockube.container_runtime.port_probe import PortAnswer, PortProbe
from mockube.container_runtime.process_port import LOOPBACK, ProcessPort
from mockube.container_runtime.runs import ContainerRun, running_container
from mockube.container_runtime.runtime import (
    Attachment,
    Command,
    ExecRequest,
    PortConnection,
    RuntimeProblem,
)
from mockube.container_runtime.simulated.runtime import SimulatedRuntime
from mockube.container_runtime.simulated.terminal import with_terminal
from mockube.container_runtime.state import ContainerKill, ContainerState

from .host_log import HostLog
from .kinds import EntryFinder, KwokKind


class KwokRuntime:
    """A `ContainerRuntime` over simulated containers."""

    def __init__(
        self, simulated: SimulatedRuntime, entries: EntryFinder, pods: PodVersions, clock: Clock
    ) -> None:
        self._simulated = simulated
        self._entries = entries
        self._pods = pods
        self._clock = clock

    def running(self) -> AbstractAsyncContextManager[None]:
        return self._simulated.running()

    def runs(self, pod: ReadOnlyTree, name: str) -> bool:
        return self._simulated.runs(pod, name)

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ContainerState]:
        return self._simulated.states(pod)

    def disk_usage(self, pod: ReadOnlyTree) -> DiskUsage | None:
        return self._simulated.disk_usage(pod)

    def node_disk_use(self, node: str) -> int:
        return self._simulated.node_disk_use(node)

    def node_path_type(self, node: str, path: str) -> str:
        return self._simulated.node_path_type(node, path)

    def node_files(self, node: str, folder: str) -> Mapping[str, bytes] | None:
        return self._simulated.node_files(node, folder)

    def add_node_files(self, node: str, files: Mapping[str, bytes]) -> None:
        self._simulated.add_node_files(node, files)

    def kills(self, pod: ReadOnlyTree) -> Mapping[str, ContainerKill]:
        return self._simulated.kills(pod)

    def container_stats(self, pod: ReadOnlyTree, name: str) -> Stats | None:
        return self._simulated.container_stats(pod, name)

    def may_change(self, pod: ReadOnlyTree) -> bool:
        return self._simulated.may_change(pod)

    def live_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
        return self._simulated.live_handlers(pod, container)

    def start_container(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        self._simulated.start_container(pod, name, restarts)

    def stop_container(self, pod: ReadOnlyTree, name: str, grace: float) -> None:
        self._simulated.stop_container(pod, name, grace)

    def update_pod(self, pod: ReadOnlyTree) -> None:
        self._simulated.update_pod(pod)

    def remove_containers(self, uid: str) -> None:
        self._simulated.remove_containers(uid)

    def remove_pod(self, uid: str) -> None:
        self._simulated.remove_pod(uid)

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
        return await self._simulated.exec_sync(
            pod, name, command, seconds, restarts=restarts, on_unknown=on_unknown
        )

    async def probe_port(
        self, pod: ReadOnlyTree, name: str, request: PortProbe, *, restarts: int | None = None
    ) -> PortAnswer:
        return await self._simulated.probe_port(pod, name, request, restarts=restarts)

    async def exec(self, pod: ReadOnlyTree, name: str, request: ExecRequest) -> Command:
        running_container(pod, name)
        entry = await self._entries.entry(KwokKind.EXEC, pod, name)
        if entry is None:
            return await self._simulated.exec(pod, name, request)
        from mockube.container_runtime.process.streams import run_exec  # noqa: PLC0415 - for few

        from .host_commands import HostCommands  # noqa: PLC0415 - for few

        return partial(run_exec, HostCommands(entry), request)

    @asynccontextmanager
    async def attach(self, pod: ReadOnlyTree, name: str, *, has_terminal: bool) -> AsyncIterator[Attachment]:
        _, run = running_container(pod, name)
        is_recorded = self._simulated.run_of(pod, name) is not None
        log = None if is_recorded else await self._host_log(KwokKind.ATTACH, pod, name, run)
        if log is None:
            async with self._simulated.attach(pod, name, has_terminal=has_terminal) as attachment:
                yield attachment
            return
        log.skip_to_end()
        with follow_log(log, pod, name, run, self._pods, self._clock) as follow:
            yield partial(with_terminal, follow, has_terminal=has_terminal)

    async def logs(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        if (recorded := self._simulated.recorded_log(pod, name, run.restarts)) is not None:
            return recorded
        return await self._host_log(KwokKind.LOGS, pod, name, run) or await self._simulated.logs(
            pod, name, run
        )

    async def port_forward(self, pod: ReadOnlyTree, port: int) -> PortConnection:
        entry = await self._entries.entry(KwokKind.PORT_FORWARD, pod, port)
        if entry is None:
            return await self._simulated.port_forward(pod, port)
        target = entry.get("target")
        if entry.get("command") or not target:
            raise RuntimeProblem("a PortForward with a command is not supported: give it a target")
        host = target.get("address") or LOOPBACK
        return partial(connect_port, ProcessPort(host, target["port"]), self._clock)

    def listener(
        self, pod: ReadOnlyTree, port: int, *, simulated: bool = True, source: str = "127.0.0.1"
    ) -> PortConnection | None:
        return self._simulated.listener(pod, port, simulated=simulated, source=source)

    async def _host_log(
        self, kind: KwokKind, pod: ReadOnlyTree, name: str, run: ContainerRun
    ) -> HostLog | None:
        entry = await self._entries.entry(kind, pod, name)
        if entry is None or not entry.get("logsFile"):
            return None
        return HostLog(Path(entry["logsFile"]), run.started, follow=entry.get("follow") is not False)
