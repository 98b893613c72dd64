"""The forks of a cluster in one process: named clusters, each of which is a copy of this process.

The new process writes the files by which commands find a named cluster, and removes them when it ends. It ends at a signal, as the
process that runs a cluster does, and when its parent dies.
"""

import asyncio
import logging
import os
import signal
import socket
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.control.faults import exempt
from mockube.client.kinds import CONFIG_MAPS
from mockube.clusters import kubeconfigs
from mockube.clusters.forks import (
    START_SECONDS,
    ForkProcesses,
    name_problem,
    prepare_folder,
    remove_secrets,
    remove_secrets_of_ended,
    with_no_publishing,
)
from mockube.clusters.named_cluster import (
    MEMORY,
    ClusterFolder,
    ClusterRecord,
    Component,
    cluster_folder,
    hold_lock,
    read_record,
    write_record,
)
from mockube.clusters.ports import with_port
from mockube.component_base.fork_orders import MAX_LINE, ForkAnswer
from mockube.component_base.supervision import run_to_end, start
from mockube.component_base.supervision import timeout as timeout_of
from mockube.embedded.background_loop import BackgroundContext
from mockube.embedded.plane import ForkableControlPlane
from mockube.embedded.process_fork import IS_FORK, become_fork, fork_process
from mockube.failure import Failure
from mockube.launch import KUBEADM
from mockube.processes.child_processes import last_error_line
from mockube.processes.control_plane import MANAGER, SERVER
from mockube.publisher.bindings import RECORD

LOG: Final = logging.getLogger(__name__)
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_POLL_SECONDS: Final = 0.05
_STOP_SECONDS: Final = 60.0
"""How long a fork that is stopped waits for requests in progress."""


class Outputs(NamedTuple):
    """The descriptors of the logs."""

    server: int
    manager: int


class ProcessForks:
    def __init__(
        self,
        context: BackgroundContext[Any],
        plane: ForkableControlPlane,
        folder: ClusterFolder,
        outputs: Outputs,
        left_out: Sequence[str] = (),
    ) -> None:
        """`folder` is that of the cluster of this process, which is another one in a fork; `left_out` says what a fork does not have with
        the flags of this process.
        """
        self._left_out = left_out
        self._context, self._plane = context, plane
        self._folder, self._outputs = folder, outputs
        self._processes = ForkProcesses()
        self._starting: set[str] = set()
        """The names of the forks that are being started."""
        self._forking = asyncio.Lock()
        """A fork that is made while another one is would exist in that, too."""

    async def make(self, name: str) -> ForkAnswer:
        """Fork this process; the new one is the cluster with this name."""
        folder = cluster_folder(name, os.environ)
        if problem := name_problem(folder, self._starting):
            return ForkAnswer(problem=problem, is_conflict=True)
        self._starting.add(name)
        try:
            # The new process exists, whether or not the client waits for it.
            return await run_to_end("fork", self._fork_alone(folder))
        except (Failure, OSError) as error:
            return ForkAnswer(problem=str(error))
        finally:
            self._starting.discard(name)

    async def _fork_alone(self, folder: ClusterFolder) -> ForkAnswer:
        this_process = os.getpid()
        async with self._forking:
            answer = ForkAnswer(problem=IS_FORK)
            if os.getpid() != this_process:
                return answer
            try:
                prepare_folder(folder, self._folder)
                answer = await self._fork(folder)
            finally:
                if answer.problem and os.getpid() == this_process:
                    remove_secrets_of_ended(folder)
            return answer

    async def _fork(self, folder: ClusterFolder) -> ForkAnswer:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                pid = await fork_process(
                    self._plane,
                    lambda kubelets: self._begin(folder, theirs, kubelets),
                    at_death=signal.SIGTERM,
                )
                if not pid:
                    theirs.detach()  # the new process answers by it
                    return ForkAnswer(problem=IS_FORK)  # the connection of the client is that of the parent
            status = await self._plane.server.api_server.registry.kv.status()
            self._processes.add(pid, lambda: self._note_end(folder))
            ours.settimeout(0)
            answer = await self._receive(ours, folder)
        if answer.problem:
            await self._processes.kill(pid)
        return replace(answer, revision=status.revision, not_forked=(*self._left_out,))

    def _note_end(self, folder: ClusterFolder) -> None:
        if folder.name not in self._starting:
            remove_secrets_of_ended(folder)

    async def _receive(self, answers: socket.socket, folder: ClusterFolder) -> ForkAnswer:
        try:
            async with timeout_of(self._plane.clock.real, START_SECONDS):
                line = await asyncio.get_running_loop().sock_recv(answers, MAX_LINE)
            return msgspec.json.decode(line, type=ForkAnswer)
        except (TimeoutError, msgspec.DecodeError):
            last = last_error_line(folder.log(SERVER))
            return ForkAnswer(problem=f'"{folder.name}" did not start{f": {last}" if last else ""}')

    async def stop(self) -> None:
        await self._processes.stop()

    # --- in the new process

    def _begin(self, folder: ClusterFolder, answers: socket.socket, kubelets: tuple[str, int]) -> None:
        os.setsid()
        _redirect(folder, self._outputs)  # what fails from here on is in the log of the fork
        publishing = become_fork(
            self._context,
            self._plane,
            kubelets,
            own_descriptors={answers.fileno(), *self._outputs},
        )
        parent, self._folder = self._folder, folder
        self._processes, self._starting, self._forking = ForkProcesses(), set(), asyncio.Lock()
        answers_again = socket.socket(fileno=answers.fileno())
        self._tasks = [publishing, start("fork", self._run(parent, answers_again))]

    async def _run(self, parent: ClusterFolder, answers: socket.socket) -> None:
        """Be a named cluster until a signal stops it."""
        code, folder, stopping = 1, self._folder, asyncio.Event()
        task = asyncio.current_task()
        assert task is not None
        _call_at_signals(stopping.set, task.cancel)
        try:
            async with hold_lock(folder, self._plane.clock.real):
                try:
                    url = self._publish(parent)
                    answers.sendall(
                        msgspec.json.encode(ForkAnswer(url=url, kubeconfig=str(folder.kubeconfig)))
                    )
                    answers.close()
                    LOG.info("Fork of %s: serving securely on %s", parent.name, url)
                    await self._forget_addresses()
                    if (record := read_record(folder.record)) and record.profile == KUBEADM:
                        await self._move_kubeadm(url)
                    await stopping.wait()
                    LOG.info("Stopping: requests in flight may finish; a second signal cancels them")
                    await self.stop()
                    await self._wait_for_requests()
                    code = 0
                finally:
                    folder.record.unlink(missing_ok=True)
                    remove_secrets(folder)
        except Failure as failure:
            with suppress(OSError):
                answers.sendall(msgspec.json.encode(ForkAnswer(problem=str(failure))))
        except asyncio.CancelledError:
            LOG.info("Stopped by a second signal")
        except BaseException:  # noqa: BLE001 - this process has no other frames that could report it
            traceback.print_exc()
        finally:
            os._exit(code)

    def _publish(self, parent: ClusterFolder) -> str:
        """Write the kubeconfig and the record of this cluster, and return its URL."""
        folder, server, pid = self._folder, self._plane.server, os.getpid()
        server.write_kubeconfig(folder.admin_kubeconfig, with_port(server.admin.server, server.listener.port))
        url = kubeconfigs.publish(folder)
        of_parent = read_record(parent.record)
        if of_parent is None:
            raise Failure(f'"{parent.name}" has stopped')
        write_record(
            folder, _record(of_parent, parent.name, url, format_time(self._plane.clock.real.now()), pid)
        )
        return url

    async def _forget_addresses(self) -> None:
        """Delete the list of what the parent publishes on this machine."""
        with exempt(), suppress(ApiError):
            await self._plane.controllers.delete(CONFIG_MAPS, RECORD)

    async def _move_kubeadm(self, url: str) -> None:
        """Write the address of this cluster into what kubeadm has created in that of the parent."""
        from mockube.apiserver.bootstrap.kubeadm.creation import update_server  # noqa: PLC0415 - few clusters need it

        with suppress(ApiError):
            await update_server(self._plane.server.api_server.registry, url)

    async def _wait_for_requests(self) -> None:
        self._plane.server.api_server.context.lifecycle.begin_shutdown()
        clock = self._plane.clock.real
        deadline = clock.monotonic() + _STOP_SECONDS
        while self._plane.faults.is_busy and clock.monotonic() < deadline:
            await clock.sleep(_POLL_SECONDS)


