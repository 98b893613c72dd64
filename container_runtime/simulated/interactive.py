"""Simulated containers that read input from attached clients, or use the network: their commands run in real time.

The ends of the commands are recorded, so the pod's status is computed as for processes.
The pod workers (`pods`), which start and stop runs, and the kubelets' server share them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NODES, PODS
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.attach import attach
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.output import AttachedOutput, ContainerOutput
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.state import NEVER_SIMULATED, Exit, ProcessState
from mockube.container_runtime.streams import InputStream, Streams
from mockube.kubelet.effects import ContainerAction, StartContainer, StopContainer
from mockube.kubelet.network_view import InformerView
from mockube.kubelet.pod_certificates import pod_certificates
from mockube.kubelet.pod_lifecycle.containers import default_program
from mockube.kubelet.pod_lifecycle.probe_totals import ProbeTotals
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.pod_lifecycle.unknown_programs import CONTINUES, end_without_program
from mockube.kubelet.references import REFRESH_SECONDS, ReferenceLoader, retry_until_response
from mockube.kubelet.server.http_errors import HttpError
from mockube.kubelet.settings import KubeletContext

from .connections.pod_network import PodConnections
from .connections.port_responses import PortResponses
from .execution import container_command, run_to_end
from .images.table import IMAGES, load_table, table_of
from .pod_files import PodFiles
from .programs.commands import (
    depends_on_objects,
    host_of,
    interactive_command,
    live_command,
    main_command,
    not_simulated_line,
)
from .programs.log_replay import LogLine
from .programs.program import (
    DEFAULT_MESSAGE_PATH,
    KILLED,
    MAX_LOG_MESSAGE,
    expand_references,
    has_open_input,
    termination_message,
)
from .shell.filesystem import FileSystem
from .shell.invocation import run_command
from .shell.invoking import NOT_FOUND
from .shell.process import UnknownProgram
from .shell.syntax import ShellSyntaxError

LOG: Final = logging.getLogger(__name__)

MAX_LOG: Final = 1 << 20
"""The maximum bytes of a run's log."""
READ: Final = 4096
LINES: Final = 500
"""The maximum number of lines of a log that one call reads."""
NOT_STARTED: Final = 128
_MAX_UNKNOWN_PROGRAMS: Final = 50
"""The number of programs of a pod that are reported as not simulated."""
_RETRY_SECONDS: Final = 5.0
"""The delay after which the objects of a container are requested again."""


class RunLog:
    """The last lines of a run's output."""

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque()
        self.dropped = 0
        """The number of earlier lines that were dropped."""
        self._size = 0
        self._parts = {1: b"", 2: b""}

    def write(self, at: datetime, stream: int, data: bytes) -> None:
        *complete_lines, self._parts[stream] = (self._parts[stream] + data).split(b"\n")
        for line in complete_lines:
            self._add(LogLine(at, stream, line + b"\n"))
        if len(self._parts[stream]) >= READ:
            self.flush(at)

    def flush(self, at: datetime) -> None:
        """Add incomplete lines to the log."""
        for stream, part in self._parts.items():
            if part:
                self._add(LogLine(at, stream, part))
                self._parts[stream] = b""

    def tail(self, size: int) -> str:
        """Return the last characters of the log."""
        return b"".join(line.text for line in self.lines)[-size:].decode("utf-8", "replace")

    def _add(self, line: LogLine) -> None:
        self.lines.append(line)
        self._size += len(line.text)
        while self._size > MAX_LOG:
            self._size -= len(self.lines.popleft().text)
            self.dropped += 1


class RunLogReader:
    """A `LogSource` over a `RunLog`."""

    due = None

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._position = 0

    def is_behind(self, _: datetime) -> bool:
        return self._position < self._log.dropped + len(self._log.lines)

    def advance(self, _: datetime) -> Iterator[LogLine]:
        first = max(self._position, self._log.dropped) - self._log.dropped
        lines = [*islice(self._log.lines, first, first + LINES)]
        self._position = self._log.dropped + first + len(lines)
        return iter(lines)

    def close(self) -> None:
        """Do nothing: the log is in memory."""


