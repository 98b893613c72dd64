"""The two processes of a cluster, started and ended in the right order.

The API server comes first and goes last, so that the controller manager can give its lease back. Both are in process
groups of their own: what a terminal sends at Ctrl+C reaches this process alone, which passes it on in that order.
"""

import asyncio
import os
import signal
import socket
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What says stop; the last is sent when the terminal is closed."""

_NOTHING: Mapping[str, str] = {}


class Cluster:
    """An API server and a controller manager, by the commands that start them."""

    def __init__(self, *, server: Sequence[str], manager: Sequence[str]) -> None:
        self._server = server
        self._manager = manager
        self._processes: list[Process] = []
        self._stopping = asyncio.Event()

    async def run(self, *, once_ready: Callable[[], None]) -> int:
        """Until a signal says stop, or one of the two ends by itself; answers with an exit code."""
        self._heed_signals()
        with _readiness() as (told, environment):
            async with self._process(self._server, environment) as server:
                await _first(told.wait(), server.wait(), self._stopping.wait())
                if told.is_set() and not self._stopping.is_set():
                    async with self._process(self._manager) as manager:
                        once_ready()
                        await _first(server.wait(), manager.wait(), self._stopping.wait())
        return self._code()

    @asynccontextmanager
    async def _process(
        self, command: Sequence[str], environment: Mapping[str, str] = _NOTHING
    ) -> AsyncIterator[Process]:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **environment}, process_group=0
        )
        self._processes.append(process)
        try:
            yield process
        finally:
            _end(process, signal.SIGTERM)
            await process.wait()

    def _code(self) -> int:
        """Of the first that failed, as shells tell it. Whoever ends without being asked has failed."""
        codes = [process.returncode or 0 for process in self._processes]
        failed = next(filter(None, codes), 0 if self._stopping.is_set() else 1)
        return failed if failed >= 0 else 128 - failed

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        """At the second signal nobody is waited for any more."""
        if self._stopping.is_set():
            for process in self._processes:
                _end(process, signal.SIGKILL)
        self._stopping.set()


def _end(process: Process, number: signal.Signals) -> None:
    """Not by the methods of `Process`, which take the exit code away from who waits for it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(process.pid, number)


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


async def _first(*waiting: Coroutine[Any, Any, Any]) -> None:
    """Until one of them is done; the others are waited for no more."""
    tasks = {asyncio.create_task(one) for one in waiting}
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
