"""The run-time of simulated containers.

Most commands are interpreted in advance (`predictions`), so that a container costs nothing while it runs. Those that read input from
clients, use the network or files that others write, may fill a small disk, or end as the values of API objects demand run in real
time; their ends are recorded. A command of a client joins the other containers of its pod: from then on they go on in real time.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import takewhile
from math import inf
from posixpath import normpath
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.quantity import number_or
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, run_until, start, timeout
from mockube.container_runtime.api_server import ApiServer
from mockube.container_runtime.behavior import (
    CONTINUES,
    KILLED,
    MAX_LOG_MESSAGE,
    NOT_FOUND,
    NOT_SIMULATED,
    WAITS,
    CommandResult,
    end_without_program,
    falls_back_to_log,
    message_path,
    not_simulated,
)
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.disk_usage import DiskUsage, exceeded_limit, has_disk_limits
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.kubelets import NO_KUBELETS, Kubelets
from mockube.container_runtime.load import OOM_KILLED, Stats
from mockube.container_runtime.log_stream import follow_log
from mockube.container_runtime.logs import LogSource
from mockube.container_runtime.node_machine import NO_SERVICES, NodeServices
from mockube.container_runtime.objects import (
    REFRESH_SECONDS,
    ObjectReader,
    ObjectsUnavailable,
    PodVersions,
    retry_until_available,
)
from mockube.container_runtime.pod_script import name_unknown_of, script_of
from mockube.container_runtime.port_probe import REFUSED, USER_AGENT, PortAnswer, PortProbe
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.records import Ending, Records
from mockube.container_runtime.runs import (
    ContainerNotFound,
    ContainerRun,
    container_spec,
    running_container,
    running_seconds,
)
from mockube.container_runtime.runtime import (
    Attachment,
    Command,
    ExecRequest,
    PortConnection,
    RuntimeEvents,
    RuntimeProblem,
)
from mockube.container_runtime.simulation_values import ASSUME, FAIL, WAIT
from mockube.container_runtime.start_errors import NOT_STARTED, START_ERROR, StartError, message_of_start
from mockube.container_runtime.state import NEVER_SIMULATED, ContainerKill, ContainerState
from mockube.container_runtime.streams import ClientConnection, Streams
from mockube.container_runtime.volume_contents import NOTHING_KEPT, VolumeContents
from mockube.network.view import SyncedView

from . import predictions
from .client_pace import ClientPace
from .configured_containers import ConfiguredContainers
from .connections.access_logs import AccessLogs
from .connections.agnhost_responses import ContainerAccess
from .connections.pod_connections import PodConnections
from .connections.port_answers import CLIENT_PORT, OpenPort, ReceivedRequest
from .connections.port_responses import PortResponses
from .connections.ports import serve_port
from .connections.process_connections import ProcessConnections
from .container_loads import ContainerLoads
from .execution import InterruptiblePause, VolumeCharge, execute, in_container, run_to_end
from .files.absent_objects import with_absent_objects
from .files.cgroup_files import PATH as CGROUP
from .files.mounts import file_system_of, shared_mounts, shared_volumes
from .files.writable import mounts_of
from .handler_commands import HandlerRun, run_handler_command
from .interactive import InteractiveRun
from .live_containers import LiveContainers
from .machines import SimulatedMachines
from .pod_files import PodFiles
from .programs import commands
from .programs.contexts import changing_mounts, concurrent_containers, unknown_places
from .programs.live_commands import handler_commands, live_commands
from .programs.log_replay import LogReplay, replay_memory
from .programs.mount_conflicts import mount_problem
from .programs.object_values import has_object_files
from .programs.other_processes import other_processes
from .programs.program import (
    OUTSIDE,
    configured_kind,
    containers_in_namespace,
    default_reaction,
    is_first_process,
    note_unknown_places,
    termination_message,
)
from .run_log import JoinableLog, RunLogReader, lost_log
from .servers.live_probes import (
    answer_from_files,
    fields_of_actions,
    fields_of_port_probes,
    live_port_probes,
)
from .servers.port_conflicts import failed_bind, occupied_ports, process_without_port
from .servers.probe_answers import handled_server_on, server_of_files
from .servers.running_servers import RunningServers
from .shell.invocation import run_command
from .shell.memory import Memory, OutOfMemory
from .shell.process import Host, OtherProcess, Program, Run, RunningProcess, UnknownProgram
from .shell.programs.all_programs import PROGRAMS
from .shell.programs.installed_programs import LayeredPrograms
from .shell.scheduling import KILL
from .shell.signals import SIGNALS
from .shell.syntax import ShellSyntaxError
from .shell.vfs.file_entry import FileEntry
from .shell.vfs.file_system import FileSystem
from .terminal import with_terminal

LOG: Final = logging.getLogger(__name__)

_MAX_UNKNOWN_PROGRAMS: Final = 50
"""The number of programs of a pod that are reported as not simulated."""
_RETRY_SECONDS: Final = 5.0
"""The delay after which the objects of a container are requested again."""
_POLL_SECONDS: Final = 0.1
_PROCESSES_SECONDS: Final = 1.0
"""The time after which a command that reads files of other processes sees those that have started."""
_START_SECONDS: Final = 5.0
"""How long others wait for a server that starts: those that a kubelet starts after it, and probes, whose first attempt is later on a node."""
_STOPPING: Final = frozenset(SIGNALS[name] for name in ("INT", "QUIT", "TERM"))
"""The signals at which servers end."""
_NO_STATES: Final[Mapping[str, ContainerState]] = {}


class SimulationContext(Struct, frozen=True, kw_only=True):
    """What simulated containers have from the kubelet."""

    images: ImageTable
    clock: Clock
    events: RuntimeEvents
    objects: ObjectReader
    pods: PodVersions
    view: SyncedView
    """The objects of the cluster that the network reads."""
    api_server: ApiServer
    process_port: Callable[[ReadOnlyTree, int], ProcessPort | None] = lambda *_: None
    """Returns where a port of a pod is reached whose container runs as a process."""
    is_process: Callable[[ReadOnlyTree, str], bool] | None = None
    """Returns whether a container of a pod runs as a process; None if none does."""
    runs_without_program: Callable[[ReadOnlyTree, str], bool] = lambda *_: True
    """Returns whether a container of a pod runs on if its program is not simulated."""
    contents: VolumeContents = NOTHING_KEPT
    """What keeps the contents of volumes."""
    nodes: NodeServices = NO_SERVICES
    """What the kubelets know of their nodes."""
    kubelets: Kubelets = NO_KUBELETS
    """How pods reach the kubelets."""


class _LoadedReferences(Struct, frozen=True):
    """The objects of a container's run, for the commands of its probes and hooks."""

    restarts: int | None
    references: References
    at: float