class InteractiveRun:
    """One run of a container; it implements `CommandStreams` for its command."""

    def __init__(
        self, container: ReadOnlyTree, restarts: int, clock: Clock, on_output: Callable[[], None]
    ) -> None:
        self.container = container
        self.state = ProcessState(restarts=restarts, is_simulated=True)
        self.stdin = InputStream() if has_open_input(container) else None
        """The input, which is empty without `stdin`, and waits for ever with `tty` alone."""
        self.log = RunLog()
        self.task: asyncio.Task[None] | None = None
        self._clock = clock
        self._on_output = on_output
        self._output = ContainerOutput()

    async def write(self, stream: int, data: bytes) -> None:
        self.log.write(self._clock.now(), stream, data)
        self._on_output()
        await self._output.send(stream, data)

    def end(self, code: int, reason: str = "", message: str = "") -> None:
        now = self._clock.now()
        self.log.flush(now)
        end = Exit(code=code, at=now, reason=reason, message=message)
        self.state = replace(self.state, exit=end, is_ready=False)
        if self.stdin is not None:
            self.stdin.discard()
        self._output.end()
        self._on_output()

    def stop(self) -> None:
        if self.task is not None and self.state.exit is None and not self.state.is_stopping:
            self.state = replace(self.state, is_stopping=True)
            self.task.cancel()

    @contextmanager
    def listen(self) -> Iterator[AttachedOutput]:
        """Queue the output from now on, up to `OUTPUT_END`.

        It raises `HttpError` if the run has ended; kubectl then reads the log.
        """
        if self.state.exit is not None:
            raise HttpError(500, f'container not found ("{self.container["name"]}")')
        with self._output.listen() as output:
            yield output

    async def attach(self, output: AttachedOutput, streams: Streams) -> bytes:
        """Send the output to a client, and receive its input."""
        if self.stdin is None or not self.container.get("stdin"):
            return await attach(output, streams, None)
        return await attach(output, streams, partial(self._forward_input, self.stdin))

    async def _forward_input(self, stdin: InputStream, source: InputStream) -> None:
        while data := await source.read(READ):
            await stdin.feed(data)
        if self.container.get("stdinOnce"):
            await stdin.end()


