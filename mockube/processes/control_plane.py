"""The two processes of a control plane, started and ended in the right order, and work done while they run.

The API server starts first and ends last, so that the controller manager can release its lease. The manager is
restarted when it ends; when the server ends, everything ends.
"""

import asyncio
import signal
import socket
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from mockube.apimachinery.clock import Clock
from mockube.processes.child_processes import Processes, Program, shell_code, wait_first
from mockube.processes.supervised_process import Report, SupervisedProcess

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that stop the run; the last is sent when the terminal is closed."""


class NotReady(Exception):
    """One of the two has ended, or a signal was received, before the API server was ready."""


class ControlPlane:
    def __init__(self, *, server: Program, manager: Program, clock: Clock, report: Report) -> None:
        self._programs = (server, manager)
        self._report = report
        self._stopping = asyncio.Event()
        self._server: Process
        self._killed = False
        self.processes = Processes()
        self.manager = SupervisedProcess(manager, self.processes, clock=clock, report=report)
        self.stopped_by = 0
        """The signal that stopped the run, if any."""
        self.failed: Program | None = None
        """Which of the two has ended all by ending, if one has."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run both processes; yields once the server is ready and the manager may begin."""
        server, _ = self._programs
        with readiness() as (server_ready, environment):
            async with (
                self.processes.start_program(server, environment, stdin=DEVNULL) as self._server,
                self.manager.running(),
            ):
                await wait_first(server_ready.wait(), self.wait_over())
                if self.is_over:
                    raise NotReady
                self.manager.begin()
                yield

    async def wait_over(self) -> None:
        """Wait until a signal is received, or the server has ended, or the manager is not restarted."""
        await wait_first(self._stopping.wait(), self._server.wait(), self.manager.wait_given_up())
        server, manager = self._programs
        if not self._stopping.is_set():
            self.failed = manager if self._server.returncode is None else server

    @property
    def is_over(self) -> bool:
        return self._stopping.is_set() or self.failed is not None

    @property
    def server_pid(self) -> int:
        return self._server.pid

    def code(self, *, stopped: int) -> int:
        """`stopped`, if a signal was received and nothing failed. A process that ends by itself has failed."""
        if self._killed:
            return 128 + signal.SIGKILL
        server = self._server.returncode or 0
        if self._stopping.is_set():
            return stopped if server <= 0 else server
        return self.manager.code if self.failed is self._programs[1] else shell_code(server) or 1

    def heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # under `nohup`
                loop.add_signal_handler(number, self._stop, number)

    def stop(self) -> None:
        self._stopping.set()

    def _stop(self, number: int) -> None:
        """The second signal kills both processes at once."""
        if self.stopped_by:
            self._killed = True
            self.processes.kill()
        else:
            self._report("stopping; a second signal kills")
        self.stopped_by = number
        self.stop()


@contextmanager
def readiness() -> Iterator[tuple[asyncio.Event, Mapping[str, str]]]:
    """Yield an event that is set once a process is ready, and the environment by which it reports that, as to systemd."""
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver,
    ):
        address = str(Path(folder, "ready"))
        receiver.bind(address)

        def hear() -> None:
            receiver.recv(4096)
            ready.set()

        loop.add_reader(receiver, hear)
        try:
            yield ready, {"NOTIFY_SOCKET": address}
        finally:
            loop.remove_reader(receiver)
