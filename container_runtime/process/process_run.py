"""One run of a container as a process: prepares, starts, watches and stops it, and records its state.

`pod_lifecycle` computes the pod's status from the `state`. The probes and hooks are in `container_checks`.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start, timeout
from mockube.container_runtime.behavior import (
    MAX_LOG_MESSAGE,
    MAX_MESSAGE,
    NOT_FOUND,
    falls_back_to_log,
    message_path,
)
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.resource_limits import limit_of
from mockube.container_runtime.load import OOM_KILLED
from mockube.container_runtime.objects import ObjectsUnavailable
from mockube.container_runtime.output import ContainerOutput
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.start_errors import NOT_STARTED, START_ERROR, StartError, message_of_start
from mockube.container_runtime.state import ContainerState, Exit
from mockube.container_runtime.volume_folders import VolumeFolders

from . import folders
from .command import (
    CommandSpec,
    LocalEnvironment,
    command_beside,
    command_spec,
    find_program,
    hidden_paths,
    identity_of_process,
    program_paths,
    service_url,
)
from .images import LocalImage
from .listeners import listens_on_loopback_only
from .local_ports import choose_ports, own_ports
from .local_process import GroupWatch, LocalProcess, read_chunk, start_process
from .log_files import LogWriter, log_tail
from .log_folder import LogFolder
from .memory_groups import MemoryGroup, MemoryGroups
from .namespace_support import Support
from .process_network import ProcessNetwork, network_files

LOG: Final = logging.getLogger(__name__)

RETRY_SECONDS: Final = 2.0
"""The delay between attempts to prepare a container."""
DRAIN_SECONDS: Final = 1.0
"""How long output is read after the end of the process."""
_KILLED: Final = 137
"""The exit code after SIGKILL."""
MAX_OUTPUT: Final = 10 << 10
"""The maximum bytes of the output of a probe's command."""


class PodObjects(Protocol):
    """What the kubelet reads and checks for the containers of a pod."""

    pod: ReadOnlyTree
    """The latest version of the pod."""

    async def load(self, container: ReadOnlyTree) -> References:
        """Return the references of a container, or raise `ObjectsUnavailable`."""

    def mount_problem(self, container: ReadOnlyTree, references: References) -> tuple[str, str]:
        """Return the first volume that cannot be mounted, and the reason; ("", "") if all can."""

    def identity_problem(self, container: ReadOnlyTree, image_user: int) -> str:
        """Return why the user of the container is not permitted; "" if it is."""

    def environment_problem(self, container: ReadOnlyTree, references: References) -> str:
        """Return why a variable of the environment cannot be set; "" if all can."""


class RunChecks(Protocol):
    """The probes and hooks of one run, which the kubelet makes."""

    async def run(self, process: LocalProcess) -> None:
        """Run the postStart hook, and then the probes until the process ends."""

    async def run_pre_stop_hook(self, seconds: float) -> float:
        """Run the preStop hook for at most `seconds`; return the minimum seconds that the process has after it."""


class RunContext(Struct, frozen=True, kw_only=True):
    """The dependencies that all runs share."""

    clock: Clock
    record_event: Callable[[ReadOnlyTree, str, str, str, str], None]
    """Records an Event about a part of a pod: with its type, its reason, and its message."""
    checks: "Callable[[ProcessRun, ReadOnlyTree | None], RunChecks]"
    """Returns the probes and hooks of a run; with the readiness probe of its image, if the container has none."""
    watch: GroupWatch
    folder: Path
    logs: LogFolder
    support: Callable[[], Awaitable[Support]]
    """Returns which namespaces processes can have for themselves."""
    memory: MemoryGroups
    volumes: VolumeFolders
    """Has the contents of volumes that containers may write."""
    network: ProcessNetwork
    server: str
    """The URL of the API server."""
    on_change: Callable[[ReadOnlyTree], None]
    """Called with the pod when the state of one of its runs has changed."""
    on_output: Callable[[ReadOnlyTree], None]
    """Called with the pod when one of its containers has written output."""


