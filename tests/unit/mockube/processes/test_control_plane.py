"""Start and stop of the two processes in the right order, with programs that only log their own events."""

import asyncio
import contextlib
import os
import signal
import socket
import sys

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.component_base.supervision import wait_first
from mockube.processes.child_processes import ControlPlaneProgram
from mockube.processes.control_plane import (
    SIGNALS,
    ControlPlane,
    NotReady,
    _receive_message,
    readiness_socket,
    start_import,
)
from tests.support.event_loop import WAIT_TIMEOUT, until, yield_to_loop
from tests.support.processes.failing_program import fail
from tools.packages import ROOT

SUPERVISOR = """
import ast, asyncio, sys
from mockube.component_base.clock import RealClock
from mockube.processes.control_plane import ControlPlane
from mockube.processes.child_processes import ControlPlaneProgram
async def run():
    server, manager = (ControlPlaneProgram(name=word[4], command=word) for word in map(ast.literal_eval, sys.argv[1:]))
    plane = ControlPlane(server=server, manager=manager, clock=RealClock(), report=print)
    async with plane.running():
        await plane.wait_until_stopped()
asyncio.run(run())
"""

PROGRAM = """
import os, select, signal, socket, sys
_, log, name, *does = sys.argv
def log_event(word):
    with open(log, "a") as file:
        file.write(f"{name} {word}\\n")
def end(*_):
    log_event("ends")
    if "stays" not in does:
        sys.exit(0)
def wait(*files):  # a signal before `select` ends it, too: the byte that it writes is there
    while interrupted in select.select([interrupted, *files], [], [])[0]:
        interrupted.recv(1)
interrupted, waker = socket.socketpair()
waker.setblocking(False)
signal.set_wakeup_fd(waker.fileno())
signal.signal(signal.SIGTERM, end)
log_event("begins")
if "waits" in does:
    wait(sys.stdin)
if "misunderstands" in does:
    sys.exit(2)
if "fails" in does:
    sys.exit(3)
if "NOTIFY_SOCKET" in os.environ:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
if "leaves" in does:
    sys.exit(0)
wait()
"""


