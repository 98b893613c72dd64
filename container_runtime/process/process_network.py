"""The network of each container that runs as a process: that of its pod, or that of this machine."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from mockube.apimachinery.hosts import LOCAL, is_loopback
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import hostname_of
from mockube.container_runtime.config.network_files import hosts_file, resolver_file
from mockube.container_runtime.pod_network.name_server import RESOLVER_FILE, machine_servers
from mockube.container_runtime.pod_network.namespaces import NetworkProblem
from mockube.container_runtime.pod_network.network import PodNetwork, addresses_of
from mockube.container_runtime.process_port import LOOPBACK, ProcessPort
from mockube.container_runtime.simulation_values import NAMESPACES
from mockube.container_runtime.start_errors import StartError

LOG: Final = logging.getLogger(__name__)

_NAME_SOURCES: Final = Path("/etc/nsswitch.conf")


class ProcessNetwork:
    def __init__(self, pods: PodNetwork | None, mode: str) -> None:
        """`pods` gives pods networks of their own; None if all have that of this machine."""
        self._pods = pods
        self._mode = mode
        self._is_reported = False

    async def enter(self, pod: ReadOnlyTree) -> tuple[int, ...]:
        """Return the open files of the namespaces that a process enters; none for the network of this machine."""
        if self._pods is None:
            return ()
        try:
            return (await self._pods.attach(pod)).files
        except NetworkProblem as problem:
            if not self._pods.problem or self._mode == NAMESPACES:
                raise StartError(f"failed to set up the network of the pod: {problem}") from problem
            self._report(str(problem))
            return ()

    def _report(self, problem: str) -> None:
        if not self._is_reported:
            self._is_reported = True
            LOG.warning(
                "containers that run as processes have the network of this machine, because it gives pods none of their own: %s",
                problem,
            )

    def has_own(self, pod: ReadOnlyTree) -> bool:
        return self._pods is not None and self._pods.has(pod)

    def port_of(self, pod: ReadOnlyTree, port: int, find_loopback: Callable[[], str]) -> ProcessPort:
        """Return where a port of a process of the pod is reached."""
        if self._pods is None or not self._pods.has(pod):
            return ProcessPort(LOOPBACK, port)
        pods = self._pods
        return ProcessPort(addresses_of(pod)[0], port, partial(pods.open_socket, pod), find_loopback)

    def port_at(self, pod: ReadOnlyTree, host: str, port: int) -> ProcessPort:
        """Return where a port of a host is reached from the node of a pod."""
        pods = self._pods
        if pods is None or not pods.has(pod):
            return ProcessPort(host, port)
        if host == LOCAL:
            host = LOOPBACK
        if not (is_loopback(host) or pods.has_address(host)):
            return ProcessPort(host, port)
        return ProcessPort(host, port, partial(pods.open_socket, pod))

    async def release(self, pod: ReadOnlyTree) -> None:
        if self._pods is not None:
            await self._pods.release(pod)

    async def close(self) -> None:
        if self._pods is not None:
            await self._pods.close()


def network_files(pod: ReadOnlyTree, cluster_dns: str) -> dict[str, str]:
    """Return the files about names of a pod with a network of its own, by their paths."""
    servers = [server for server in machine_servers(RESOLVER_FILE) if not _is_local(server)]
    return {
        "/etc/hostname": f"{hostname_of(pod)}\n",
        "/etc/hosts": hosts_file(pod),
        "/etc/resolv.conf": resolver_file(pod, cluster_dns, servers),
        "/etc/nsswitch.conf": _name_sources(_NAME_SOURCES),
    }


def _is_local(server: str) -> bool:
    return server.startswith("127.") or server == "::1"


def _name_sources(path: Path) -> str:
    """Return the machine's nsswitch.conf with the files and the name servers as the only sources of hosts.

    A service of the machine that resolves names does not know those of the cluster.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    return "".join(f"{line}\n" for line in lines if not line.startswith("hosts:")) + "hosts: files dns\n"
