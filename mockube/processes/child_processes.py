"""Child processes: they end with the block that started them, and with this process; one kind is restarted.

The programs of a control plane are in process groups of their own: the signal that a terminal sends at Ctrl+C reaches
this process alone, which passes it on in the right order.
"""

import asyncio
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.kubelet.processes.launcher import run_command
from mockube.controller_manager.supervision import run_with
from mockube.processes.preimport import START

NO_VARIABLES: Final[Mapping[str, str]] = {}

FIRST_DELAY: Final = 1.0
MAX_DELAY: Final = 30.0
STABLE_SECONDS: Final = 60.0
"""Seconds of health after which the backoff is reset."""

USAGE: Final = 2
"""The exit code of a program that rejects its command line."""

Report: TypeAlias = Callable[[str], None]

_CONTENT: Final = re.compile(r"[IW]\d{4} ")
"""A line that is neither a warning nor an error."""
_HEAD: Final = re.compile(r"^[EF]\d{4} \S+ +\d+ \S+?\] |^.*?: error: |^mockube: ")
_TAIL_BYTES: Final = 4096


class Program(Struct, frozen=True, kw_only=True):
    """One of the two programs of a control plane."""

    name: str
    command: Sequence[str]
    log: Path | None = None
    """The file of its log; None for this process's stderr."""


class Processes:
    """All child processes that run, so that they can be killed at once."""

    def __init__(self) -> None:
        self._live: set[Process] = set()

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], environment: Mapping[str, str] = NO_VARIABLES, **options: Any
    ) -> AsyncIterator[Process]:
        process = await asyncio.create_subprocess_exec(
            *run_command(command), env={**os.environ, **environment}, **options
        )
        self._live.add(process)
        try:
            yield process
        finally:
            send(process, signal.SIGTERM)
            await process.wait()
            self._live.discard(process)

    @asynccontextmanager
    async def start_program(
        self, program: Program, environment: Mapping[str, str] = NO_VARIABLES, **options: Any
    ) -> AsyncIterator[Process]:
        with program.log.open("ab") if program.log else nullcontext() as log:
            async with self.start(
                program.command, environment, process_group=0, stderr=log, **options
            ) as process:
                yield process

    def kill(self) -> None:
        for process in self._live:
            send(process, signal.SIGKILL)


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal, without the methods of `Process`, which take the exit code away from the waiting caller."""
    if process.returncode is None:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(process.pid, number)


def shell_code(code: int) -> int:
    """The exit code in shells: 128 and more if a signal has ended the process."""
    return code if code >= 0 else 128 - code


async def wait_first(*waiting: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them is done, raise its failure, and cancel the others."""
    tasks = {asyncio.create_task(coroutine) for coroutine in waiting}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in done:
        task.result()


# --- restarts


class SupervisedProcess:
    """A program that is restarted when it ends, with backoff, unless it rejects its command line."""

    def __init__(self, program: Program, processes: Processes, *, clock: Clock, report: Report) -> None:
        self._program = program
        self._processes = processes
        self._clock = clock
        self._report = report
        self._may_begin = asyncio.Event()
        self._restarting: asyncio.Task[None]
        self.pid = 0
        """0 while it does not run."""
        self.restarts = 0
        self.changed: Callable[[], None] = _ignore_change
        """Called after each start and each end."""
        self.code = 0
        """The exit code of a program that is not restarted."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The process is started at once, and waits for `begin`."""
        self._restarting = asyncio.create_task(self._keep(), name=f"restarts of the {self._program.name}")
        try:
            yield
        finally:
            self._restarting.cancel()
            with suppress(asyncio.CancelledError):
                await self._restarting

    def begin(self) -> None:
        self._may_begin.set()

    async def wait_restarts_exhausted(self) -> None:
        """Wait until the program is not restarted any more. Raise the error that prevents a restart."""
        await asyncio.shield(self._restarting)

    async def _keep(self) -> None:
        delay = FIRST_DELAY
        while True:
            began = self._clock.monotonic()
            self.code = shell_code(await self._run_once())
            if self.code == USAGE:
                return
            if self._clock.monotonic() - began >= STABLE_SECONDS:
                delay = FIRST_DELAY
            self._report(f"{exit_message(self._program, self.code)}; it is restarted in {delay:g} s")
            await self._clock.sleep(delay)
            self.restarts += 1
            delay = min(2 * delay, MAX_DELAY)

    async def _run_once(self) -> int:
        async with self._processes.start_program(self._program, stdin=PIPE) as process:
            self.pid = process.pid
            self.changed()
            releasing = asyncio.create_task(self._release(process), name=f"begin of the {self._program.name}")
            try:
                return await run_with(process.wait(), beside=[releasing])
            finally:
                self.pid = 0
                self.changed()

    async def _release(self, process: Process) -> None:
        await self._may_begin.wait()
        assert process.stdin is not None
        process.stdin.write(START)


def _ignore_change() -> None:
    """The default for `changed`."""


def exit_message(program: Program, code: int) -> str:
    last_error = last_error_line(program.log) if program.log is not None else ""
    return f"the {program.name} exited with code {code}{f': {last_error}' if last_error else ''}"


def last_error_line(log: Path) -> str:
    """Return the last line of the log if it is an error or a warning, or ""."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return "" if not lines or _CONTENT.match(lines[-1]) else _HEAD.sub("", lines[-1])
