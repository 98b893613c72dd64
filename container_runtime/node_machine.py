"""The machine of a node: a contract between a kubelet and the run-time that simulates the machine beside the containers on it.

The run-time has the files and the programs of the machine. What a program asks, such as `crictl ps`, only the kubelet knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from mockube.apimachinery.tree import ReadOnlyTree

from .runtime import Command, ExecRequest
from .simulation_values import CLUSTER_DNS

UNITS: tuple[str, ...] = ("kubelet", "containerd")
"""The systemd units of a node that can be stopped."""


class NodeFile(NamedTuple):
    """A file or a folder of a node."""

    is_directory: bool
    data: bytes
    modified: float
    mode: int


class NodeCredentials(NamedTuple):
    """The credentials that control-plane nodes have."""

    certificates: Mapping[str, str] = MappingProxyType({})
    """The certificates of the API server, by their paths on nodes."""
    administrator: tuple[str, str] | None = None
    """The certificate and the key of the administrator; None if they are not known."""


NO_CREDENTIALS = NodeCredentials()


class NodeMachines(Protocol):
    """The machines of simulated nodes, as a run-time has them."""

    async def exec(self, node: ReadOnlyTree, request: ExecRequest) -> Command:
        """Prepare a command that root runs on a node."""

    async def refresh(self, node: str) -> None:
        """Bring the files that the system writes, such as the folders of pods, up to date."""

    def find(self, node: str, path: str) -> NodeFile | None:
        """Return a file of a node, whose symbolic links are followed; None if there is none."""

    def write(self, node: str, path: str, data: bytes) -> None:
        """Write a file of a node, if there is space for it."""

    def resolve(self, node: str, path: str) -> str:
        """Return a path of a node without symbolic links."""

    def kill(self, pod: ReadOnlyTree, name: str) -> None:
        """Kill the run of a container that is computed in advance; those in real time are stopped by the run-time."""

    def children(self, node: str, folder: str) -> Iterable[str]:
        """Return the names in a folder; none if it is not one."""


class NodeServices(Protocol):
    """What the kubelet of a node knows, for the files and the programs of its machine."""

    def node(self, name: str) -> ReadOnlyTree | None: ...

    def pods(self, name: str) -> Sequence[ReadOnlyTree]:
        """Return the pods of a node."""

    def api_server(self) -> str:
        """Return the URL of the API server, as the nodes of the cluster know it."""

    def authority(self) -> bytes:
        """Return the CA certificates of the API server; empty before they are known."""

    def cluster_dns(self) -> str:
        """Return the address of the cluster's name server."""

    def credentials(self, node: ReadOnlyTree) -> "NodeCredentials":
        """Return the credentials that a node has if it is one of the control plane."""

    async def wait_ready(self) -> None:
        """Wait until what the other functions return is known."""

    async def answer(self, node: str, service: str, arguments: Mapping[str, Any]) -> Any:
        """Answer a program of a node; raise `ServiceFailed`."""


class ServiceFailed(Exception):
    """A service of a node cannot do what a program asks; the message is the service's."""


class _NoServices:
    """For a run-time without a kubelet."""

    def node(self, _: str) -> ReadOnlyTree | None:
        return None

    def pods(self, _: str) -> Sequence[ReadOnlyTree]:
        return ()

    def api_server(self) -> str:
        return ""

    def authority(self) -> bytes:
        return b""

    def cluster_dns(self) -> str:
        return CLUSTER_DNS

    def credentials(self, _: ReadOnlyTree) -> "NodeCredentials":
        return NO_CREDENTIALS

    async def wait_ready(self) -> None: ...

    async def answer(self, node: str, service: str, arguments: Mapping[str, Any]) -> Any:
        raise ServiceFailed(f"nothing answers {service} {sorted(arguments)} on node {node}")


NO_SERVICES: NodeServices = _NoServices()
