"""The two processes of a control plane, started and ended in the right order, and work done while they run.

The API server comes first and goes last, so that the controller manager can give its lease back. Both are in process
groups of their own: what a terminal sends at Ctrl+C reaches this process alone, which passes it on in that order.
Nothing that is started here outlives this process (`tie`).
"""

import asyncio
import os
import signal
import socket
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from mockube.plane.tie import tied

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What says stop; the last is sent when the terminal is closed."""

_NOTHING: Mapping[str, str] = {}


class NotReady(Exception):
    """The API server has ended, or a signal has said stop, before it was ready."""


class ControlPlane:
    """An API server and a controller manager, by the commands that start them."""

    def __init__(self, *, server: Sequence[str], manager: Sequence[str], log: Path | None = None) -> None:
        self._server = server
        self._manager = manager
        self._log = log
        self._processes: list[Process] = []
        self._stopping = asyncio.Event()
        self.stopped_by = 0
        """The signal that said stop, if one has."""

    async def supervise(self, *, once_ready: Callable[[], None]) -> int:
        """Until a signal says stop, or one of the two ends by itself; answers with an exit code."""
        self.heed_signals()
        with suppress(NotReady):
            async with self.running():
                once_ready()
                await self.wait_over()
        return self.code(stopped=0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From when the server is ready and the manager has been started."""
        with _readiness() as (told, environment):
            async with self._controlling(self._server, environment) as server:
                await first(told.wait(), server.wait(), self._stopping.wait())
                if self._stopping.is_set() or not told.is_set():
                    raise NotReady
                async with self._controlling(self._manager):
                    yield

    async def wait_over(self) -> None:
        """Until a signal says stop, or one of the processes has ended."""
        await first(self._stopping.wait(), *(process.wait() for process in self._processes))

    @property
    def is_over(self) -> bool:
        return self._stopping.is_set() or any(process.returncode is not None for process in self._processes)

    def code(self, *, stopped: int) -> int:
        """Of the first that failed, else `stopped` if a signal said stop. Whoever ends without being asked has failed."""
        codes = [process.returncode or 0 for process in self._processes]
        return shell_code(next(filter(None, codes), stopped if self._stopping.is_set() else 1))

    def heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        """At the second signal nobody is waited for any more."""
        if self._stopping.is_set():
            for process in self._processes:
                _send(process, signal.SIGKILL)
        self.stopped_by = number
        self._stopping.set()

    @asynccontextmanager
    async def process(
        self, command: Sequence[str], environment: Mapping[str, str], **options: Any
    ) -> AsyncIterator[Process]:
        """One more process, which ends with the block."""
        process = await asyncio.create_subprocess_exec(
            *tied(command), env={**os.environ, **environment}, **options
        )
        self._processes.append(process)
        try:
            yield process
        finally:
            _send(process, signal.SIGTERM)
            await process.wait()

    @asynccontextmanager
    async def _controlling(
        self, command: Sequence[str], environment: Mapping[str, str] = _NOTHING
    ) -> AsyncIterator[Process]:
        with self._log.open("ab") if self._log else nullcontext() as log:
            async with self.process(command, environment, process_group=0, stderr=log) as process:
                yield process


def shell_code(code: int) -> int:
    """As shells tell it: 128 and more if a signal has ended the process."""
    return code if code >= 0 else 128 - code


def _send(process: Process, number: signal.Signals) -> None:
    """Not by the methods of `Process`, which take the exit code away from who waits for it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(process.pid, number)


@contextmanager
def _readiness() -> Iterator[tuple[asyncio.Event, Mapping[str, str]]]:
    """Set once a process has said that it is ready, as to systemd; and the environment that tells it where to say so."""
    said, loop = asyncio.Event(), asyncio.get_running_loop()
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver,
    ):
        address = str(Path(folder, "ready"))
        receiver.bind(address)

        def hear() -> None:
            receiver.recv(4096)
            said.set()

        loop.add_reader(receiver, hear)
        try:
            yield said, {"NOTIFY_SOCKET": address}
        finally:
            loop.remove_reader(receiver)


async def first(*waiting: Coroutine[Any, Any, Any]) -> None:
    """Until one of them is done, whose failure is raised; the others are waited for no more."""
    tasks = {asyncio.create_task(one) for one in waiting}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in done:
        task.result()
