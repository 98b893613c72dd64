"""The machines of simulated nodes: runs commands of root on them, and gives the kubelet their files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import run_until
from mockube.container_runtime.config.capabilities import capability_bits
from mockube.container_runtime.config.environment import security_context
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.node_machine import NodeFile, NodeServices
from mockube.container_runtime.runtime import Command, ExecRequest
from mockube.container_runtime.start_errors import StartError
from mockube.container_runtime.streams import STDERR, ProgramStreams, Streams

from .client_pace import ClientPace
from .connections.pod_connections import PodConnections
from .execution import InterruptiblePause, run_to_end
from .pod_files import PodFiles
from .shell.invocation import run_command
from .shell.memory import OutOfMemory
from .shell.process import NSENTER, UnknownProgram
from .shell.syntax import ShellSyntaxError
from .shell.vfs.file_entry import FileError
from .shell.vfs.mount_table import MountedFiles
from .terminal import with_terminal

if TYPE_CHECKING:
    from .shell.process import Host

_NOT_FOUND: Final = 127
_KILLED: Final = 137
_SYS_CHROOT: Final = 1 << 18
"""The capability that chroot needs."""
_HANG_UP: Final = 129


class SimulatedMachines:
    """The `NodeMachines` of simulated nodes."""

    def __init__(
        self,
        images: ImageTable,
        files: PodFiles,
        network: PodConnections,
        services: NodeServices,
        clock: Clock,
        kill: Callable[[ReadOnlyTree, str], None],
    ) -> None:
        """`kill` kills the run of a container that is computed in advance."""
        self.kill = kill
        self._images = images
        self._files = files
        self._network = network
        self._services = services
        self._clock = clock

    async def exec(self, node: ReadOnlyTree, request: ExecRequest) -> Command:
        from .node.node_host import node_host  # noqa: PLC0415 - rarely used

        name = meta.name(node)
        files = await self._files.files_of_node(name)
        host = node_host(self._images, node, self._services.pods(name), files, self._clock.now)
        host.has_terminal, host.has_open_input = request.has_terminal, request.has_input
        environment = dict(host.environment)
        if request.has_terminal:
            environment["TERM"] = "xterm"
        pause = InterruptiblePause(self._clock, host)
        work = partial(self._execute_while_connected, node, host, request.command, environment, pause)
        return partial(with_terminal, work, has_terminal=request.has_terminal, on_interrupt=pause.interrupt)

    async def _execute_while_connected(
        self,
        node: ReadOnlyTree,
        host: "Host",
        argv: Sequence[str],
        environment: Mapping[str, str],
        pause: InterruptiblePause,
        streams: Streams,
    ) -> int:
        """Execute a command until it ends, or its client leaves, as SSH does."""
        work = self._execute(node, host, argv, environment, pause, streams)
        code = await run_until(streams.departure.wait(), work)
        return _HANG_UP if code is None else code

    async def _execute(
        self,
        node: ReadOnlyTree,
        host: "Host",
        argv: Sequence[str],
        environment: Mapping[str, str],
        pause: InterruptiblePause,
        streams: Streams,
    ) -> int:
        client = ProgramStreams(streams)
        network = self._network.caller(pod_of_machine(node))
        execution = run_command(host, argv, environment, "/")
        try:
            return await run_to_end(execution, client, ClientPace(self._clock), network, sleep=pause.sleep)
        except (StartError, UnknownProgram):
            text = f"bash: line 1: {argv[0]}: command not found"
        except (ShellSyntaxError, RecursionError) as error:
            text = f"bash: {error}"
        except OutOfMemory:
            await client.write(STDERR, b"Killed\n")
            return _KILLED
        await client.write(STDERR, f"{text}\n".encode("utf-8", "surrogateescape"))
        return _NOT_FOUND

    def machine_for(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, way: str, root: MountedFiles | None
    ) -> "Host | None":
        """Return the machine of the node of a pod for chroot to `root`, or for nsenter; None if the container may not enter it."""
        from .node.node_host import node_host  # noqa: PLC0415 - rarely used

        node = self._services.node(pod["spec"].get("nodeName") or "")
        files = None if node is None else self._files.find_node_files(meta.name(node))
        if node is None or files is None:
            return None
        if pod["spec"].get("hostUsers") is False:
            return None  # Root of another user namespace is not that of the node.
        context = security_context(pod, container)
        if way == NSENTER:
            may_enter = bool(context.get("privileged") and pod["spec"].get("hostPID"))
        else:
            may_enter = root is files and bool(capability_bits(context) & _SYS_CHROOT)
        if not may_enter:
            return None
        return node_host(self._images, node, self._services.pods(meta.name(node)), files, self._clock.now)

    async def refresh(self, node: str) -> None:
        await self._files.files_of_node(node)

    def find(self, node: str, path: str) -> NodeFile | None:
        files = self._files.find_node_files(node)
        try:
            entry = None if files is None or not path.startswith("/") else files.entry(path)
        except FileError:
            return None
        if entry is None:
            return None
        return NodeFile(entry.is_directory, entry.data or b"", entry.modified, entry.mode)

    def write(self, node: str, path: str, data: bytes) -> None:
        files = self._files.find_node_files(node)
        with suppress(FileError):  # the disk may be full
            if files is not None:
                files.write(path, data, mode=0o600)

    def resolve(self, node: str, path: str) -> str:
        files = self._files.find_node_files(node)
        with suppress(FileError):
            return path if files is None else files.resolve(path)
        return path

    def children(self, node: str, folder: str) -> Iterable[str]:
        files = self._files.find_node_files(node)
        try:
            return () if files is None else files.children(folder)
        except FileError:
            return ()


def pod_of_machine(node: ReadOnlyTree) -> ReadOnlyTree:
    """Return what stands for the machine of a node in the network: a pod in the network of the node."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    address = next((each["address"] for each in addresses if each["type"] == "InternalIP"), "")
    spec = {"nodeName": meta.name(node), "hostNetwork": True, "containers": []}
    metadata = {"name": meta.name(node), "namespace": "", "uid": f"machine-{meta.name(node)}"}
    return {"metadata": metadata, "spec": spec, "status": {"podIP": address, "hostIP": address}}
