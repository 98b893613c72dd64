"""A program that is started again when it fails, ever later if it fails at once.

What it was started with is the same each time: if that is what it complains about, it is left alone.
"""

import asyncio
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from mockube.apimachinery.clock import Clock
from mockube.processes.child_processes import Processes, Program, shell_code
from mockube.processes.preimport import GO

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 30.0
STEADY: Final = 60.0
"""Seconds of health after which the backoff is reset."""

USAGE: Final = 2
"""The exit code of a program that does not understand its command line."""

Report: TypeAlias = Callable[[str], None]


class SupervisedProcess:
    def __init__(self, program: Program, processes: Processes, *, clock: Clock, report: Report) -> None:
        self._program = program
        self._processes = processes
        self._clock = clock
        self._report = report
        self._may_begin = asyncio.Event()
        self._given_up = asyncio.Event()
        self.pid = 0
        """0 while it does not run."""
        self.restarts = 0
        self.changed: Callable[[], None] = _ignore_change
        """Called when it has been started, and when it has ended."""
        self.code = 0
        """With which it ended, if it is left alone."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The process is started at once, and waits for `begin`."""
        task = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def begin(self) -> None:
        self._may_begin.set()

    async def wait_given_up(self) -> None:
        await self._given_up.wait()

    async def _keep(self) -> None:
        delay = FIRST_DELAY
        while True:
            began = self._clock.monotonic()
            self.code = shell_code(await self._run_once())
            if self.code == USAGE:
                self._given_up.set()
                return
            if self._clock.monotonic() - began >= STEADY:
                delay = FIRST_DELAY
            self._report(f"{exit_message(self._program, self.code)}; it is restarted in {delay:g} s")
            await self._clock.sleep(delay)
            self.restarts += 1
            delay = min(2 * delay, LONGEST_DELAY)

    async def _run_once(self) -> int:
        async with self._processes.start_program(self._program, stdin=PIPE) as process:
            self.pid = process.pid
            self.changed()
            telling = asyncio.create_task(self._release(process))
            try:
                return await process.wait()
            finally:
                telling.cancel()
                self.pid = 0
                self.changed()

    async def _release(self, process: Process) -> None:
        await self._may_begin.wait()
        assert process.stdin is not None
        process.stdin.write(GO)


def _ignore_change() -> None:
    """The default for `changed`."""


_CONTENT: Final = re.compile(r"[IW]\d{4} ")
"""A line that is neither a warning nor an error."""
_HEAD: Final = re.compile(r"^[EF]\d{4} \S+ +\d+ \S+?\] |^.*?: error: |^mockube: ")
_TAIL_BYTES: Final = 4096


def exit_message(program: Program, code: int) -> str:
    last_error = last_error_line(program.log) if program.log is not None else ""
    return f"the {program.name} exited with code {code}{f': {last_error}' if last_error else ''}"


def last_error_line(log: Path) -> str:
    """Nothing, if it did not complain."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return "" if not lines or _CONTENT.match(lines[-1]) else _HEAD.sub("", lines[-1])
