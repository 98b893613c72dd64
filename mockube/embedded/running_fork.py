"""The forks of a cluster: their processes, clients and files, which end with the cluster at the latest."""

import os
import shutil
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Final

from mockube.client.kubeconfig import Access
from mockube.default_cluster.target import Target
from mockube.objects.requests import ObjectRequests

from .fork_clients import ForkClient, ForkClients
from .forked_process import ForkedProcess, StartProcess
from .serving import KUBECONFIG, LOOPBACK, EmbeddedServer

AUTHORITY: Final = "ca.crt"


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
        self._lock = Lock()

    @property
    def requests(self) -> ObjectRequests:
        with self._lock:
            if self._client is None:
                admin, controllers = map(self._moved, (self.server.admin, self.server.controllers))
                self._client = self.forks.clients.open(admin, controllers)
            return self._client.requests

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


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
