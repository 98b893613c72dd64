"""Processes that end with the block they are started for, and with this one, however it ends (`tie`).

Those of a control plane are in process groups of their own: what a terminal sends at Ctrl+C reaches this process alone,
which passes it on in the right order.
"""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mockube.controller_manager.kubelet.processes.launcher import run_command

NO_VARIABLES: Final[Mapping[str, str]] = {}


class Program(Struct, frozen=True, kw_only=True):
    """One half of a control plane."""

    name: str
    command: Sequence[str]
    log: Path | None = None
    """Where it writes what it logs; on this process's stderr if nowhere else."""


class Processes:
    """All that run, so that they can be killed at once."""

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
    """Not by the methods of `Process`, which take the exit code away from the waiting caller."""
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
