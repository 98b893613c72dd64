"""The two processes of a control plane: their command lines, and their start and stop in the right order.

The API server starts first and stops last, so that the controller manager can release its lease. The manager is
restarted when it exits; if the server exits, the manager is stopped.
"""

import asyncio
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from mockube.component_base import component_urls
from mockube.component_base.clock import Clock
from mockube.component_base.operating_system import shell_exit_code
from mockube.component_base.supervision import wait_first
from mockube.launch import MEMORY, LaunchOptions, temporary_server_flags

from .child_processes import ControlPlaneProgram, Processes, Report, SupervisedProcess

SERVER: Final = "apiserver"
MANAGER: Final = "controller-manager"

PYTHON: Final = (sys.executable, "-P")
"""The interpreter, which must not import modules of the current folder."""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that stop the run; SIGHUP is sent when the terminal is closed."""


class NotReady(Exception):
    """A process exited, or a signal was received, before the API server was ready."""


class ControlPlane:
    """One run of the two processes of a control plane."""

    def __init__(
        self,
        *,
        server: ControlPlaneProgram,
        manager: ControlPlaneProgram | None,
        clock: Clock,
        report: Report,
        on_change: "Callable[[ControlPlane], None]" = lambda _: None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_change` is called after each start and exit of the manager, `prepare` in a thread before its start.

        Without a manager, the server's process runs both programs.
        """
        self._program, self._manager_program = server, manager
        self._report = report
        self._prepare = prepare
        self._stopping = asyncio.Event()
        self._server: Process
        self._killed = False
        self.processes = Processes()
        self.manager = (
            None
            if manager is None
            else SupervisedProcess(
                manager, self.processes, clock=clock, report=report, on_change=lambda: on_change(self)
            )
        )
        self.stopped_by = 0
        """The signal that stopped the run, if any."""
        self.failed: ControlPlaneProgram | None = None
        """The program whose exit ended the run, if any."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run both processes during the block, which begins when the server is ready; raise NotReady if it does not become ready."""
        if self.manager is None:
            await asyncio.to_thread(self._prepare)
        with readiness_socket() as (server_ready, environment):
            async with (
                self.processes.start_program(self._program, environment, stdin=DEVNULL) as self._server,
                nullcontext() if self.manager is None else self.manager.running(),
            ):
                if self.manager is None:
                    await wait_first(_result_of(server_ready), self.wait_until_stopped())
                else:
                    preparation = asyncio.create_task(asyncio.to_thread(self._prepare))
                    await wait_first(_result_of(server_ready), self.wait_until_stopped())
                    await preparation
                if self.is_over:
                    raise NotReady
                if self.manager is not None:
                    self.manager.begin()
                yield

    async def wait_until_stopped(self) -> None:
        """Wait until a signal is received, the server has exited, or the manager is no longer restarted."""
        manager = () if self.manager is None else (self.manager.wait_restarts_exhausted(),)
        await wait_first(self._stopping.wait(), self._server.wait(), *manager)
        if not self._stopping.is_set():
            has_server_ended = self.manager is None or self._server.returncode is not None
            self.failed = self._program if has_server_ended else self._manager_program

    @property
    def is_over(self) -> bool:
        return self._stopping.is_set() or self.failed is not None

    @property
    def pids(self) -> Mapping[str, tuple[int, int]]:
        """The process of each program, 0 while it does not run, and how often it was restarted."""
        server = self._server.pid
        manager = (server, 0) if self.manager is None else (self.manager.pid, self.manager.restarts)
        return {SERVER: (server, 0), MANAGER: manager}

    def code(self, *, stopped: int) -> int:
        """Return the exit code: `stopped` if a signal ended the run and nothing failed. A process that exits by itself has failed."""
        if self._killed:
            return 128 + signal.SIGKILL
        server = self._server.returncode or 0
        if self._stopping.is_set():
            return stopped if server <= 0 else server
        if self.manager is not None and self.failed is self._manager_program:
            return self.manager.code
        return shell_exit_code(server) or 1

    def handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # under `nohup`
                loop.add_signal_handler(number, self._stop, number)

    def stop(self) -> None:
        self._stopping.set()

    def _stop(self, number: int) -> None:
        """Stop the run; a second signal kills both processes."""
        if self.stopped_by:
            self._killed = True
            self.processes.kill()
        else:
            self._report("stopping; a second signal kills the processes")
        self.stopped_by = number
        self.stop()