class _Sandbox(Ending, Struct):
    """What the run-time keeps of a pod; each table has the names of its containers."""

    runs: dict[str, list[InteractiveRun]] = field(default_factory=dict)
    """The latest two runs."""
    ends: dict[str, set[asyncio.Event]] = field(default_factory=dict)
    """What ends the commands of clients that run."""
    handler_references: dict[str, _LoadedReferences] = field(default_factory=dict)
    """The objects for the commands of probes and hooks."""
    unknown_programs: set[tuple[str, str]] = field(default_factory=set)
    """The containers with their programs that are not simulated."""
    joining: asyncio.Lock = field(default_factory=asyncio.Lock)

    def end_commands(self, name: str) -> None:
        """End the commands of clients in a container that ends: their processes do not outlive the first one of their namespace."""
        for end in self.ends.pop(name, ()):
            end.set()

    def end(self) -> None:
        for name in [*self.ends]:
            self.end_commands(name)
        for runs in self.runs.values():
            for run in runs:
                run.kill()


_NOTHING: Final = _Sandbox()


class _LogStreams:
    """The streams of a program whose output is a part of its container's log."""

    stdin = None

    def __init__(self, write: Callable[[Sequence[tuple[int, str]]], None]) -> None:
        self._write = write

    async def write(self, stream: int, data: bytes) -> None:
        self._write([(stream, line) for line in data.decode("utf-8", "surrogateescape").splitlines()])


