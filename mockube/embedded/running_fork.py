"""The forks of a cluster: their processes, clients and files, which end with the cluster at the latest."""

import asyncio
import os
import shutil
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any, Final, TypeVar, cast

from mockube.client.kubeconfig import Access
from mockube.component_base.clock import QUIET_TURNS, Clock, ClusterClock
from mockube.component_base.forkable_loop import ForkableLoop
from mockube.component_base.loop import yield_to_loop
from mockube.default_cluster.target import Target
from mockube.objects import caller
from mockube.objects.requests import ObjectRequests

from . import fork_messages as messages
from .determinism import START
from .fork_clients import ForkClient, ForkClients
from .forked_process import ForkedProcess, StartProcess
from .serving import KUBECONFIG, LOOPBACK, EmbeddedServer

T = TypeVar("T")

AUTHORITY: Final = "ca.crt"
_NOTHING: Final = -1
"""No number of arrivals: time does not pass."""
_BUSY_SECONDS: Final = 0.001


class Forks:
    """The forks of one cluster, which may be a fork itself."""

    def __init__(self, clients: ForkClients | None = None) -> None:
        self.clients = clients or ForkClients()
        self._owns_clients = clients is None
        self._running: set[RunningFork] = set()

    def start(self, start: StartProcess, server: EmbeddedServer, *, is_child: bool) -> "RunningFork":
        process = ForkedProcess(start, is_child=is_child)
        fork = RunningFork(process, server, self.clients, self._running.discard)
        self._running.add(fork)
        return fork

    def stop(self) -> None:
        for fork in [*self._running]:
            fork.stop()
        if self._owns_clients:
            self.clients.close()


class RunningFork:
    def __init__(
        self,
        process: ForkedProcess,
        server: EmbeddedServer,
        clients: ForkClients,
        on_stop: "Callable[[RunningFork], None]",
    ) -> None:
        """Create the state of a fork; `server` is the one that was forked first, whose credentials all forks have."""
        self.process = process
        self.server = server
        self.forks = Forks(clients)
        self.url = f"https://{LOOPBACK}:{process.port}"
        self._on_stop = on_stop
        self._client: ForkClient | None = None
        # With a seed it shows the time of the fork, which has the epoch of its parent.
        self._clock = ClusterClock(start=START if process.has_steps else None)
        self._lock = Lock()

    @property
    def requests(self) -> ObjectRequests:
        with self._lock:
            if self._client is None:
                admin, controllers = map(self._moved, (self.server.admin, self.server.controllers))
                self._client = self.forks.clients.open(admin, controllers, self._clock)
            return self._client.requests

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine of `requests`."""
        return self.forks.clients.submit(self._in_steps(work) if self.process.has_steps else work)

    async def _in_steps(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine; the time of the fork passes while the coroutine waits, and the fork has nothing else to do."""
        calls = caller.CallCount()
        caller.CALL_COUNT.set(calls)
        await self._pass_time(_NOTHING)
        task = asyncio.create_task(work)
        try:
            seen = _NOTHING
            while not await _is_done(task, calls, self._clock.real):
                seen = await self._pass_time(seen)
            await self._pass_time(_NOTHING)
            return task.result()
        finally:
            task.cancel()

    async def _pass_time(self, seen: int) -> int:
        command = messages.PassTime(seen=seen)
        passed = await asyncio.to_thread(self.process.call, command, messages.PassedTime)
        if (seconds := passed.monotonic - self._clock.monotonic()) > 0:
            self._clock.advance(seconds)
        return int(passed.seen)

    @cached_property
    def target(self) -> Target:
        """The server with the administrator's credentials, in files that are removed when the fork is stopped."""
        folder = Path(mkdtemp(prefix="mockube-"))
        self._remove_folder = weakref.finalize(self, _remove, folder, os.getpid())
        kubeconfig, authority = folder / KUBECONFIG, folder / AUTHORITY
        self.server.write_kubeconfig(kubeconfig, self.url)
        authority.write_bytes(self.server.authority_bytes)
        return Target(kubeconfig=kubeconfig, url=self.url, token=self.server.admin.token, authority=authority)

    def stop(self) -> None:
        """Stop the forks of this one, and then itself. Its objects are lost."""
        self.forks.stop()
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            self.forks.clients.submit(client.close()).result()
        self.process.stop()
        if "target" in self.__dict__:
            self._remove_folder()
        self._on_stop(self)

    def _moved(self, access: Access) -> Access:
        return replace(access, server=self.url)


async def _is_done(task: "asyncio.Task[Any]", calls: caller.CallCount, real: Clock) -> bool:
    """Return whether a task is done, once it can do nothing without the fork: no thread works, and no function of the user is called."""
    work = cast("ForkableLoop", asyncio.get_running_loop()).thread_work
    quiet_turns = 0
    while quiet_turns < QUIET_TURNS:
        await yield_to_loop()
        quiet_turns += 1
        if work or calls.count:
            quiet_turns = 0
            await real.sleep(_BUSY_SECONDS)
    return task.done()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
