"""Child processes, which are stopped at the end of their block and killed when this process dies, and restarts of a program.

The programs of a control plane are in process groups of their own: the signal that a terminal sends at Ctrl+C reaches
only this process, which stops the programs in the right order.
"""

import asyncio
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.component_base.clock import Clock
from mockube.component_base.launcher import run_command
from mockube.component_base.operating_system import shell_exit_code
from mockube.component_base.supervision import RestartBackoff, run_with

from .preimport import START

NO_VARIABLES: Final[Mapping[str, str]] = {}

FIRST_DELAY: Final = 1.0
MAX_DELAY: Final = 30.0
STABLE_SECONDS: Final = 60.0
"""A program that has run for so long is restarted with the first delay again."""

USAGE_ERROR: Final = 2
"""The exit code of a program that rejects its command line."""

Report: TypeAlias = Callable[[str], None]

_NON_ERROR_LINE: Final = re.compile(r"[IW]\d{4} ")
"""The beginning of a log line that is information or a warning."""
_LINE_PREFIX: Final = re.compile(r"^[EF]\d{4} \S+ +\d+ \S+?\] |^.*?: error: |^mockube: ")
_TAIL_BYTES: Final = 4096


class ControlPlaneProgram(Struct, frozen=True, kw_only=True):
    """One of the two programs of a control plane."""

    name: str
    command: Sequence[str]
    log: Path | None = None
    """The log file; None for this process's stderr."""


class Processes:
    """The running child processes, which can be killed together."""

    def __init__(self) -> None:
        self._live: set[Process] = set()

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], environment: Mapping[str, str | None] = NO_VARIABLES, **options: Any
    ) -> AsyncIterator[Process]:
        """Start a process with more environment variables, and without those that are None."""
        variables = {**os.environ, **environment}
        process = await asyncio.create_subprocess_exec(
            *run_command(command),
            env={name: value for name, value in variables.items() if value is not None},
            **options,
        )
        self._live.add(process)
        try:
            yield process
        finally:
            send_signal(process, signal.SIGTERM)
            await process.wait()
            self._live.discard(process)

    @asynccontextmanager
    async def start_program(
        self,
        program: ControlPlaneProgram,
        environment: Mapping[str, str | None] = NO_VARIABLES,
        **options: Any,
    ) -> AsyncIterator[Process]:
        with program.log.open("ab") if program.log else nullcontext() as log:
            async with self.start(
                program.command, environment, process_group=0, stderr=log, **options
            ) as process:
                yield process

    def kill(self) -> None:
        for process in self._live:
            send_signal(process, signal.SIGKILL)


def send_signal(process: Process, number: signal.Signals) -> None:
    """Send a signal by process id: the methods of `Process` would poll the exit code and hide it from the waiting caller."""
    if process.returncode is None:
        with suppress(ProcessLookupError):  # the process has just exited
            os.kill(process.pid, number)


# --- restarts


class SupervisedProcess:
    """A program that is restarted when it ends, with backoff, unless it rejects its command line."""

    def __init__(
        self,
        program: ControlPlaneProgram,
        processes: Processes,
        *,
        clock: Clock,
        report: Report,
        on_change: Callable[[], None],
    ) -> None:
        """`on_change` is called after each start and exit."""
        self._program = program
        self._processes = processes
        self._clock = clock
        self._report = report
        self._may_start = asyncio.Event()
        self._restarts: asyncio.Task[None]
        self.pid = 0
        """The process id; 0 while the program does not run."""
        self.restarts = 0
        self._on_change = on_change
        self.code = 0
        """The exit code of a program that is not restarted."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the process, which waits for `begin`; stop it at the end of the block."""
        self._restarts = asyncio.create_task(
            self._run_with_restarts(), name=f"restarts of the {self._program.name}"
        )
        try:
            yield
        finally:
            self._restarts.cancel()
            with suppress(asyncio.CancelledError):
                await self._restarts

    def begin(self) -> None:
        self._may_start.set()

    async def wait_restarts_exhausted(self) -> None:
        """Wait until the program is no longer restarted; raise the error that prevents a restart."""
        await asyncio.shield(self._restarts)

    async def _run_with_restarts(self) -> None:
        backoff = RestartBackoff(
            self._clock, first_delay=FIRST_DELAY, max_delay=MAX_DELAY, healthy_after=STABLE_SECONDS
        )
        while True:
            backoff.begin()
            self.code = shell_exit_code(await self._run_once())
            if self.code == USAGE_ERROR:
                return
            delay = backoff.next_delay()
            self._report(f"{exit_message(self._program, self.code)}; it is restarted in {delay:g} s")
            await self._clock.sleep(delay)
            self.restarts += 1

    async def _run_once(self) -> int:
        async with self._processes.start_program(self._program, stdin=PIPE) as process:
            self.pid = process.pid
            self._on_change()
            start_task = asyncio.create_task(
                self._send_start(process), name=f"begin of the {self._program.name}"
            )
            try:
                return await run_with(process.wait(), background_tasks=[start_task])
            finally:
                self.pid = 0
                self._on_change()

    async def _send_start(self, process: Process) -> None:
        await self._may_start.wait()
        assert process.stdin is not None
        process.stdin.write(START)


def exit_message(program: ControlPlaneProgram, code: int) -> str:
    last_error = last_error_line(program.log) if program.log is not None else ""
    return f"the {program.name} exited with code {code}{f': {last_error}' if last_error else ''}"


def last_error_line(log: Path) -> str:
    """Return the message of the log's last line, or "" if that line is information or a warning."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return "" if not lines or _NON_ERROR_LINE.match(lines[-1]) else _LINE_PREFIX.sub("", lines[-1])
