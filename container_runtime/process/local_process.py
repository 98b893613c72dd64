"""One process of this machine, in a session of its own, with pipes or a terminal; it is killed with its group."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from mockube.component_base.operating_system import shell_exit_code
from mockube.component_base.supervision import start

from .command import CommandSpec
from .container_launcher import Launch, run_command, watch_command
from .namespaced_process import NamespacedProcess, StartStatus, open_namespaces
from .pseudo_terminal import READ, PseudoTerminal

STDOUT, STDERR = 1, 2

_T = TypeVar("_T")


class GroupWatch:
    """A process that kills the remaining process groups when this process has died, for whatever reason."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._start_lock = asyncio.Lock()

    async def begin(self) -> None:
        async with self._start_lock:
            if self._process is None:
                creation = asyncio.create_subprocess_exec(
                    *watch_command(), stdin=PIPE, stdout=DEVNULL, env={}, start_new_session=True
                )
                await _finish(creation, self._keep)

    def _keep(self, process: Process) -> None:
        self._process = process

    def add(self, group: int) -> None:
        self._send_line(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._send_line(f"-{group}\n")

    def _send_line(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line.encode())

    async def end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            await self._process.wait()


async def _finish(creation: Coroutine[Any, Any, _T], keep: Callable[[_T], None]) -> None:
    """Create something and keep it, even if the caller is cancelled meanwhile, so that somebody can end it.

    A process that nobody knows would outlive its cluster, and uvloop waits for it when it closes.
    """
    task = start("creation of a process", creation)
    try:
        await _wait_although_cancelled(task)
    finally:
        if not task.cancelled() and task.exception() is None:
            keep(task.result())


async def _wait_although_cancelled(task: "asyncio.Task[_T]") -> _T:
    """Wait until a short task is done, and only then pass on the cancellations of the caller."""
    try:
        return await asyncio.shield(task)
    finally:
        while not task.done():  # the caller is cancelled, perhaps again
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])


class ProcessInput(Protocol):
    """The standard input of a process."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def is_closing(self) -> bool: ...

    def close(self) -> None: ...


class _Child:
    """A process that asyncio has started, and waits for."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class LocalProcess:
    def __init__(
        self,
        process: _Child | NamespacedProcess,
        transport: asyncio.SubprocessTransport,
        *,
        outputs: Mapping[int, asyncio.StreamReader],
        stdin: ProcessInput | None,
        terminal: PseudoTerminal | None = None,
        start_status: StartStatus | None = None,
    ) -> None:
        """`outputs` has the readers of the output streams, by number."""
        self._process = process
        self._transport = transport
        self.outputs = outputs
        self.stdin = stdin
        self._terminal = terminal
        self._start_status = start_status

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def wait_for_start(self) -> None:
        """Wait until others can join its namespaces, or it has ended."""
        if self._start_status is not None:
            await asyncio.shield(self._start_status.end)

    async def wait(self) -> int:
        """Wait for the end; return the exit code of a container runtime: 128 plus the signal if it was killed."""
        code = await self._process.wait()
        return shell_exit_code(code)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, but not to its group."""
        if not self.has_ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process and its group."""
        self._process.kill()

    async def end_input(self) -> None:
        """End the standard input after what was written; a terminal sends its character for the end."""
        if self._terminal is not None:
            await self._terminal.end_input()
        elif self.stdin is not None:
            self.stdin.close()

    def resize(self, width: int, height: int) -> None:
        if self._terminal is not None:
            self._terminal.resize(width, height)

    async def end(self) -> None:
        """Kill the process group, and close all streams."""
        self.kill()
        await self._process.wait()
        if self.stdin is not None:
            self.stdin.close()
        if self._terminal is not None:
            self._terminal.close()
        # Another process may keep the pipe open.
        self._transport.close()


