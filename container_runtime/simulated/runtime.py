"""The run-time of simulated containers.

Most commands are interpreted in advance (`predictions`), so that a container costs nothing while it runs. Those that read input from
clients, use the network, or end as the values of API objects demand run in real time; their ends are recorded.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from posixpath import normpath
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.api_server import ApiServer
from mockube.container_runtime.behavior import (
    CONTINUES,
    DEFAULT_MESSAGE_PATH,
    KILLED,
    MAX_LOG_MESSAGE,
    NOT_FOUND,
    CommandResult,
    end_without_program,
)
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.table import IMAGES, Table
from mockube.container_runtime.log_stream import follow_log
from mockube.container_runtime.logs import LogSource
from mockube.container_runtime.objects import (
    REFRESH_SECONDS,
    ObjectReader,
    ObjectsUnavailable,
    PodVersions,
    retry_until_available,
)
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import ContainerRun, container_spec, running_container
from mockube.container_runtime.runtime import (
    Attachment,
    Command,
    ExecRequest,
    PortConnection,
    RuntimeEvents,
    RuntimeProblem,
)
from mockube.container_runtime.state import NEVER_SIMULATED, ContainerState
from mockube.container_runtime.streams import ClientConnection

from . import predictions
from .connections.pod_network import PodConnections
from .connections.port_answers import open_port
from .connections.port_responses import PortResponses
from .connections.ports import serve_port
from .execution import container_command, execute, run_to_end
from .files.image_places import file_places
from .files.mounts import files_of, known_mounts, shared_mounts
from .files.writable import mounts_of
from .handler_commands import HandlerRun, run_handler_command
from .interactive import InteractiveRun, RunLogReader
from .network.view import SyncedView
from .pod_files import PodFiles
from .programs import commands
from .programs.live_commands import live_commands
from .programs.log_replay import LogReplay
from .programs.object_values import uses_objects
from .programs.program import termination_message
from .shell.filesystem import FileSystem
from .shell.invocation import run_command
from .shell.process import UnknownProgram
from .shell.syntax import ShellSyntaxError
from .terminal import with_terminal

LOG: Final = logging.getLogger(__name__)

NOT_STARTED: Final = 128
_MAX_UNKNOWN_PROGRAMS: Final = 50
"""The number of programs of a pod that are reported as not simulated."""
_RETRY_SECONDS: Final = 5.0
"""The delay after which the objects of a container are requested again."""
_NO_STATES: Final[Mapping[str, ContainerState]] = {}


class SimulationContext(Struct, frozen=True, kw_only=True):
    """What simulated containers have from the kubelet."""

    clock: Clock
    events: RuntimeEvents
    objects: ObjectReader
    pods: PodVersions
    view: SyncedView
    """The objects of the cluster that the network reads."""
    api_server: ApiServer
    local_port: Callable[[ReadOnlyTree, int], int | None] = lambda *_: None
    """Returns the port of this machine for the port of a pod whose container runs as a process."""
    runs_without_program: Callable[[ReadOnlyTree, str], bool] = lambda *_: True
    """Returns whether a container of a pod runs on if its program is not simulated."""
    fails_unknown_programs: bool = False
    """Whether programs that are not simulated fail, if no annotation says otherwise."""
    images: Sequence[Table] = ()
    """What is known of images besides the built-in ones; later tables go before earlier ones."""


class _LoadedReferences(Struct, frozen=True):
    """The objects of a container's run, for the commands of its probes and hooks."""

    restarts: int | None
    references: References
    at: float