class InteractiveContainers:
    def __init__(self, context: KubeletContext) -> None:
        self._clock = context.clock
        self.references = ReferenceLoader(
            context.client,
            context.informers.of(NODES).lister,
            pod_certificates(context),
            fails_unknown_programs=context.settings.fails_unknown_programs,
        )
        self.files = PodFiles(self.references, context.clock)
        view = InformerView(context.informers)
        self.responses = PortResponses(self.files, view)
        self._pods = context.informers.of(PODS).lister
        self.network = PodConnections(context, self._pods, view, self.responses)
        self._runs: dict[str, dict[str, list[InteractiveRun]]] = {}
        """The latest two runs by the pod's uid and the container's name."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_change: Callable[[Key], None] = lambda _: None
        self.on_output: Callable[[Key], None] = lambda _: None
        self.on_unknown_program: Callable[[ReadOnlyTree, str, str, str], None] = lambda *_: None
        """Called with a pod, its container, a program that is not simulated, and what happens without it, once for each."""
        self._unknown_programs: dict[str, set[tuple[str, str]]] = {}
        """The containers with their programs that are not simulated, by the pod's uid."""
        self.probe_totals: dict[str, dict[tuple[str, Probe], ProbeTotals]] = {}
        """The results of probes that run in real time, by the pod's uid."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await cancel_and_wait([*self._tasks])

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ProcessState]:
        """Return the states of the pod's containers whose commands run in real time, by name."""
        states: dict[str, ProcessState] = {}
        for container in every_container(pod["spec"]):
            if live_command(pod, container):
                run = self.run_of(pod, container["name"])
                states[container["name"]] = NEVER_SIMULATED if run is None else run.state
        return states

    def apply(self, pod: ReadOnlyTree, actions: Iterable[ContainerAction]) -> None:
        for action in actions:
            run = self.run_of(pod, action.container)
            match action:
                case StartContainer(container=name, restarts=restarts) if name in self.states(pod):
                    if run is None or run.state.restarts < restarts:
                        self._start(pod, name, restarts)
                case StopContainer() if run is not None:
                    run.stop()
                case _:
                    pass

    def fails_unknown_programs(self, pod: ReadOnlyTree) -> bool:
        """Return whether programs of a pod that are not simulated fail."""
        script = script_of(meta.annotations(pod))
        return script.fails_unknown_programs(default=self.references.fails_unknown_programs)

    def has_unknown_program(self, uid: str, container: str) -> bool:
        """Return whether a container of a pod has run a program that is not simulated."""
        return any(name == container for name, _ in self._unknown_programs.get(uid, ()))

    def run_of(self, pod: ReadOnlyTree, name: str) -> InteractiveRun | None:
        """Return the latest run of a container; None if it has not run."""
        runs = self._runs.get(meta.uid(pod), {}).get(name)
        return runs[-1] if runs else None

    def log_of(self, pod: ReadOnlyTree, name: str, restarts: int) -> RunLogReader | None:
        runs = self._runs.get(meta.uid(pod), {}).get(name) or ()
        return next((RunLogReader(run.log) for run in runs if run.state.restarts == restarts), None)

    def forget(self, uid: str) -> None:
        """Stop the runs of a deleted pod, and drop its files."""
        self.files.forget(uid)
        self._unknown_programs.pop(uid, None)
        self.probe_totals.pop(uid, None)
        for runs in self._runs.pop(uid, {}).values():
            for run in runs:
                run.stop()

    def _start(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        container = next(candidate for candidate in every_container(pod["spec"]) if candidate["name"] == name)
        key = Key.of(pod)
        run = InteractiveRun(container, restarts, self._clock, lambda: self.on_output(key))
        runs = self._runs.setdefault(meta.uid(pod), {}).setdefault(name, [])
        runs[:] = [*runs[-1:], run]
        run.task = task = start(f"container {name} of {key}", self._run(pod, run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, pod: ReadOnlyTree, run: InteractiveRun) -> None:
        key = Key.of(pod)
        now = self._clock.now()
        run.state = replace(run.state, started=now, is_ready=True, passed_startup=True)
        self.on_change(key)
        try:
            if interactive_command(pod, run.container):
                run.end(await self._execute(pod, run))
            else:
                await self._execute_with_network(pod, run)
        except asyncio.CancelledError:
            if not run.state.is_stopping:
                raise
            run.end(KILLED)
        except (UnknownProgram, ShellSyntaxError, RecursionError, ApiError, NoResponse) as error:
            LOG.warning("container %s of pod %s failed: %s", run.container["name"], key, error)
            run.end(NOT_STARTED, "StartError", str(error))
        except Exception as error:
            LOG.exception("container %s of pod %s failed", run.container["name"], key)
            run.end(NOT_STARTED, "ContainerCannotRun", f"{type(error).__name__}: {error}")
        self.on_change(key)

    async def _execute(self, pod: ReadOnlyTree, run: InteractiveRun) -> int:
        container = run.container
        references, files = await self._load_once(pod, run)
        host = host_of(pod, container, references, self._clock.now(), files=files)
        host.now, host.is_strict = self._clock.now, False
        if not self.fails_unknown_programs(pod):
            host.on_unknown = lambda program: self._note_unknown(pod, container["name"], program, CONTINUES)
        environment: dict[str, Any] = dict(environment_of(pod, container, references))
        argv = expand_references(interactive_command(pod, container), environment)
        execution = run_command(host, argv, environment, container.get("workingDir") or "/")
        return await run_to_end(execution, run, self._clock, self.network.caller(pod))

    def _note_unknown(self, pod: ReadOnlyTree, name: str, program: str, end: str) -> None:
        programs = self._unknown_programs.setdefault(meta.uid(pod), set())
        if (name, program) not in programs and len(programs) < _MAX_UNKNOWN_PROGRAMS:
            programs.add((name, program))
            self.on_unknown_program(pod, name, program, end)

    async def _execute_with_network(self, pod: ReadOnlyTree, run: InteractiveRun) -> None:
        """Run a command that uses the network. One that is not simulated ends, or runs on, as without the network."""
        container = run.container
        references, files = await self._load(pod, run)
        host = host_of(pod, container, references, self._clock.now(), files=files)
        host.now = self._clock.now
        execution = container_command(main_command(pod, container, references, host), files)
        try:
            code = await run_to_end(
                execution, run, self._clock, self.network.caller(pod), after_sleep=self._refresher(pod, run)
            )
        except (UnknownProgram, ShellSyntaxError, RecursionError) as error:
            await run.write(1, not_simulated_line(pod, container, error))
            code = 0 if host.is_strict else NOT_FOUND
            runs_on = default_program(pod, container["name"]).seconds is None and host.is_strict
            program = str(error) if isinstance(error, UnknownProgram) else "the script"
            end = end_without_program(None if runs_on else code)
            self._note_unknown(pod, container["name"], program, end)
            if runs_on:
                await self._clock.sleep(inf)
        message = termination_message(files, container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH)
        if not message and code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = run.log.tail(MAX_LOG_MESSAGE)
        run.end(code, message=message)

    async def _load(self, pod: ReadOnlyTree, run: InteractiveRun) -> tuple[References, FileSystem]:
        """Return the objects and the files of a container; wait while the server does not respond."""
        name = f"container {run.container['name']} of pod {Key.of(pod)}"
        return await retry_until_response(
            partial(self._load_once, pod, run), self._clock, _RETRY_SECONDS, name
        )

    async def _load_once(self, pod: ReadOnlyTree, run: InteractiveRun) -> tuple[References, FileSystem]:
        container, restarts = run.container, run.state.restarts
        references = await self.references.load_shared(pod, container, restarts)
        files = await self.files.file_system(pod, container, restarts=restarts, references=references)
        return references, files

    def _refresher(self, pod: ReadOnlyTree, run: InteractiveRun) -> Callable[[], Awaitable[None]] | None:
        """Return a function that reads changed objects in the container's volumes again, as often as a kubelet does."""
        if not depends_on_objects(pod, run.container):
            return None
        refreshed = self._clock.monotonic()

        async def refresh() -> None:
            nonlocal refreshed
            if self._clock.monotonic() - refreshed >= REFRESH_SECONDS:
                refreshed = self._clock.monotonic()
                # The labels and annotations of the pod, which files may contain, change as well.
                current = self._pods.get(meta.namespace(pod), meta.name(pod))
                if current is not None and meta.uid(current.object) == meta.uid(pod):
                    await self._load(current.object, run)

        return refresh


def interactive_containers(context: KubeletContext) -> InteractiveContainers:
    """Return the manager's interactive containers; the first call creates them."""
    containers: InteractiveContainers | None = context.shared.get(InteractiveContainers)
    if containers is None:
        for images in context.settings.pack_images:
            IMAGES.add(table_of(images))
        table = context.settings.simulated_images
        if table is not None:
            IMAGES.add(load_table(table))
        containers = context.shared[InteractiveContainers] = InteractiveContainers(context)
    return containers