class ProcessRun:
    def __init__(  # noqa: PLR0913 - each is a part of what a run is
        self,
        context: RunContext,
        objects: PodObjects,
        container: ReadOnlyTree,
        *,
        field: str,
        image: LocalImage,
        restarts: int,
        with_processes: Callable[[ReadOnlyTree, CommandSpec], Awaitable[CommandSpec]],
    ) -> None:
        """`field` is the path of the container in its pod. `with_processes` gives its command a namespace of processes."""
        self._context = context
        self._objects = objects
        self.container = container
        self._field = field
        self._image = image
        self._with_processes = with_processes
        self.state = ContainerState(restarts=restarts)
        self.log = context.logs.make_log(meta.uid(objects.pod), container["name"], restarts)
        self.spec: CommandSpec | None = None
        self.process: LocalProcess | None = None
        self.ports: Mapping[int, int] = {}
        self._loopback_ports: set[int] = set()
        """The ports about which an Event says that nothing outside of the pod reaches them."""
        self._deadline: float | None = None
        self._stop_requested = asyncio.Event()
        self._has_lost_network = False
        """Whether the network that its process enters, or has entered, is gone."""
        self.output = ContainerOutput()

    @property
    def mapped_ports(self) -> Mapping[int, int]:
        """The ports that the file of images maps, whatever listens there."""
        return self._image.ports

    @property
    def pod(self) -> ReadOnlyTree:
        return self._objects.pod

    # --- called by other modules

    def stop(self, grace: float) -> None:
        """Stop the run within `grace` seconds; a second call can only shorten the time."""
        deadline = self._context.clock.monotonic() + grace
        if self._deadline is None or deadline < self._deadline:
            self._deadline = deadline
            self._stop_requested.set()
            self.update_state(is_stopping=True)

    def lose_network(self) -> None:
        """End the process because its network is gone, also one that is only being started."""
        self._has_lost_network = True
        if self.process is not None and self.state.exit is None:
            message = "Pod sandbox changed, it will be killed and re-created."
            self.record_event("Normal", "SandboxChanged", message)
            self.process.kill()

    async def start_exec(
        self, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> LocalProcess:
        """Start a command in the container's environment and folder; `end_exec` ends it."""
        assert self.process is not None
        assert self.spec is not None
        environment = dict(self.spec.environment)
        if terminal:
            environment.setdefault("TERM", "xterm")
        program = find_program(command[0], environment, self.spec.directory, self.spec.mounts)
        await self.process.wait_for_start()
        if self.process.has_ended:
            raise StartError("the container has ended")
        spec = command_beside(self.process.pid, self.spec)
        process = await start_process(
            replace(spec, argv=[program, *command[1:]], environment=environment),
            stdin=stdin,
            terminal=terminal,
        )
        self._context.watch.add(process.pid)
        return process

    async def end_exec(self, process: LocalProcess) -> None:
        await process.end()
        self._context.watch.remove(process.pid)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the container; return its exit code and its output."""
        try:
            process = await self.start_exec(command)
        except (StartError, OSError) as error:
            return NOT_FOUND, str(error)
        output = bytearray()

        async def read(stream: asyncio.StreamReader) -> None:
            while data := await read_chunk(stream):
                output.extend(data[: MAX_OUTPUT - len(output)])

        readers = [start("output of a command", read(stream)) for stream in process.outputs.values()]
        try:
            await asyncio.gather(*readers)
            return await process.wait(), output.decode("utf-8", "replace")
        finally:
            await cancel_and_wait(readers)
            await self.end_exec(process)

    # --- called by the checks

    def port_of(self, port: int, host: str = "") -> ProcessPort:
        """Return where a port of the container is reached, or of a host that is not its pod."""
        own = self.ports.get(port, port)
        if host:
            return self._context.network.port_at(self.pod, host, own)
        return self._context.network.port_of(self.pod, own, partial(self._find_loopback, own))

    def _find_loopback(self, port: int) -> str:
        """Return the loopback address on which alone a program of the pod listens, and record an Event about it."""
        loopback = "" if self.process is None else listens_on_loopback_only(self.process.pid, port)
        if loopback and port not in self._loopback_ports:
            self._loopback_ports.add(port)
            message = f"port {port}: the program listens on {loopback} only, where nothing outside of the pod reaches it in a cluster"
            self.record_event("Warning", "ListensOnLoopback", message)
        return loopback

    def update_state(self, **fields: Any) -> None:
        self.state = replace(self.state, **fields)
        self._context.on_change(self.pod)

    def record_event(self, kind: str, reason: str, message: str) -> None:
        self._context.record_event(self.pod, self._field, kind, reason, message)

    # --- the lifecycle

    async def run(self) -> None:
        """Prepare the container, run its process, and record its end."""
        try:
            spec = await self._prepare()
            if spec is None:
                self._end(137, started=None)
            else:
                await self._run_process(spec)
        except Exception as error:
            if self.process is not None or not isinstance(error, StartError | OSError):
                LOG.exception("container %s of pod %s failed", self.container["name"], meta.name(self.pod))
                self._end(128, reason="ContainerCannotRun", message=f"{type(error).__name__}: {error}")
                return
            message = message_of_start(error)
            self.record_event("Warning", "Failed", f"Error: {message}")
            self._end(NOT_STARTED, reason=START_ERROR, message=message)
        finally:
            self.output.end()

    def _end(self, code: int, *, reason: str = "", message: str = "", started: bool | None = True) -> None:
        now = self._context.clock.now()
        started_at = (self.state.started or now) if started else None
        end = Exit(code=code, at=now, reason=reason, message=message)
        self.update_state(started=started_at, exit=end, is_ready=False)

    async def _prepare(self) -> CommandSpec | None:
        """Wait until all objects that the container refers to exist; return None if the run is stopped before that."""
        reported_problem = ""
        while not self._stop_requested.is_set():
            try:
                references = await self._objects.load(self.container)
            except ObjectsUnavailable as error:
                LOG.warning(
                    "container %s of pod %s: reading its references failed and will be retried: %s",
                    self.container["name"],
                    meta.name(self.pod),
                    error,
                )
                await self._wait_for_stop(RETRY_SECONDS)
                continue
            volume, problem = self._start_problem(references)
            if not problem:
                context = self._context
                writable = await context.volumes.mount(self.pod, self.container, references, context.folder)
                support = await context.support()
                self._has_lost_network = False
                network = await context.network.enter(self.pod)
                await asyncio.to_thread(folders.remove_root, context.folder, self.pod, self.container)
                spec = self._create_spec(references, writable, network, binds=support.mounts)
                return replace(spec, has_own_processes=support.processes)
            if problem != reported_problem:
                self._report_problem(volume, problem)
                reported_problem = problem
            await self._wait_for_stop(RETRY_SECONDS)
        return None

    def _start_problem(self, references: References) -> tuple[str, str]:
        """Return the volume that cannot be mounted, or "", and why the container cannot be created; ("", "") if it can."""
        pod, container, objects = self.pod, self.container, self._objects
        volume, problem = objects.mount_problem(container, references)
        if problem:
            return volume, problem
        # Without root's rights no process runs as root.
        is_root = os.geteuid() == 0
        return "", (
            folders.volume_problem(pod, container)
            or (objects.identity_problem(container, self._image.user or 0) if is_root else "")
            or objects.environment_problem(container, references)
        )

    def _report_problem(self, volume: str, problem: str) -> None:
        if volume:
            message = f'MountVolume.SetUp failed for volume "{volume}" : {problem}'
            self.record_event("Warning", "FailedMount", message)
        else:
            self.record_event("Warning", "Failed", f"Error: {problem}")
            self.update_state(waiting_reason="CreateContainerConfigError", waiting_message=problem)

    def _create_spec(
        self, references: References, writable: Mapping[str, Path], network: Sequence[int], *, binds: bool
    ) -> CommandSpec:
        """Create the container's files and its command. `binds`: a mount namespace can bind its volumes.

        `writable` are the folders of volumes that it may write by mount path.
        """
        context, pod = self._context, self.pod
        identity = identity_of_process(pod, self.container, self._image)
        sources = folders.Sources(context.clock.now(), writable, self._image.files)
        mounts = folders.make_root(context.folder, pod, self.container, references, identity, sources)
        if binds := binds and not hidden_paths(self._image, mounts):
            mounts = folders.add_programs(mounts, program_paths(self._image))
            mounts = folders.add_message_file(context.folder, pod, self.container, mounts)
            if network:
                files = network_files(pod, references.cluster_dns)
                mounts = folders.add_network_files(context.folder, pod, mounts, files)
        else:
            folders.link_mounts(context.folder, pod, mounts, identity)
        server = context.server
        if network:
            self.ports, server = own_ports(self.container, self._image), service_url(references, server)
        else:
            self._choose_ports()
        folder = Path(mounts.root)
        root = Path("/") if binds else folder
        local_environment = LocalEnvironment(
            root=root,
            folder=folder,
            mounts=mounts if binds else None,
            ports=self.ports,
            server=server,
            kubeconfig=folders.write_kubeconfig(mounts, root, server, meta.namespace(pod), identity),
            network=network,
        )
        spec = command_spec(pod, self.container, self._image, references, local_environment)
        spec.directory.mkdir(parents=True, exist_ok=True)
        return spec

    def _choose_ports(self) -> None:
        """Choose ports of this machine in place of those of the container."""
        chosen = choose_ports(self.container, self._image)
        self.ports = chosen.ports
        for message in chosen.problems:
            self.record_event("Warning", "PortTaken", message)

    async def _run_process(self, spec: CommandSpec) -> None:
        await self._context.watch.begin()
        if spec.has_own_processes:
            spec = await self._with_processes(self.container, spec)
        memory = self._limit_memory()
        if memory is not None:
            spec = replace(spec, memory_group=memory.processes)
        try:
            with nullcontext() if memory is None else memory.killed_as_a_whole():
                code = await self._run_command(spec)
            is_killed = memory is not None and memory.has_killed()
        finally:
            if memory is not None:
                memory.remove()
        code = _KILLED if is_killed else code
        self._end(code, reason=OOM_KILLED if is_killed else "", message=self._termination_message(code))

    def _limit_memory(self) -> MemoryGroup | None:
        """Return the cgroup of the container's limit of memory, if it has one; record an Event if the machine allows none."""
        limit = limit_of(self.pod, self.container, "memory")
        if limit is None:
            return None
        memory = self._context.memory.limit(int(limit))
        if memory is None:
            message = f"the memory limit of {int(limit)} bytes is not enforced: this machine allows mockube no cgroup with one"
            self.record_event("Warning", "MemoryLimitNotEnforced", message)
        return memory

    async def _run_command(self, spec: CommandSpec) -> int:
        """Start the process, and return its exit code when it has ended."""
        self.process = process = await start_process(
            spec,
            stdin=bool(self.container.get("stdin")),
            terminal=bool(self.container.get("tty")),
        )
        self.spec = spec
        self._context.watch.add(process.pid)
        try:
            if self._has_lost_network:
                self.lose_network()
            with closing(LogWriter(self.log, self._context.clock.now)) as log:
                return await self._watch_process(process, log)
        finally:
            await process.end()
            self._context.watch.remove(process.pid)

    async def _watch_process(self, process: LocalProcess, log: LogWriter) -> int:
        """Copy the output and run the checks until the process ends; return its exit code."""
        readers = [
            start("output of a container", self._copy(number, stream, log))
            for number, stream in process.outputs.items()
        ]
        checks = self._context.checks(self, self._image.ready)
        check_tasks = [
            start("checks of a container", checks.run(process)),
            start("the end of a container", self._stop_when_requested(process, checks)),
        ]
        try:
            code = await _wait_for_process(
                start("a container's process", process.wait()), [*check_tasks, *readers]
            )
            process.kill()  # the rest of its process group
            await self._drain(readers)
            return code
        finally:
            await cancel_and_wait([*check_tasks, *readers])

    async def _drain(self, readers: "Sequence[asyncio.Task[None]]") -> None:
        self.output.release()
        with suppress(TimeoutError):
            async with timeout(self._context.clock.real, DRAIN_SECONDS):
                await asyncio.gather(*readers)

    async def _copy(self, number: int, stream: asyncio.StreamReader, log: LogWriter) -> None:
        while data := await read_chunk(stream):
            log.write(number, data)
            self._context.on_output(self.pod)
            await self.output.send(number, data)

    async def _stop_when_requested(self, process: LocalProcess, checks: RunChecks) -> None:
        await self._stop_requested.wait()
        clock = self._context.clock
        assert self._deadline is not None
        minimum = await checks.run_pre_stop_hook(self._deadline - clock.monotonic())
        self._deadline = max(self._deadline, clock.monotonic() + minimum)
        process.send_signal(signal.SIGTERM)
        while (remaining := self._deadline - clock.monotonic()) > 0:
            self._stop_requested.clear()  # A shorter grace period may follow.
            await self._wait_for_stop(remaining)
        process.kill()

    async def _wait_for_stop(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with timeout(self._context.clock, seconds):
                await self._stop_requested.wait()

    def _termination_message(self, code: int) -> str:
        """Return the termination message: the content of the file, or else the end of the log if the policy says so."""
        pod_folder = self._context.folder / meta.uid(self.pod)
        root = folders.container_root(pod_folder, self.container["name"])
        path = root / folders.absolute_path(message_path(self.container)).lstrip("/")
        if self.spec is not None and self.spec.mounts is not None:
            path = folders.message_file(pod_folder, self.container)
        if path.is_file():
            with path.open("rb") as file:
                file.seek(-min(path.stat().st_size, MAX_MESSAGE), os.SEEK_END)
                message = file.read(MAX_MESSAGE).decode("utf-8", "replace")
            path.unlink()
            if message:
                return message
        if code and falls_back_to_log(self.container):
            return log_tail(self.log, MAX_LOG_MESSAGE)
        return ""


async def _wait_for_process(process: "asyncio.Task[int]", check_tasks: "Sequence[asyncio.Task[None]]") -> int:
    """Return the exit code; raise errors of the tasks beside the process."""
    pending: set[asyncio.Task[Any]] = {process, *check_tasks}
    try:
        while not process.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        return process.result()
    finally:
        process.cancel()
        await asyncio.wait([process])
