"""One process of this machine, in a session of its own, with pipes or a terminal; it is killed with its group."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from mockube.component_base.supervision import start

from .command import CommandSpec
from .container_launcher import run_command, watch_command
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

    def close(self) -> None: ...


class LocalProcess:
    def __init__(
        self,
        process: Process,
        transport: asyncio.SubprocessTransport,
        *,
        outputs: Mapping[int, asyncio.StreamReader],
        stdin: ProcessInput | None,
        terminal: PseudoTerminal | None = None,
    ) -> None:
        """`outputs` has the readers of the output streams, by number."""
        self._process = process
        self._transport = transport
        self.outputs = outputs
        self.stdin = stdin
        self._terminal = terminal

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """Wait for the end; return the exit code of a container runtime: 128 plus the signal if it was killed."""
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, but not to its group."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process and its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

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
    command = run_command(
        spec.argv,
        user=spec.identity.user,
        groups=spec.identity.groups,
        terminal=terminal,
        network=spec.network,
        hostname=spec.hostname,
        mounts="" if spec.mounts is None else spec.mounts.text(),
    )
    options: dict[str, Any] = {
        "cwd": spec.directory,
        "env": dict(spec.environment),
        "start_new_session": True,
        "pass_fds": spec.network,
    }
    if terminal:
        return await _start_in_terminal(command, options)
    process, transport, _ = await _spawn(
        command, {**options, "stdin": PIPE if stdin else DEVNULL, "stdout": PIPE, "stderr": PIPE}
    )
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = {STDOUT: process.stdout, STDERR: process.stderr}
    return LocalProcess(process, transport, outputs=outputs, stdin=process.stdin)


class _Protocol(SubprocessStreamProtocol):
    """Calls `on_exit` at the end of the process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=READ, loop=loop)
        self.on_exit: Callable[[], None] = lambda: None

    def process_exited(self) -> None:
        super().process_exited()
        self.on_exit()


async def _spawn(
    command: Sequence[str], options: Mapping[str, Any]
) -> tuple[Process, asyncio.SubprocessTransport, _Protocol]:
    loop = asyncio.get_running_loop()
    created: list[tuple[asyncio.SubprocessTransport, _Protocol]] = []
    try:
        await _finish(loop.subprocess_exec(lambda: _Protocol(loop), *command, **options), created.append)
    except asyncio.CancelledError:
        for transport, protocol in created:
            with suppress(ProcessLookupError):
                transport.kill()
            transport.close()
            # The loop, which may end now, has to see the exit.
            await _wait_although_cancelled(
                start("end of a process", Process(transport, protocol, loop).wait())
            )
        raise
    ((transport, protocol),) = created
    return Process(transport, protocol, loop), transport, protocol


async def _start_in_terminal(command: Sequence[str], options: Mapping[str, Any]) -> LocalProcess:
    terminal = PseudoTerminal()
    try:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.process_side)
        process, transport, protocol = await _spawn(command, {**options, **streams})
    except BaseException:
        terminal.close()
        raise
    protocol.on_exit = terminal.finish
    if process.returncode is not None:
        terminal.finish()
    return LocalProcess(
        process, transport, outputs={STDOUT: terminal.reader}, stdin=terminal.input, terminal=terminal
    )


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """Return the next bytes; b"" at the end, at which a terminal raises an error."""
    try:
        return await reader.read(READ)
    except OSError:
        return b""