class ProgramLog:
    """The events that the programs log, in order."""

    def __init__(self, path):
        self._path = path
        self._path.touch()

    def program(self, name, *does):
        return [sys.executable, "-c", PROGRAM, str(self._path), name, *does]

    @property
    def words(self):
        return self._path.read_text().splitlines()

    async def until(self, word, *, times=1):
        """Read the file repeatedly, because its changes are not signalled."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            while self.words.count(word) < times:
                await asyncio.to_thread(os.sched_yield)


@pytest.fixture
def program_log(tmp_path):
    return ProgramLog(tmp_path / "program_log")


class Run:
    """A control plane of two programs on a stepped clock, from start to end."""

    def __init__(self, program_log, server=(), manager=()):
        self.clock = SteppedClock()
        self.reports = []
        self.became_ready = False
        self.plane = ControlPlane(
            server=ControlPlaneProgram(name="server", command=program_log.program("server", *server)),
            manager=ControlPlaneProgram(name="manager", command=program_log.program("manager", *manager)),
            clock=self.clock,
            report=self.reports.append,
        )

    async def __call__(self):
        self.plane.handle_signals()
        with contextlib.suppress(NotReady):
            async with self.plane.running():
                self.became_ready = True
                await self.plane.wait_until_stopped()
        return self.plane.code(stopped=0)


@pytest.mark.thorough
@pytest.mark.parametrize("number", SIGNALS)
async def test_processes_start_together_and_server_stops_last(program_log, number):
    run = Run(program_log)
    running = asyncio.create_task(run())
    await until(lambda: run.became_ready)
    await program_log.until("manager begins")
    os.kill(os.getpid(), number)
    assert await running == 0
    assert sorted(program_log.words[:2]) == ["manager begins", "server begins"]
    assert program_log.words[2:] == ["manager ends", "server ends"]


@pytest.mark.thorough
async def test_program_that_runs_both_is_prepared_before_its_start(program_log):
    def prepare():
        assert program_log.words == []

    run = Run(program_log)
    run.plane = ControlPlane(
        server=ControlPlaneProgram(name="server", command=program_log.program("server")),
        manager=None,
        clock=run.clock,
        report=run.reports.append,
        prepare=prepare,
    )
    running = asyncio.create_task(run())
    await until(lambda: run.became_ready)
    pids = run.plane.pids
    assert pids["apiserver"] == pids["controller-manager"] != (0, 0)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert program_log.words == ["server begins", "server ends"]


async def test_program_that_runs_both_and_exits_ends_run(program_log):
    run = Run(program_log)
    run.plane = ControlPlane(
        server=ControlPlaneProgram(name="server", command=program_log.program("server", "leaves")),
        manager=None,
        clock=run.clock,
        report=run.reports.append,
    )
    assert await run() == 1
    assert run.plane.failed.name == "server"


@pytest.mark.thorough
async def test_server_that_does_not_become_ready_ends_run(program_log):
    run = Run(program_log, server=["fails"])
    assert await run() == 3
    assert not run.became_ready
    assert run.plane.failed.name == "server"


@pytest.mark.thorough
async def test_server_that_exits_ends_run_with_failure(program_log):
    run = Run(program_log, server=["leaves"], manager=["waits"])
    assert await run() == 1
    assert run.plane.failed.name == "server"


@pytest.mark.thorough
async def test_manager_with_invalid_flags_ends_run(program_log):
    run = Run(program_log, manager=["waits", "misunderstands"])
    assert await run() == 2
    assert run.plane.failed.name == "manager"
    assert program_log.words[-1] == "server ends"


@pytest.mark.thorough
async def test_failed_manager_is_restarted_with_backoff(program_log):
    run = Run(program_log, manager=["waits", "fails"])
    running = asyncio.create_task(run())
    for restarts, delay in enumerate((1, 2, 4, 8, 16, 30, 30)):
        await program_log.until("manager begins", times=restarts + 1)
        await until(lambda so_far=restarts: len(run.reports) > so_far)
        assert run.reports[-1] == f"the manager exited with code 3; it is restarted in {delay} s"
        assert run.plane.manager.restarts == restarts
        assert run.plane.manager.pid == 0
        run.clock.advance(delay - 0.5)
        await yield_to_loop(3)
        assert run.plane.manager.restarts == restarts, "not before its time"
        run.clock.advance(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


@pytest.mark.thorough
async def test_manager_backoff_resets_after_healthy_time(program_log):
    run = Run(program_log, manager=["waits"])
    running = asyncio.create_task(run())
    for lived, delay in ((0, 1), (0, 2), (60, 1)):
        await until(lambda: run.became_ready and run.plane.manager.pid)
        run.clock.advance(lived)
        os.kill(run.plane.manager.pid, signal.SIGKILL)
        await until(lambda: not run.plane.manager.pid and run.clock.next_due() is not None)
        assert run.reports[-1] == f"the manager exited with code 137; it is restarted in {delay} s"
        run.clock.advance(delay)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


@pytest.mark.thorough
@pytest.mark.parametrize("task", ["begin of the manager", "restarts of the manager"])
async def test_failed_task_of_manager_process_ends_run_with_its_error(program_log, task):
    run = Run(program_log, manager=["waits"])
    run.plane.manager.begin = lambda: None  # so that the task waits until it fails
    running = asyncio.create_task(run())
    await until(lambda: run.became_ready)
    await program_log.until("manager begins")
    fail(asyncio.get_running_loop(), task)
    with pytest.raises(RuntimeError, match="a fault in the program"):
        await running
    assert program_log.words[-2:] == ["manager ends", "server ends"]


async def test_failed_report_of_restart_ends_run_with_its_error(program_log):
    run = Run(program_log, manager=["waits", "fails"])
    run.plane.manager._report = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        await run()
    assert program_log.words[-1] == "server ends"


class BrokenSocket(socket.socket):
    """A socket whose `recv` fails, as when the kernel has no memory."""

    def recv(self, *_):
        raise OSError("no memory")


async def test_failed_readiness_message_is_raised_once():
    """The event loop would log an error of its callback, and call it again at once, for ever."""
    loop, errors = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    ready = loop.create_future()
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with second, BrokenSocket(fileno=first.detach()) as receiver:
        loop.add_reader(receiver, _receive_message, receiver, ready)
        second.send(b"READY=1")
        with pytest.raises(OSError, match="no memory"):
            await asyncio.wait_for(ready, WAIT_TIMEOUT)
        assert not loop.remove_reader(receiver)
    assert not errors


async def test_readiness_is_reported_once_by_several_messages():
    loop, errors = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    with (
        readiness_socket() as (ready, environment),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        for _ in range(2):
            sender.sendto(b"READY=1", environment["NOTIFY_SOCKET"])
        await asyncio.wait_for(ready, WAIT_TIMEOUT)
        await yield_to_loop(3)
    assert not errors


async def test_message_after_end_of_wait_is_ignored():
    loop, errors = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    with (
        readiness_socket() as (ready, environment),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        ready.cancel()
        sender.sendto(b"READY=1", environment["NOTIFY_SOCKET"])
        await yield_to_loop(5)
    assert not errors


async def test_failure_of_one_wait_is_raised_and_ends_others():
    ended = asyncio.Event()

    async def wait():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async def divide_by_zero():
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        await wait_first(wait(), divide_by_zero())
    await asyncio.wait_for(ended.wait(), WAIT_TIMEOUT)


async def test_failed_import_is_raised(tmp_path, monkeypatch):
    (tmp_path / "module_that_fails.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        await start_import("module_that_fails")


@pytest.mark.thorough
async def test_second_signal_kills_at_once(program_log):
    run = Run(program_log, manager=["stays"])
    running = asyncio.create_task(run())
    await until(lambda: run.became_ready)
    await program_log.until("manager begins")
    os.kill(os.getpid(), signal.SIGTERM)
    await program_log.until("manager ends")
    assert run.reports == ["stopping; a second signal kills the processes"]
    assert not running.done()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 128 + signal.SIGKILL


async def test_sighup_is_ignored_under_nohup(program_log):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        Run(program_log).plane.handle_signals()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.thorough
async def test_killed_supervisor_leaves_no_processes(program_log):
    """All processes hold the write end of one pipe, which reaches its end when the last process exits."""
    supervisor = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-c",
            SUPERVISOR,
            *map(repr, (program_log.program("server"), program_log.program("manager"))),
        ),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    await program_log.until("manager begins")
    await program_log.until("server begins")
    supervisor.kill()
    async with asyncio.timeout(WAIT_TIMEOUT):
        assert await supervisor.stdout.read() == b""
    await supervisor.wait()
    assert sorted(program_log.words) == ["manager begins", "server begins"]