def _record(of_parent: ClusterRecord, parent: str, url: str, started: str, pid: int) -> ClusterRecord:
    return replace(
        of_parent,
        pid=pid,
        started=started,
        detached=True,
        store=MEMORY,
        fork_of=parent,
        is_copy=True,
        flags=with_no_publishing(of_parent.flags),
        ready=True,
        url=url,
        resets=0,
        components={SERVER: Component(pid=pid), MANAGER: Component(pid=pid)},
    )


def _redirect(folder: ClusterFolder, outputs: Outputs) -> None:
    """Let what is written to the logs of the parent go to those of the fork."""
    for descriptor, component in ((outputs.server, SERVER), (outputs.manager, MANAGER)):
        log = os.open(folder.log(component), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        os.dup2(log, descriptor, inheritable=False)
        os.close(log)


def _call_at_signals(stop: Callable[[], None], end: Callable[[], object]) -> None:
    """Call `stop` at the first signal that stops a cluster, and `end` at a SIGINT that follows.

    A second SIGTERM is ignored: the kernel sends it for each thread of a parent that dies. It can be called once in a process.
    """
    loop, pid = asyncio.get_running_loop(), os.getpid()
    reader, writer = socket.socketpair()
    for each in (reader, writer):
        each.setblocking(False)  # noqa: FBT003 - a method of the standard library
    received: list[int] = []

    def on_signal() -> None:
        if pid != os.getpid():  # in a fork of this process, which has signals of its own
            loop.remove_reader(reader)
            return
        received.extend(number for number in reader.recv(MAX_LINE) if number in _STOP_SIGNALS)
        if received:
            stop()
        if signal.SIGINT in received and len(received) > 1:
            loop.remove_reader(reader)
            end()

    # The loop may wait for events when the signal arrives.
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a reset
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    loop.add_reader(reader, on_signal)