class SimulatedRuntime:
    """A `ContainerRuntime` whose containers are simulated."""

    def __init__(self, context: SimulationContext) -> None:
        self._images = images = context.images
        self._clock = context.clock
        self._events = context.events
        self._objects = context.objects
        self._pods = context.pods
        self._view = context.view
        self._context = context
        self._runs_without_program = context.runs_without_program
        self._records = records = Records()
        self._live = LiveContainers(images, records, context.is_process)
        self.files = PodFiles(
            records,
            images,
            context.objects,
            self._live,
            context.clock,
            context.contents,
            context.nodes,
            on_scarce_disk=context.events.report_scarce_disk,
        )
        self.loads = ContainerLoads(
            images, records, context.clock, self._live.command, context.events.report_change
        )
        self._access_logs = AccessLogs(records, context.clock, self._on_request_logged)
        self._servers = RunningServers(records)
        self._responses = PortResponses(
            records,
            images,
            self.files,
            context.view,
            self.loads.serve_request,
            self._access_logs,
            context.clock,
            self._servers,
        )
        self._network = PodConnections(
            records,
            context.view,
            context.api_server,
            context.pods,
            self._responses,
            context.process_port,
            context.clock,
            nodes=context.nodes,
            kubelets=context.kubelets,
        )
        self.machines = SimulatedMachines(
            images, self.files, self._network, context.nodes, context.clock, self._kill_computed
        )
        self._responses.metrics = self._network.metrics_of_names
        self._responses.configured.network = self._network.caller
        self._responses.configured.write_log = self._write_log
        self._responses.databases.network = self._network.caller
        self._configured = ConfiguredContainers(
            images, self._servers, self._responses, self._write_log, self._note_unknown
        )
        self._responses.agnhost.access = ContainerAccess(
            network=self._network.caller,
            write_log=self._write_log,
            run_command=self._run_for_server,
            end=self._end_container,
        )
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await cancel_and_wait([*self._tasks])

    def connections_of_processes(self, has_address: Callable[[str], bool], server: str) -> ProcessConnections:
        """Return what decides on the connections of processes with networks of their own, at addresses that these have."""
        context = self._context
        return ProcessConnections(
            self._network,
            context.view,
            context.pods,
            self._responses,
            context.process_port,
            has_address,
            server,
            context.clock,
        )

    def runs(self, pod: ReadOnlyTree, name: str) -> bool:
        return container_spec(pod, name) is not None

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ContainerState]:
        if not self._live.may_run(pod):
            return _NO_STATES
        states: dict[str, ContainerState] = {}
        for container in every_container(pod["spec"]):
            if self._live.command(pod, container):
                run = self.run_of(pod, container["name"])
                states[container["name"]] = NEVER_SIMULATED if run is None else run.state
        return states

    def disk_usage(self, pod: ReadOnlyTree) -> DiskUsage | None:
        """Return what is in files, and in the logs of runs in real time and of requests."""
        uid = meta.uid(pod)
        usage, logs = self.files.disk_usage(uid), self._log_sizes(uid)
        if usage is None and not any(logs.values()):
            return None
        written = {} if usage is None else usage.containers
        containers = {name: written.get(name, 0) + logs.get(name, 0) for name in {*written, *logs}}
        return DiskUsage(containers, {} if usage is None else usage.volumes)

    def _log_sizes(self, uid: str) -> dict[str, int]:
        sandbox = self._records.find(uid, _Sandbox) or _NOTHING
        sizes = {name: sum(run.log.disk_usage for run in runs) for name, runs in sandbox.runs.items()}
        for name, size in self._access_logs.disk_usage(uid):
            sizes[name] = sizes.get(name, 0) + size
        return sizes

    def _on_request_logged(self, pod: ReadOnlyTree) -> None:
        self._events.report_output(pod)
        self._report_disk_usage(pod)

    def node_disk_use(self, node: str) -> int:
        return self.files.disks.used(node)

    def node_path_type(self, node: str, path: str) -> str:
        return self.files.node_path_type(node, path)

    def node_files(self, node: str, folder: str) -> Mapping[str, bytes] | None:
        return self.files.node_files(node, folder)

    def add_node_files(self, node: str, files: Mapping[str, bytes]) -> None:
        self.files.add_node_files(node, files)

    def kills(self, pod: ReadOnlyTree) -> Mapping[str, ContainerKill]:
        return self.loads.kills(pod)

    def container_stats(self, pod: ReadOnlyTree, name: str) -> Stats | None:
        container = container_spec(pod, name)
        if container is None:
            return None
        return self.loads.stats(pod, container)

    def may_change(self, pod: ReadOnlyTree) -> bool:
        return self._live.may_run(pod)

    def live_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
        is_shared = self._live.shares_with_process(pod, container)

        def is_changed(name: str) -> bool:
            return is_shared or self.files.is_changed(meta.uid(pod), name)

        is_live = is_changed(container["name"]) or bool(self._live.command(pod, container))
        script = script_of(meta.annotations(pod))
        outcome_of = partial(predictions.outcome_of_handler, self._images, pod, container, script)
        handlers = live_commands(handler_commands(container), outcome_of, is_live=is_live)
        is_configured = any(
            self._configured.is_configured(pod, other) for other in concurrent_containers(pod)
        )
        may_call_server = any(
            other.get("command") and self._live.command(pod, other) for other in concurrent_containers(pod)
        )
        if is_configured or may_call_server or self.loads.is_slow(pod):
            port_probes = [*fields_of_port_probes(container)]
        else:
            actions = fields_of_actions(self._images, pod, container)
            port_probes = [*live_port_probes(self._images, pod, container, is_changed), *actions]
        return {**handlers, **dict.fromkeys(port_probes, ())} if port_probes else handlers

    # --- starting and stopping

    def start_container(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        run = self.run_of(pod, name)
        if name not in self.states(pod) or (run is not None and run.state.restarts >= restarts):
            return
        container = container_spec(pod, name)
        assert container is not None
        new_run = InteractiveRun(container, restarts, self._clock, partial(self._events.report_output, pod))
        if commands.server_command(self._images, pod, container):
            self._configured.prepare(pod, container, restarts)
        is_interactive = bool(commands.interactive_command(self._images, pod, container))
        self._begin(pod, new_run, self._execute if is_interactive else self._execute_main)

    def _begin(
        self,
        pod: ReadOnlyTree,
        run: InteractiveRun,
        execute: Callable[[ReadOnlyTree, InteractiveRun], Coroutine[Any, Any, None]],
    ) -> None:
        """Begin a run in real time, or what is left of one."""
        name = run.container["name"]
        runs = self._ensure_sandbox(pod).runs.setdefault(name, [])
        runs[:] = [*runs[-1:], run]
        run.task = task = start(
            f"container {name} of {meta.namespaced_name(pod)}", self._run(pod, run, execute)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop_container(self, pod: ReadOnlyTree, name: str, grace: float) -> None:
        run = self.run_of(pod, name)
        if run is not None:
            run.terminate()
            run.kill_by(after(self._clock.now(), span_of(grace)))
        else:
            self._sandbox_of(pod).end_commands(name)

    def update_pod(self, pod: ReadOnlyTree) -> None:
        """Shorten the time of the runs that are being stopped, if a later deletion of the pod has a shorter grace period."""
        deadline = meta.deletion_timestamp(pod)
        if deadline is None:
            return
        for runs in self._sandbox_of(pod).runs.values():
            if runs[-1].state.is_stopping:
                runs[-1].kill_by(deadline)

    def remove_containers(self, uid: str) -> None:
        self.files.drop_files(uid)

    def remove_pod(self, uid: str) -> None:
        self._records.remove(uid)
        self._context.contents.remove_pod(uid)

    def _sandbox_of(self, pod: ReadOnlyTree) -> _Sandbox:
        """Return what is kept of a pod, to read it."""
        return self._records.find(meta.uid(pod), _Sandbox) or _NOTHING

    def _ensure_sandbox(self, pod: ReadOnlyTree) -> _Sandbox:
        """Return what is kept of a pod, to add to it."""
        return self._records.ensure(meta.uid(pod), _Sandbox)

    def run_of(self, pod: ReadOnlyTree, name: str) -> InteractiveRun | None:
        """Return the latest run in real time of a container; None if there is none."""
        runs = self._sandbox_of(pod).runs.get(name)
        return runs[-1] if runs else None

    def recorded_log(self, pod: ReadOnlyTree, name: str, restarts: int) -> RunLogReader | None:
        """Return the log of a run in real time; None if it is not in memory."""
        runs = self._sandbox_of(pod).runs.get(name, ())
        return next((RunLogReader(run.log) for run in runs if run.state.restarts == restarts), None)

    # --- commands of clients, and of probes and hooks

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
        container = container_spec(pod, name)
        assert container is not None
        references = await self._handler_references_of(pod, container, restarts)
        files = await self.files.file_system(pod, container, restarts=restarts, references=references)
        handler_run = HandlerRun(
            pod=pod,
            container=container,
            references=references,
            images=self._images,
            files=files,
            unknown_folders=self._unknown_folders(pod, container),
            fails_unknown=self._images.unknown_programs.of(pod) != ASSUME,
            on_unknown=on_unknown,
            open_port=partial(self._responses.open_port, pod),
            has_configured_server=bool(self._configured.started(pod)),
            processes=partial(self._processes, pod, container),
        )
        network = self._network.caller(pod)
        return await run_handler_command(handler_run, list(command), self._clock, network, limit=seconds)

    async def probe_port(
        self, pod: ReadOnlyTree, name: str, request: PortProbe, *, restarts: int | None = None
    ) -> PortAnswer:
        answer = await self._probe_port(pod, name, request, restarts)
        if request.path is None or not answer.is_open or not self.loads.is_slow(pod):
            return answer
        latest = self._pods.latest(pod) or pod
        opened = self._responses.open_port(latest, request.port)
        if opened is None or opened.container is None:
            return answer
        return replace(answer, seconds=self.loads.serve_probe(latest, opened.container))

    async def _probe_port(
        self, pod: ReadOnlyTree, name: str, request: PortProbe, restarts: int | None
    ) -> PortAnswer:
        await self._wait_for_servers(pod, concurrent_containers(pod))
        if started := self._configured.started(pod):
            return await self._configured.probe(self._pods.latest(pod) or pod, request, started)
        if (
            request.path is not None
            and handled_server_on(self._images, pod, request.port, self._servers) is not None
        ):
            return await self._probe_handled(pod, request)
        served = server_of_files(self._images, pod, request.port, self._servers)
        if self._responses.is_closed(self._pods.latest(pod) or pod, request.port):
            return REFUSED
        if served is None:
            seconds = running_seconds(pod, name, self._clock.now()) or 0.0
            script = script_of(meta.annotations(pod))
            return predictions.port_answer(
                self._images, pod, request, script, seconds=seconds, servers=self._servers
            )
        container, behavior = served
        seconds = running_seconds(pod, container["name"], self._clock.now()) or 0.0
        run = restarts if container["name"] == name else None
        references = await self._handler_references_of(pod, container, run)
        files = await self.files.file_system(pod, container, restarts=run, references=references)
        others = self._live.without_processes(pod)
        return answer_from_files(
            self._images, others, container, behavior, request, seconds, files, self._servers
        )

    async def _probe_handled(self, pod: ReadOnlyTree, request: PortProbe) -> PortAnswer:
        """Return the answer of a server whose program has rules of its own."""
        latest = self._pods.latest(pod) or pod
        opened = self._responses.open_port(latest, request.port)
        if opened is None or request.path is None:
            return REFUSED
        answer = PortAnswer(speaks=opened.speaks, uses_tls=opened.uses_tls)
        return await self._ask(latest, request, request.path, opened, answer)

    async def _ask(
        self, pod: ReadOnlyTree, request: PortProbe, path: str, opened: OpenPort, answer: PortAnswer
    ) -> PortAnswer:
        """Send a kubelet's request to a server, and complete the answer with its response."""
        address = (pod.get("status") or {}).get("podIP") or ""
        headers = {"host": f"{address}:{request.port}", "user-agent": USER_AGENT, "accept": "*/*"}
        client = (pod.get("status") or {}).get("hostIP") or address
        received = ReceivedRequest(method="GET", path=path, headers=headers, client=f"{client}:{CLIENT_PORT}")
        response = await self._responses.respond(pod, request.port, opened, received)
        body = response.body.decode("utf-8", "replace")
        return replace(answer, status=response.status, location=response.location, body=body)

    async def exec(self, pod: ReadOnlyTree, name: str, request: ExecRequest) -> Command:
        container, run = running_container(pod, name)
        await self._join_all(pod)
        if self.files.note_command(meta.uid(pod), name):
            self._events.report_change(pod)
        references = await self._objects.load_shared(pod, container)
        files = await self.files.file_system(pod, container, references=references)
        self._show_memory(files, pod, name)
        host = commands.host_of(self._images, pod, container, references, run.started, files=files)
        host.now, host.has_terminal, host.is_strict = self._clock.now, request.has_terminal, False
        host.enter_node = partial(self.machines.machine_for, pod, container)
        environment = environment_of(pod, container, references)
        host.join(partial(self._processes, pod, container, environment))
        if request.has_terminal:
            environment.setdefault("TERM", "xterm")
        host.memory = self._memory(pod, container, references)
        host.find_server = partial(self._configured.of_client, pod, container, run.restarts)
        execution = run_command(host, request.command, environment, container.get("workingDir") or "/")
        execution = in_container(execution, charge=self._volume_charge(pod, name, host))
        pause = InterruptiblePause(self._clock, host)
        work = partial(self._execute_for_client, pod, name, execution, pause)
        return partial(with_terminal, work, has_terminal=request.has_terminal, on_interrupt=pause.interrupt)

    async def _join_all(self, pod: ReadOnlyTree) -> None:
        """Let the containers of a pod go on in real time: a client's command may change what they do."""
        async with self._ensure_sandbox(pod).joining:
            for container in every_container(pod["spec"]):
                if self._live.can_join(pod, container):
                    await self._join(pod, container)

    async def _join(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> None:
        name = container["name"]
        references = await self._objects.load_shared(pod, container)
        replayed = await self.files.take_over(pod, container, references)
        try:
            _, present = running_container(self._pods.latest(pod) or pod, name)
        except ContainerNotFound:
            return
        if replayed is None:
            return
        run = InteractiveRun(
            container, present.restarts, self._clock, partial(self._events.report_output, pod)
        )
        run.state = replace(run.state, started=present.started, is_ready=True, passed_startup=True)
        for line in replayed.log.lines:
            run.log.append(line)
        now = self._clock.now()
        for stream, text in replayed.replay.unfinished_lines():
            run.log.write(now, stream, text)
        self._live.join(pod, name)  # before its memory counts as that of a command in real time
        memory = self._memory(pod, container, references)
        memory.take_over(replayed.host.memory)
        replayed.host.memory = memory
        rest = replayed.replay.continue_from(now)

        async def go_on(pod: ReadOnlyTree, run: InteractiveRun) -> None:
            await self._execute_to_end(pod, run, replayed.host, rest)

        self._begin(pod, run, go_on)
        self._events.report_output(pod)
        await run.has_paused.wait()  # From now on, signals reach it.

    async def _execute_for_client(
        self, pod: ReadOnlyTree, name: str, execution: Run, pause: InterruptiblePause, streams: Streams
    ) -> int:
        network = self._network.caller(pod)
        work = execute(
            execution,
            f"{meta.uid(pod)}/{name}",
            self._pace(pod, name),
            network,
            streams,
            pause=pause,
            has_program=partial(predictions.has_program, self._images, container_spec(pod, name) or {}),
        )
        end = asyncio.Event()
        ends = self._ensure_sandbox(pod).ends.setdefault(name, set())
        ends.add(end)
        try:
            code = await run_until(end.wait(), work)
        except OutOfMemory:
            self._kill_container(pod, name)
            return KILLED
        finally:
            ends.discard(end)
            self._report_disk_usage(pod)
        return KILLED if code is None else code

    def _volume_charge(self, pod: ReadOnlyTree, name: str, host: Host) -> VolumeCharge | None:
        """Return how what a command writes into volumes in memory counts as memory of its container; None without such volumes."""
        volumes = [
            mount.files for mount in host.files.mounts.by_path.values() if mount.files.inodes.in_memory
        ]
        if not volumes:
            return None
        return VolumeCharge(volumes, partial(self.loads.charge_volumes, pod, name, host.memory))

    def _report_disk_usage(self, pod: ReadOnlyTree) -> None:
        """Report a pod that uses more of its node's disk than it may."""
        usage = self.disk_usage(pod) if has_disk_limits(pod) else None
        if usage is not None and exceeded_limit(pod, usage):
            self._events.report_change(pod)

    # --- output and ports

    @asynccontextmanager
    async def attach(self, pod: ReadOnlyTree, name: str, *, has_terminal: bool) -> AsyncIterator[Attachment]:
        _, run = running_container(pod, name)
        interactive = self.run_of(pod, name)
        if interactive is not None:
            with interactive.listen() as output:
                work = partial(interactive.attach, output)
                yield partial(
                    with_terminal, work, has_terminal=has_terminal, on_interrupt=interactive.interrupt
                )
            return
        with follow_log(await self.logs(pod, name, run), pod, name, run, self._pods, self._clock) as follow:
            yield partial(with_terminal, follow, has_terminal=has_terminal)

    async def logs(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        recorded = partial(self.recorded_log, pod, name, run.restarts)
        if (present := recorded()) is not None:
            return self._access_logs.with_requests(present, pod, name, run.restarts)
        container = container_spec(pod, name)
        assert container is not None
        if commands.live_command(self._images, pod, container) or (
            commands.interpreted_command(self._images, pod, container)
            and self._live.may_be_changed(pod, container)
        ):
            return lost_log(run)
        references = await self._objects.load_shared(pod, container)
        host = commands.host_of(self._images, pod, container, references, run.started)
        host.memory = replay_memory(pod, container, host.memory_bytes)
        volumes = await self.files.volumes_after_init_containers(pod, container)
        mounts = mounts_of(shared_mounts(pod, container, references), lambda _: volumes)
        mounts |= dict.fromkeys(changing_mounts(self._images, pod, container), OUTSIDE)
        host.files = file_system_of(self._images, pod, container, references, mounts, is_partial=True)
        script = script_of(meta.annotations(pod))
        note_unknown_places(host.files, unknown_places(self._images, pod, container, script))
        bind = failed_bind(self._images, pod, container, self._other_host_pods(pod))
        process = (
            commands.main_process(self._images, pod, container, references, host)
            if bind is None
            else process_without_port(bind)
        )
        replay = LogReplay(process, host, run.started)
        return self._access_logs.with_requests(JoinableLog(replay, recorded), pod, name, run.restarts)

    async def port_forward(self, pod: ReadOnlyTree, port: int) -> PortConnection:
        connect = self.listener(pod, port)
        if connect is None:
            raise RuntimeProblem(
                f"error forwarding port {port} to pod {meta.uid(pod)}, uid : failed to connect to localhost:{port} "
                f"inside the simulated pod: dial tcp4 127.0.0.1:{port}: connect: connection refused"
            )
        return connect

    def listener(
        self, pod: ReadOnlyTree, port: int, *, simulated: bool = True, source: str = "127.0.0.1"
    ) -> PortConnection | None:
        if not simulated or self._responses.open_port(pod, port) is None:
            return None

        async def connect(client: ClientConnection) -> str:
            await serve_port(pod, port, self._responses, client, source)
            return ""

        return connect

    # --- commands in real time

    async def _run(
        self,
        pod: ReadOnlyTree,
        run: InteractiveRun,
        execute: Callable[[ReadOnlyTree, InteractiveRun], Coroutine[Any, Any, None]],
    ) -> None:
        run.begin(partial(self._events.report_change, pod))
        name = f"container {run.container['name']} of pod {meta.namespaced_name(pod)}"
        try:
            await execute(pod, run)
        except asyncio.CancelledError:
            if not run.state.is_stopping:
                raise
            run.end_stopped()
        except OutOfMemory:
            run.end(KILLED, OOM_KILLED)
        except StartError as error:
            run.end(NOT_STARTED, START_ERROR, message_of_start(error))
        except (UnknownProgram, ShellSyntaxError, RecursionError, ObjectsUnavailable) as error:
            LOG.warning("%s failed: %s", name, error)
            run.end(NOT_STARTED, START_ERROR, str(error))
        except Exception as error:
            LOG.exception("%s failed", name)
            run.end(NOT_STARTED, "ContainerCannotRun", f"{type(error).__name__}: {error}")
        finally:
            self._servers.end(meta.uid(pod), run.container["name"], run.state.restarts)
            self._sandbox_of(pod).end_commands(run.container["name"])
        self.loads.end_commands(pod, run.container["name"])
        self._events.report_change(pod)

    async def _execute(self, pod: ReadOnlyTree, run: InteractiveRun) -> None:
        container = run.container
        references, files = await self._load_once(pod, run)
        host = commands.host_of(self._images, pod, container, references, self._clock.now(), files=files)
        host.now, host.is_strict = run.now, False
        host.find_server = partial(self._configured.of_run, pod, container, run.state.restarts)
        host.enter_node = partial(self.machines.machine_for, pod, container)
        if self._images.unknown_programs.of(pod) != FAIL:
            host.on_unknown = lambda program: self._note_unknown(pod, container["name"], program, CONTINUES)
        environment: dict[str, Any] = dict(environment_of(pod, container, references))
        argv = expand_references(commands.interactive_command(self._images, pod, container), environment)
        host.memory = self._memory(pod, container, references)
        self.loads.forget_volumes(pod, container["name"])
        run.send_interrupt = lambda: host.interrupt()  # noqa: PLW0108 - the command sets it when it starts
        run.pause()  # for its input
        execution = run_command(host, argv, environment, container.get("workingDir") or "/")
        await self._execute_to_end(pod, run, host, execution)

    async def _execute_main(self, pod: ReadOnlyTree, run: InteractiveRun) -> None:
        """Run a container's command from its start."""
        container = run.container
        earlier = takewhile(lambda other: other["name"] != container["name"], pod["spec"]["containers"])
        await self._wait_for_servers(pod, earlier)
        references, files = await self._load(pod, run)
        problem = mount_problem(self._images, pod, container, references.config_map, references.secret)
        if problem:
            raise StartError(problem)
        await self._wait_for_earlier(pod, container)
        files = with_absent_objects(files, pod, container, references)
        host = commands.host_of(self._images, pod, container, references, self._clock.now(), files=files)
        host.memory = self._memory(pod, container, references)
        host.occupied_ports = occupied_ports(self._images, pod, container, self._other_host_pods(pod))
        host.find_server = partial(self._configured.of_run, pod, container, run.state.restarts)
        self.loads.forget_volumes(pod, container["name"])
        await self._execute_to_end(
            pod, run, host, commands.main_command(self._images, pod, container, references, host)
        )

    def _other_host_pods(self, pod: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
        """Return the other pods in the network of the node, if the pod is one of them."""
        if not pod["spec"].get("hostNetwork"):
            return ()
        pods = self._view.pods_on_host(pod["spec"].get("nodeName") or "")
        return [other for other in pods if meta.uid(other) != meta.uid(pod)]

    async def _wait_for_earlier(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> None:
        """Wait until the containers that a kubelet starts earlier have done what they do first, if the container shares files with them."""
        shared = shared_volumes(pod, container)
        for earlier in every_container(pod["spec"]) if shared else ():
            if earlier["name"] == container["name"]:
                return
            run = self.run_of(pod, earlier["name"])
            if run is not None and shared & shared_volumes(pod, earlier):
                await run.has_paused.wait()

    async def _wait_for_servers(self, pod: ReadOnlyTree, containers: Iterable[ReadOnlyTree]) -> None:
        """Wait for servers that are just starting, no longer than programs take that do nothing else first."""
        for container in containers:
            kind = configured_kind(self._images, container)
            if kind is None or not self._live.command(pod, container):
                continue
            with suppress(TimeoutError):
                async with timeout(self._clock, _START_SECONDS):
                    while (run := self.run_of(pod, container["name"])) is None:
                        await self._clock.sleep(_POLL_SECONDS)  # as after a restart of the manager
                    await run.has_paused.wait()

    async def _execute_to_end(
        self, pod: ReadOnlyTree, run: InteractiveRun, host: Host, execution: Run
    ) -> None:
        """Execute a container's command. One that is not simulated ends, or runs on, as it does in advance."""
        container, files = run.container, host.files
        self._servers.note_calls(meta.uid(pod), container["name"], run.state.restarts, host.calls)
        host.now = run.now
        host.enter_node = partial(self.machines.machine_for, pod, container)
        execution = in_container(
            execution,
            files,
            charge=self._volume_charge(pod, container["name"], host),
            before_sleep=partial(self._report_disk_usage, pod) if has_disk_limits(pod) else None,
        )
        network = self._network.caller(pod, partial(self._note_unknown, pod, container["name"]))
        network = run.pausing(network, partial(self._servers.is_starting, meta.uid(pod), container["name"]))
        self._prepare_signals(pod, run, self._live.command(pod, container), host)
        assumption = ""
        try:
            code = await run_to_end(
                execution,
                run,
                self._pace(pod, container["name"]),
                network,
                after_sleep=self._refresher(pod, run),
                sleep=run.sleep,
                on_answer=run.catch_up,
                on_work=run.show_work,
                wake=run.wake,
            )
        except (UnknownProgram, ShellSyntaxError, RecursionError) as error:
            host.note_end_at(str(error) if isinstance(error, UnknownProgram) else "its script")
            await run.write(1, commands.not_simulated_line(pod, container, error))
            policy = self._images.unknown_programs.of(pod)
            code, waits = NOT_FOUND if policy == FAIL else 0, policy == WAIT
            runs_on = policy != FAIL and (waits or self._runs_without_program(pod, container["name"]))
            program = str(error) if isinstance(error, UnknownProgram) else "the script"
            end = WAITS if waits else end_without_program(None if runs_on else code)
            self._note_unknown(pod, container["name"], program, end)
            assumption = not_simulated(container, name_unknown_of(pod, container, program), end)
            if runs_on:
                run.stop_code = 0
                run.pause()  # It runs, also if it has not done anything else.
                if waits:
                    run.wait_for_program(assumption)
                await self._clock.sleep(inf)
        self._report_disk_usage(pod)
        if assumption:
            run.end(code, reason=NOT_SIMULATED, message=assumption)
            return
        message = termination_message(files, message_path(container))
        if not message and code and falls_back_to_log(container):
            message = run.log.tail(MAX_LOG_MESSAGE)
        run.end(code, message=message)

    def _pace(self, pod: ReadOnlyTree, name: str) -> ClientPace:
        return ClientPace(self._clock, self.loads.cpu_of(pod, name))

    def _memory(self, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> Memory:
        """Return the memory of a command that runs in real time: up to the limit of its container, or of its node."""
        return self.loads.memory_for(pod, container, number_or(references.allocatable.get("memory"), inf))

    def _show_memory(self, files: FileSystem, pod: ReadOnlyTree, name: str) -> None:
        """Write what a container uses into the file of its cgroup."""
        stats = self.container_stats(pod, name)
        size = 0 if stats is None else round(stats.memory)
        files.inodes.put(f"{CGROUP}/memory.current", FileEntry(data=f"{size}\n".encode(), read_only=True))

    def _kill_container(self, pod: ReadOnlyTree, name: str) -> None:
        """End a container in which a command has used more memory than there is."""
        run = self.run_of(pod, name)
        if run is not None:
            run.kill(OOM_KILLED)
        else:
            self._sandbox_of(pod).end_commands(name)
            self.loads.kill(self._pods.latest(pod) or pod, name)
            self._events.report_change(pod)

    def _kill_computed(self, pod: ReadOnlyTree, name: str) -> None:
        """Kill the run of a container that is not one in real time."""
        if self.run_of(pod, name) is None:
            self.loads.kill(self._pods.latest(pod) or pod, name, KILLED, "")
            self._events.report_change(pod)

    async def _run_for_server(
        self, pod: ReadOnlyTree, name: str, argv: Sequence[str], seconds: float
    ) -> CommandResult | None:
        """Run a command that the server of a container starts."""

        def note_unknown(program: str) -> None:
            self._note_unknown(pod, name, program, "the server says so to its client")

        return await self.exec_sync(pod, name, argv, seconds, on_unknown=note_unknown)

    def _end_container(self, pod: ReadOnlyTree, name: str, code: int) -> None:
        """End the first process of a container, which exits by itself."""
        run = self.run_of(pod, name)
        if run is not None and run.state.exit is None:
            run.exit(code)
        else:
            self.loads.kill(self._pods.latest(pod) or pod, name, code, "")
            self._events.report_change(pod)

    def _processes(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        environment: Mapping[str, str],
        *,
        is_main: bool = False,
    ) -> tuple[OtherProcess, ...]:
        """Return what runs in a container besides a command that is executed in it, or its own command (`is_main`)."""

        def listed(name: str) -> Sequence[RunningProcess] | None:
            run = self.run_of(pod, name)
            return None if run is None else run.processes()

        latest = self._pods.latest(pod) or pod
        send_signal = partial(self._send_signal, latest)
        now = self._clock.now()
        return other_processes(
            self._images, latest, container, environment, now, send_signal, listed, is_main=is_main
        )

    def _send_signal(self, pod: ReadOnlyTree, name: str, number: int) -> None:
        """Send a signal of a client's command to the first process of a container."""
        container = container_spec(pod, name)
        assert container is not None
        run = self.run_of(pod, name)
        if number == KILL and is_first_process(pod, container):
            return  # The kernel protects the first process of a namespace from those in it.
        if number != KILL and self._signal_server(pod, container, run, number):
            return
        if run is not None:
            run.kill() if number == KILL else run.signal(number)
        elif number == KILL or (
            number in _STOPPING and not predictions.ignores_term(self._images, container)
        ):
            self.loads.kill(self._pods.latest(pod) or pod, name, KILLED if number == KILL else 0, "")
            self._events.report_change(pod)

    def _signal_server(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, run: InteractiveRun | None, number: int
    ) -> bool:
        """Let the first process of a container handle a signal, if it is a server with a configuration; return whether it is."""
        kind = configured_kind(self._images, container)
        processes = () if run is None else run.processes()
        argv = processes[0].name if processes else () if kind is None else kind.command
        if kind is None or not kind.has(argv):
            return False
        name = container["name"]
        if number in _STOPPING:
            self._end_container(pod, name, 0)
        elif number in kind.reload_signals and kind.reload is not None:
            self._start_reload(pod, container, argv, kind.reload)
        return True

    def _start_reload(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, argv: Sequence[str], program: Program
    ) -> None:
        work = self._reload(pod, container, argv, program)
        task = start(f"the reload of container {container['name']} of {meta.namespaced_name(pod)}", work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, argv: Sequence[str], program: Program
    ) -> None:
        """Let the server of a container read its configuration again."""
        _, run = running_container(pod, container["name"])
        references = await self._objects.load_shared(pod, container)
        files = await self.files.file_system(pod, container, references=references)
        host = commands.host_of(self._images, pod, container, references, run.started, files=files)
        host.now, host.is_strict = self._clock.now, False
        host.find_server = partial(self._configured.of_client, pod, container, run.restarts)
        host.programs = LayeredPrograms({argv[0].rpartition("/")[2]: program}, PROGRAMS)
        execution = run_command(host, argv, environment_of(pod, container, references))
        streams = _LogStreams(partial(self._write_log, pod, container["name"]))
        pace, network = self._pace(pod, container["name"]), self._network.caller(pod)
        try:
            await run_to_end(in_container(execution), streams, pace, network)
        except (UnknownProgram, StartError) as error:
            self._note_unknown(pod, container["name"], str(error), CONTINUES)

    def _prepare_signals(
        self, pod: ReadOnlyTree, run: InteractiveRun, argv: Sequence[str], host: Host
    ) -> None:
        """Note what a run does when it is stopped."""
        is_first = is_first_process(pod, run.container)
        run.listed_processes = lambda: tuple(host.listed_processes())
        run.send_signal = lambda number: host.send_signal(number)  # noqa: PLW0108 - the command sets it when it starts
        environment = environment_of(pod, run.container, References())
        image = self._images.behavior_of(run.container)
        host.find_others = partial(self._processes, pod, run.container, environment, is_main=True)

        def find_stop_code() -> int | None:
            running = host.listed_processes()
            reaction, handles = default_reaction(
                running[0].name if running else argv, is_first=is_first, image=image
            )
            return None if handles or reaction.seconds else reaction.exit_code

        run.find_stop_code = find_stop_code

    def _write_log(self, pod: ReadOnlyTree, name: str, lines: Sequence[tuple[int, str]]) -> None:
        """Add lines of a server to the log of its container."""
        run = self.run_of(pod, name)
        if run is None or run.state.exit is not None:
            self._access_logs.write(pod, name, lines)
            return
        for stream, line in lines:
            run.log.write(self._clock.now(), stream, f"{line}\n".encode("utf-8", "surrogateescape"))
        self._events.report_output(pod)

    def _note_unknown(self, pod: ReadOnlyTree, name: str, program: str, end: str) -> None:
        programs = self._ensure_sandbox(pod).unknown_programs
        if (name, program) not in programs and len(programs) < _MAX_UNKNOWN_PROGRAMS:
            programs.add((name, program))
            self._events.report_unknown_program(pod, name, program, end)

    async def _load(self, pod: ReadOnlyTree, run: InteractiveRun) -> tuple[References, FileSystem]:
        """Return the objects and the files of a container; wait while the server does not respond."""
        name = f"container {run.container['name']} of pod {meta.namespaced_name(pod)}"
        return await retry_until_available(
            partial(self._load_once, pod, run), self._clock, _RETRY_SECONDS, name
        )

    async def _load_once(self, pod: ReadOnlyTree, run: InteractiveRun) -> tuple[References, FileSystem]:
        container, restarts = run.container, run.state.restarts
        references = await self._objects.load_shared(pod, container, restarts)
        files = await self.files.file_system(pod, container, restarts=restarts, references=references)
        return references, files

    def _refresher(self, pod: ReadOnlyTree, run: InteractiveRun) -> Callable[[], Awaitable[None]] | None:
        """Return a function that brings files up to date: objects in volumes, as often as a kubelet does, and the processes in /proc."""
        has_others = len(containers_in_namespace(pod, run.container)) > 1
        if not has_others and not has_object_files(pod, run.container):
            return None
        period = _PROCESSES_SECONDS if has_others else REFRESH_SECONDS
        refreshed = self._clock.monotonic()

        async def refresh() -> None:
            nonlocal refreshed
            if self._clock.monotonic() - refreshed >= period:
                refreshed = self._clock.monotonic()
                # The labels and annotations of the pod, which files may contain, change as well.
                latest = self._pods.latest(pod)
                if latest is not None:
                    await self._load(latest, run)

        return refresh

    # --- the commands of probes and hooks

    async def _handler_references_of(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int | None
    ) -> References:
        """Return the objects that the container refers to, as often as a kubelet reads those in volumes."""
        now, name = self._clock.monotonic(), container["name"]
        loaded = self._sandbox_of(pod).handler_references.get(name)
        is_outdated = (
            loaded is None
            or loaded.restarts != restarts
            or (now - loaded.at >= REFRESH_SECONDS and has_object_files(pod, container))
        )
        if loaded is None or is_outdated:
            references = await self._objects.load_shared(pod, container, restarts)
            loaded = _LoadedReferences(restarts, references, now)
            self._ensure_sandbox(pod).handler_references[name] = loaded
        return loaded.references

    def _unknown_folders(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
        """Return the folders of a container into which programs that are not simulated may write."""
        script = script_of(meta.annotations(pod))
        own: tuple[str, ...] | None = ()
        if not self._is_simulated(pod, container):
            own = predictions.folders_of_server(self._images, container, script)
        if own is None:
            return ("/",)
        others = [
            other
            for other in every_container(pod["spec"])
            if not self._live.is_process(pod, other["name"]) and not self._is_simulated(pod, other)
        ]
        volumes = {mount["name"] for other in others for mount in other.get("volumeMounts") or ()}
        shared = (
            f"{normpath(mount['mountPath'])}/"
            for mount in container.get("volumeMounts") or ()
            if mount["name"] in volumes
        )
        return (*own, *shared)

    def _is_simulated(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether all programs that a container has run are simulated."""
        if self._live.command(pod, container):
            unknown = self._sandbox_of(pod).unknown_programs
            return all(name != container["name"] for name, _ in unknown)
        return predictions.is_simulated(self._images, pod, container, script_of(meta.annotations(pod)))