async def start_process(spec: CommandSpec, *, stdin: bool = False, terminal: bool = False) -> LocalProcess:
    """Start a command; raise OSError if the process whose namespaces it joins has ended."""
    pty = PseudoTerminal() if terminal else None
    streams: dict[str, Any] = (
        dict.fromkeys(("stdin", "stdout", "stderr"), pty.process_side)
        if pty is not None
        else {"stdin": PIPE if stdin else DEVNULL, "stdout": PIPE, "stderr": PIPE}
    )
    try:
        spawned = await _spawn(spec, streams, pty)
    except BaseException:
        if pty is not None:
            pty.close()
        raise
    process, transport, status, streams_of_asyncio = spawned
    if pty is not None:
        return LocalProcess(
            process,
            transport,
            outputs={STDOUT: pty.reader},
            stdin=pty.input,
            terminal=pty,
            start_status=status,
        )
    assert streams_of_asyncio.stdout is not None
    assert streams_of_asyncio.stderr is not None
    outputs = {STDOUT: streams_of_asyncio.stdout, STDERR: streams_of_asyncio.stderr}
    return LocalProcess(
        process, transport, outputs=outputs, stdin=streams_of_asyncio.stdin, start_status=status
    )


class _Protocol(SubprocessStreamProtocol):
    """Has the end of the process, for which asyncio's `wait` waits longer, until nobody has its streams."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=READ, loop=loop)
        self.exit: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        super().process_exited()
        self.exit.set_result(None)


class _Spawned(NamedTuple):
    process: _Child | NamespacedProcess
    transport: asyncio.SubprocessTransport
    status: StartStatus | None
    launcher: Process
    """The process that asyncio has started, which has the streams."""


async def _spawn(spec: CommandSpec, streams: Mapping[str, Any], terminal: PseudoTerminal | None) -> _Spawned:
    created: list[_Spawned] = []
    try:
        await _finish(_create(spec, streams, terminal), created.append)
    except asyncio.CancelledError:
        for spawned in created:
            spawned.process.kill()
            spawned.transport.close()
            # The loop, which may end now, has to see the exit.
            await _wait_although_cancelled(start("end of a process", spawned.process.wait()))
        raise
    (spawned,) = created
    return spawned


async def _create(spec: CommandSpec, streams: Mapping[str, Any], terminal: PseudoTerminal | None) -> _Spawned:
    """Start the launcher, and learn which process it has started in another namespace, if it has."""
    status = StartStatus() if spec.joined or spec.has_own_processes else None
    try:
        transport, protocol = await _start_launcher(spec, streams, status, has_terminal=terminal is not None)
    except BaseException:
        if status is not None:
            status.close()
        raise
    launcher = Process(transport, protocol, asyncio.get_running_loop())
    on_exit = terminal.finish if terminal is not None else lambda: None
    pid = 0 if status is None else await status.pid()
    if pid:
        await asyncio.shield(protocol.exit)  # It has nothing more to do.
        try:
            own = NamespacedProcess(pid, ends_group=not spec.is_command, on_exit=on_exit)
        except OSError:
            transport.close()
            raise
        return _Spawned(own, transport, status, launcher)
    protocol.exit.add_done_callback(lambda _: on_exit())
    return _Spawned(_Child(launcher), transport, None, launcher)


async def _start_launcher(
    spec: CommandSpec, streams: Mapping[str, Any], status: StartStatus | None, *, has_terminal: bool
) -> tuple[asyncio.SubprocessTransport, _Protocol]:
    loop = asyncio.get_running_loop()
    with open_namespaces(spec.joined, spec.joined_kinds) as joined:
        return await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *run_command(spec.argv, _launch(spec, joined, status, has_terminal=has_terminal)),
            **streams,
            cwd=spec.directory,
            env=dict(spec.environment),
            start_new_session=True,
            pass_fds=(*spec.network, *joined, *(() if status is None else (status.write_end,))),
        )


def _launch(
    spec: CommandSpec, joined: Sequence[int], status: StartStatus | None, *, has_terminal: bool
) -> Launch:
    identity = spec.identity
    return Launch(
        user=identity.user,
        groups=(*identity.groups,),
        terminal=has_terminal,
        namespaces=(*spec.network, *joined),
        hostname=spec.hostname if spec.network else "",
        mounts=() if spec.mounts is None else spec.mounts.fields(),
        root=spec.root,
        status=-1 if status is None else status.write_end,
        has_new_processes=spec.has_own_processes,
        shows_processes=status is not None and not spec.is_command,
        capabilities=spec.capabilities,
        gains_nothing=spec.gains_nothing,
        memory_group=spec.memory_group,
    )


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """Return the next bytes; b"" at the end, at which a terminal raises an error."""
    try:
        return await reader.read(READ)
    except OSError:
        return b""