@contextmanager
def readiness_socket() -> Iterator[tuple[asyncio.Future[None], Mapping[str, str]]]:
    """Yield a future that is done when a process is ready, and the environment by which it notifies that, as to systemd."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver,
    ):
        address = str(Path(folder, "ready"))
        receiver.bind(address)
        receiver.setblocking(False)  # noqa: FBT003 - a method of the standard library
        loop.add_reader(receiver, _receive_message, receiver, ready)
        try:
            yield ready, {"NOTIFY_SOCKET": address}
        finally:
            loop.remove_reader(receiver)


def _receive_message(receiver: socket.socket, ready: asyncio.Future[None]) -> None:
    """Complete the future at the first message, or with the error: an error in the callback would be logged repeatedly."""
    asyncio.get_running_loop().remove_reader(receiver)
    try:
        receiver.recv(4096)
    except OSError as error:
        if not ready.done():
            ready.set_exception(error)
    else:
        if not ready.done():
            ready.set_result(None)


async def _result_of(future: asyncio.Future[None]) -> None:
    await future


# --- the command lines


class Launch(LaunchOptions, frozen=True, kw_only=True):
    """The options and files of the two processes."""

    kubeconfig: Path
    """The administrator's kubeconfig, which the server writes when it listens."""
    logs: Path
    """The folder of the log files, one for each process."""

    @property
    def manager_kubeconfig(self) -> Path:
        """The manager's own kubeconfig: it has only the permissions of its roles."""
        return self.kubeconfig.with_name("controller-manager.kubeconfig")

    @property
    def component_urls(self) -> Path:
        """The file in which the API server finds where the manager listens."""
        return self.kubeconfig.with_name(component_urls.FILE_NAME)

    @property
    def installation(self) -> Path:
        """The file that tells the manager what kubeadm has installed."""
        return self.kubeconfig.with_name("installation.json")

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"


def control_plane(
    launch: Launch,
    *,
    clock: Clock,
    report: Report,
    on_change: Callable[[ControlPlane], None] = lambda _: None,
    store: str = MEMORY,
    one_process: bool = False,
) -> ControlPlane:
    """Return a run of both programs; `on_change` is called after each start and exit of the manager. `store` names where objects are."""
    kubeconfig = str(launch.manager_kubeconfig)
    installation = ("--installation", str(launch.installation)) if launch.is_kubeadm else ()
    server = [
        *("--write-kubeconfig", str(launch.kubeconfig), "--write-manager-kubeconfig", kubeconfig),
        *(() if one_process else ("--component-urls", str(launch.component_urls))),
        *launch.server_arguments(),
    ]
    manager = [
        *("--kubeconfig", kubeconfig, "--use-service-account-credentials", "true"),
        *("--secure-port", "0", "--metrics-port", "0"),
        *(() if one_process else ("--write-component-urls", str(launch.component_urls))),
        # It keeps its caches when the machine is too busy to renew the lease, because there is no other manager.
        *("--leader-elect-sole-candidate", "true", *installation),
        *("--pod-logs-dir", str(launch.logs / "pods"), *launch.manager_arguments()),
    ]
    programs = (_in_one_process if one_process else _in_two_processes)(launch, server, manager)
    return ControlPlane(
        server=programs[0],
        manager=programs[1],
        clock=clock,
        report=report,
        on_change=on_change,
        prepare=partial(_write_installation, launch, store),
    )


def _in_two_processes(
    launch: Launch, server: Sequence[str], manager: Sequence[str]
) -> tuple[ControlPlaneProgram, ControlPlaneProgram | None]:
    command = [*PYTHON, "-m", "mockube.apiserver", *server]
    preimport = preimport_command(PYTHON, "mockube.controller_manager", manager)
    return (
        ControlPlaneProgram(name=SERVER, command=command, log=launch.log(SERVER)),
        ControlPlaneProgram(name=MANAGER, command=preimport, log=launch.log(MANAGER)),
    )


def _in_one_process(
    launch: Launch, server: Sequence[str], manager: Sequence[str]
) -> tuple[ControlPlaneProgram, ControlPlaneProgram | None]:
    files = (str(launch.logs.parent), str(launch.log(MANAGER)))
    command = [*PYTHON, "-m", "mockube.one_process", *files, "--", *server, "--", *manager]
    return ControlPlaneProgram(name=SERVER, command=command, log=launch.log(SERVER)), None


def _write_installation(launch: Launch, store: str) -> None:
    if launch.is_kubeadm:
        # It is imported while the API server starts.
        from mockube.kubeadm.installation import write_installation  # noqa: PLC0415

        logs = {"kube-apiserver": launch.log(SERVER), "kube-controller-manager": launch.log(MANAGER)}
        write_installation(launch.installation, launch, logs, store)


def preimport_command(python: Sequence[str], program: str, arguments: Sequence[str]) -> Sequence[str]:
    """Return the command that imports a program at once, and runs it when a byte is sent to its stdin (`preimport.py`)."""
    return [*python, "-m", "mockube.processes.preimport", program, *arguments]


def temporary_launch(folder: Path, options: LaunchOptions, flags: Sequence[str] = ()) -> Launch:
    """Return a launch that writes all files to the folder and uses a free port; `flags` are more ones of the server."""
    return Launch(
        kubeconfig=folder / "kubeconfig",
        logs=folder,
        nodes=options.nodes,
        packs=options.packs,
        flags=(*temporary_server_flags(folder), *flags, *options.flags),
        manager_flags=options.manager_flags,
        profile=options.profile,
        control_planes=options.control_planes,
    )


def start_import(name: str) -> asyncio.Task[ModuleType]:
    return asyncio.create_task(asyncio.to_thread(import_module, name))