class SimulatedRuntime:
    """A `ContainerRuntime` whose containers are simulated."""

    def __init__(self, context: SimulationContext) -> None:
        self._clock = context.clock
        self._events = context.events
        self._objects = context.objects
        self._pods = context.pods
        self._runs_without_program = context.runs_without_program
        self._fails_unknown_programs = context.fails_unknown_programs
        self.files = PodFiles(context.objects, context.clock)
        self._responses = PortResponses(self.files, context.view)
        self._network = PodConnections(
            context.view,
            context.api_server,
            context.pods,
            self._responses,
            context.local_port,
            context.clock,
        )
        self._runs: dict[str, dict[str, list[InteractiveRun]]] = {}
        """The latest two runs by the pod's uid and the container's name."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._unknown_programs: dict[str, set[tuple[str, str]]] = {}
        """The containers with their programs that are not simulated, by the pod's uid."""
        self._handler_references: dict[str, dict[str, _LoadedReferences]] = {}
        """The objects for the commands of probes and hooks, by the pod's uid and the container's name."""
        for table in context.images:
            IMAGES.add(table)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await cancel_and_wait([*self._tasks])

    def runs(self, pod: ReadOnlyTree, name: str) -> bool:
        return container_spec(pod, name) is not None

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ContainerState]:
        if not commands.may_run_live(pod):
            return _NO_STATES
        states: dict[str, ContainerState] = {}
        for container in every_container(pod["spec"]):
            if commands.live_command(pod, container):
                run = self.run_of(pod, container["name"])
                states[container["name"]] = NEVER_SIMULATED if run is None else run.state
        return states

    def may_change(self, pod: ReadOnlyTree) -> bool:
        return commands.may_run_live(pod)

    def live_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
        is_changed = self.files.is_changed(meta.uid(pod), container["name"])
        return live_commands(pod, container, has_changed_files=is_changed)

    # --- starting and stopping

    def start_container(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        run = self.run_of(pod, name)
        if name not in self.states(pod) or (run is not None and run.state.restarts >= restarts):
            return
        container = container_spec(pod, name)
        assert container is not None
        new_run = InteractiveRun(container, restarts, self._clock, partial(self._events.report_output, pod))
        runs = self._runs.setdefault(meta.uid(pod), {}).setdefault(name, [])
        runs[:] = [*runs[-1:], new_run]
        new_run.task = task = start(
            f"container {name} of {meta.namespaced_name(pod)}", self._run(pod, new_run)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop_container(self, pod: ReadOnlyTree, name: str, grace: float) -> None:
        del grace  # a simulated command does not handle SIGTERM
        run = self.run_of(pod, name)
        if run is not None:
            run.stop()

    def update_pod(self, pod: ReadOnlyTree) -> None:
        """Do nothing: each call has the pod, and commands read its latest version."""

    def remove_pod(self, uid: str) -> None:
        self.files.forget(uid)
        self._unknown_programs.pop(uid, None)
        self._handler_references.pop(uid, None)
        for runs in self._runs.pop(uid, {}).values():
            for run in runs:
                run.stop()

    def run_of(self, pod: ReadOnlyTree, name: str) -> InteractiveRun | None:
        """Return the latest run in real time of a container; None if there is none."""
        runs = self._runs.get(meta.uid(pod), {}).get(name)
        return runs[-1] if runs else None

    def recorded_log(self, pod: ReadOnlyTree, name: str, restarts: int) -> LogSource | None:
        """Return the log of a run in real time; None if it is not in memory."""
        runs = self._runs.get(meta.uid(pod), {}).get(name) or ()
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
        references = await self._handler_references_of(pod, container, tuple(command), restarts)
        files = await self.files.file_system(pod, container, restarts=restarts, references=references)
        handler_run = HandlerRun(
            pod=pod,
            container=container,
            references=references,
            files=files,
            unknown_folders=self._unknown_folders(pod, container),
            fails_unknown=self._fails_unknown(pod),
            on_unknown=on_unknown,
        )
        network = self._network.caller(pod)
        return await run_handler_command(handler_run, list(command), self._clock, network, limit=seconds)

    async def exec(self, pod: ReadOnlyTree, name: str, request: ExecRequest) -> Command:
        container, run = running_container(pod, name)
        if self.files.note_command(meta.uid(pod), name, request.command, has_input=request.has_input):
            self._events.report_change(pod)
        references = await self._objects.load_shared(pod, container)
        files = await self.files.file_system(pod, container, references=references)
        host = commands.host_of(pod, container, references, run.started, files=files)
        host.now, host.has_terminal, host.is_strict = self._clock.now, request.has_terminal, False
        environment = environment_of(pod, container, references)
        if request.has_terminal:
            environment.setdefault("TERM", "xterm")
        execution = run_command(host, request.command, environment, container.get("workingDir") or "/")
        work = partial(execute, execution, self._clock, self._network.caller(pod))
        return partial(with_terminal, work, has_terminal=request.has_terminal)

    # --- output and ports

    @asynccontextmanager
    async def attach(self, pod: ReadOnlyTree, name: str, *, has_terminal: bool) -> AsyncIterator[Attachment]:
        _, run = running_container(pod, name)
        interactive = self.run_of(pod, name)
        if interactive is not None:
            with interactive.listen() as output:
                work = partial(interactive.attach, output)
                yield partial(with_terminal, work, has_terminal=has_terminal)
            return
        with follow_log(await self.logs(pod, name, run), pod, name, run, self._pods, self._clock) as follow:
            yield partial(with_terminal, follow, has_terminal=has_terminal)

    async def logs(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        if (recorded := self.recorded_log(pod, name, run.restarts)) is not None:
            return recorded
        container = container_spec(pod, name)
        assert container is not None
        references = await self._objects.load_shared(pod, container)
        host = commands.host_of(pod, container, references, run.started)
        volumes = await self.files.volumes_after_init_containers(pod, container)
        if volumes:
            host.files = FileSystem(
                files_of(pod, container, references),
                mounts=mounts_of(shared_mounts(pod, container, references), volumes),
                is_partial=True,
                volumes=known_mounts(pod, container, references),
                places=file_places(container),
            )
        return LogReplay(commands.main_process(pod, container, references, host), host, run.started)

    async def port_forward(self, pod: ReadOnlyTree, port: int) -> PortConnection:
        connect = self.listener(pod, port)
        if connect is None:
            raise RuntimeProblem(
                f"error forwarding port {port} to pod {meta.uid(pod)}, uid : failed to connect to localhost:{port} "
                f"inside the simulated pod: dial tcp4 127.0.0.1:{port}: connect: connection refused"
            )
        return connect

    def listener(self, pod: ReadOnlyTree, port: int, *, simulated: bool = True) -> PortConnection | None:
        if not simulated or open_port(pod, port) is None:
            return None

        async def connect(client: ClientConnection) -> str:
            await serve_port(pod, port, self._responses, client)
            return ""

        return connect

    # --- commands in real time

    async def _run(self, pod: ReadOnlyTree, run: InteractiveRun) -> None:
        now = self._clock.now()
        run.state = replace(run.state, started=now, is_ready=True, passed_startup=True)
        self._events.report_change(pod)
        name = f"container {run.container['name']} of pod {meta.namespaced_name(pod)}"
        try:
            if commands.interactive_command(pod, run.container):
                run.end(await self._execute(pod, run))
            else:
                await self._execute_with_network(pod, run)
        except asyncio.CancelledError:
            if not run.state.is_stopping:
                raise
            run.end(KILLED)
        except (UnknownProgram, ShellSyntaxError, RecursionError, ObjectsUnavailable) as error:
            LOG.warning("%s failed: %s", name, error)
            run.end(NOT_STARTED, "StartError", str(error))
        except Exception as error:
            LOG.exception("%s failed", name)
            run.end(NOT_STARTED, "ContainerCannotRun", f"{type(error).__name__}: {error}")
        self._events.report_change(pod)

    async def _execute(self, pod: ReadOnlyTree, run: InteractiveRun) -> int:
        container = run.container
        references, files = await self._load_once(pod, run)
        host = commands.host_of(pod, container, references, self._clock.now(), files=files)
        host.now, host.is_strict = self._clock.now, False
        if not self._fails_unknown(pod):
            host.on_unknown = lambda program: self._note_unknown(pod, container["name"], program, CONTINUES)
        environment: dict[str, Any] = dict(environment_of(pod, container, references))
        argv = expand_references(commands.interactive_command(pod, container), environment)
        execution = run_command(host, argv, environment, container.get("workingDir") or "/")
        return await run_to_end(execution, run, self._clock, self._network.caller(pod))

    async def _execute_with_network(self, pod: ReadOnlyTree, run: InteractiveRun) -> None:
        """Run a command that uses the network. One that is not simulated ends, or runs on, as without the network."""
        container = run.container
        references, files = await self._load(pod, run)
        host = commands.host_of(pod, container, references, self._clock.now(), files=files)
        host.now = self._clock.now
        execution = container_command(commands.main_command(pod, container, references, host), files)
        network = self._network.caller(pod)
        try:
            code = await run_to_end(
                execution, run, self._clock, network, after_sleep=self._refresher(pod, run)
            )
        except (UnknownProgram, ShellSyntaxError, RecursionError) as error:
            await run.write(1, commands.not_simulated_line(pod, container, error))
            code = 0 if host.is_strict else NOT_FOUND
            runs_on = host.is_strict and self._runs_without_program(pod, container["name"])
            program = str(error) if isinstance(error, UnknownProgram) else "the script"
            end = end_without_program(None if runs_on else code)
            self._note_unknown(pod, container["name"], program, end)
            if runs_on:
                await self._clock.sleep(inf)
        message = termination_message(files, container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH)
        if not message and code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = run.log.tail(MAX_LOG_MESSAGE)
        run.end(code, message=message)

    def _note_unknown(self, pod: ReadOnlyTree, name: str, program: str, end: str) -> None:
        programs = self._unknown_programs.setdefault(meta.uid(pod), set())
        if (name, program) not in programs and len(programs) < _MAX_UNKNOWN_PROGRAMS:
            programs.add((name, program))
            self._events.report_unknown_program(pod, name, program, end)

    def _fails_unknown(self, pod: ReadOnlyTree) -> bool:
        """Return whether programs of a pod that are not simulated fail."""
        script = script_of(meta.annotations(pod))
        return script.fails_unknown_programs(default=self._fails_unknown_programs)

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
        """Return a function that reads changed objects in the container's volumes again, as often as a kubelet does."""
        if not commands.depends_on_objects(pod, run.container):
            return None
        refreshed = self._clock.monotonic()

        async def refresh() -> None:
            nonlocal refreshed
            if self._clock.monotonic() - refreshed >= REFRESH_SECONDS:
                refreshed = self._clock.monotonic()
                # The labels and annotations of the pod, which files may contain, change as well.
                latest = self._pods.latest(pod)
                if latest is not None:
                    await self._load(latest, run)

        return refresh

    # --- the commands of probes and hooks

    async def _handler_references_of(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...], restarts: int | None
    ) -> References:
        """Return the objects that the container refers to, as often as a kubelet reads those in volumes."""
        now, name = self._clock.monotonic(), container["name"]
        loaded = self._handler_references.get(meta.uid(pod), {}).get(name)
        is_outdated = (
            loaded is None
            or loaded.restarts != restarts
            or (now - loaded.at >= REFRESH_SECONDS and uses_objects(pod, container, argv))
        )
        if loaded is None or is_outdated:
            references = await self._objects.load_shared(pod, container, restarts)
            loaded = _LoadedReferences(restarts, references, now)
            self._handler_references.setdefault(meta.uid(pod), {})[name] = loaded
        return loaded.references

    def _unknown_folders(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
        """Return the folders of a container into which programs that are not simulated may write."""
        if not self._is_simulated(pod, container):
            return ("/",)
        others = [other for other in every_container(pod["spec"]) if not self._is_simulated(pod, other)]
        volumes = {mount["name"] for other in others for mount in other.get("volumeMounts") or ()}
        return tuple(
            f"{normpath(mount['mountPath'])}/"
            for mount in container.get("volumeMounts") or ()
            if mount["name"] in volumes
        )

    def _is_simulated(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether all programs that a container has run are simulated."""
        if commands.live_command(pod, container):
            unknown = self._unknown_programs.get(meta.uid(pod), ())
            return all(name != container["name"] for name, _ in unknown)
        return predictions.is_simulated(pod, container, script_of(meta.annotations(pod)))
