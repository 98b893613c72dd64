"""The contract between a kubelet and what runs the containers of its pods, as CRI is one.

Upstream: staging/src/k8s.io/cri-api. A kubelet decides when a container starts and stops, and from the states that a run-time reports
it computes the status of the pod. What a container is inside, only its run-time knows: its image, files, users, processes and network.
The containers of one pod may have different run-times; each method is about the containers of its own.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from .behavior import CommandResult
from .disk_usage import DiskUsage
from .load import Stats
from .logs import LogSource
from .port_probe import PortAnswer, PortProbe
from .runs import ContainerRun
from .state import ContainerKill, ContainerState
from .streams import ClientConnection, Streams


class RuntimeProblem(Exception):
    """A run-time cannot do what is requested; the message is for the client."""


class NotPermitted(RuntimeProblem):
    """The settings of the process do not permit what is requested."""


class CommandFailed(Exception):
    """A command could not be run in a container; the message is for the client."""


class ExecRequest(Struct, frozen=True, kw_only=True):
    """A command that a client runs in a container."""

    command: list[str]
    has_input: bool = False
    has_terminal: bool = False


Command = Callable[[Streams], Coroutine[Any, Any, int]]
"""Runs a command to its end; returns its exit code, or raises `CommandFailed`."""
Attachment = Callable[[Streams], Coroutine[Any, Any, None]]
"""Sends the output of a container to a client until one of them ends, and forwards the client's input."""
PortConnection = Callable[[ClientConnection], Coroutine[Any, Any, str]]
"""Connects a client to a port until one of them ends; returns the problem, or ""."""


@runtime_checkable
class ContainerRuntime(Protocol):
    """Runs containers. A container is named by its pod and its name, one run of it by the number of restarts before it."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Allow containers to start during the block; end all of them at its end."""

    def runs(self, pod: ReadOnlyTree, name: str) -> bool:
        """Return whether the run-time runs a container, or would run it."""

    # --- ListContainers and ContainerStatus

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ContainerState]:
        """Return the states of the containers that run in real time, by name.

        The kubelet computes the states of the others from what `Predictions` say of them, so that they cost nothing while they run.
        """

    def disk_usage(self, pod: ReadOnlyTree) -> DiskUsage | None:
        """Return what a pod has written to the disk of its node; None if nothing is known of it."""

    def node_disk_use(self, node: str) -> int:
        """Return the bytes that the containers of a node have written onto its disk."""

    def node_path_type(self, node: str, path: str) -> str:
        """Return the type of a path that containers have written on a node, Directory or File; "" if there is none."""

    def node_files(self, node: str, folder: str) -> Mapping[str, bytes] | None:
        """Return the files in a folder of a node by name; None if nothing on the node is in memory."""

    def add_node_files(self, node: str, files: Mapping[str, bytes]) -> None:
        """Add the files that a node has from its installation, by path. They are no change of its contents."""

    def kills(self, pod: ReadOnlyTree) -> Mapping[str, ContainerKill]:
        """Return the containers whose runs are computed, and that a command in them has ended, by name."""

    def container_stats(self, pod: ReadOnlyTree, name: str) -> Stats | None:
        """Return what a running container uses now; None if the run-time does not know it."""

    def may_change(self, pod: ReadOnlyTree) -> bool:
        """Return whether the states of the pod's containers may change without a change of the pod."""

    def live_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, tuple[str, ...]]:
        """Return the commands of probes and hooks that have to run in real time (`exec_sync`), by the field of each.

        That of a probe at a port that has to be asked in real time (`probe_port`) is empty. The results of others are predicted, or
        are a part of the container's state.
        """

    # --- StartContainer, StopContainer, UpdatePodSandbox, RemovePodSandbox

    def start_container(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        """Start a run of a container, unless it was started already."""

    def stop_container(self, pod: ReadOnlyTree, name: str, grace: float) -> None:
        """Stop the latest run within `grace` seconds; a second call can only shorten the time."""

    def update_pod(self, pod: ReadOnlyTree) -> None:
        """Note the latest version of a pod that may have containers here."""

    def remove_containers(self, uid: str) -> None:
        """Drop the files of the containers of a pod that has ended, so that they take no space on the disk of its node."""

    def remove_pod(self, uid: str) -> None:
        """End the containers of a deleted pod, and drop their files."""

    # --- ExecSync, Exec, Attach, ReopenContainerLog, PortForward

    async def exec_sync(
        self,
        pod: ReadOnlyTree,
        name: str,
        command: Sequence[str],
        seconds: float,
        *,
        restarts: int | None = None,
        on_unknown: Callable[[str], None] = lambda _: None,
    ) -> CommandResult | None:
        """Run a command of a probe or a hook for at most `seconds`; return its result, or None if nobody can know it.

        One that does not end within the time lasts infinitely long. `restarts` is the run, if the pod's status lacks it yet;
        `on_unknown` is called with a program that the run-time lacks.
        """

    async def probe_port(
        self, pod: ReadOnlyTree, name: str, request: PortProbe, *, restarts: int | None = None
    ) -> PortAnswer:
        """Return what a port of the pod answers to an attempt of a container's probe; `restarts` as in `exec_sync`."""

    async def exec(self, pod: ReadOnlyTree, name: str, request: ExecRequest) -> Command:
        """Prepare a command in a running container; raise `ContainerNotFound` if it does not run."""

    def attach(
        self, pod: ReadOnlyTree, name: str, *, has_terminal: bool
    ) -> AbstractAsyncContextManager[Attachment]:
        """Retain the output of a running container from now on, for one client; raise `ContainerNotFound` if it does not run."""

    async def logs(self, pod: ReadOnlyTree, name: str, run: ContainerRun) -> LogSource:
        """Open the log of a run; raise `RuntimeProblem` if it was removed."""

    async def port_forward(self, pod: ReadOnlyTree, port: int) -> PortConnection:
        """Return what connects a client to a port in the network of the pod; raise `RuntimeProblem` if nothing can listen there."""

    def listener(
        self, pod: ReadOnlyTree, port: int, *, simulated: bool = True, source: str = "127.0.0.1"
    ) -> PortConnection | None:
        """Return what connects a client to a port at the pod's address; None if nothing listens there.

        Without `simulated`, only a program of this machine counts. `source` is the address that the server sees of its client: a simulated one, or one in a network of its own.
        """


class RuntimeEvents:
    """What happens in containers, for all that listen."""

    def __init__(self) -> None:
        self._on_change: list[Callable[[ReadOnlyTree], None]] = []
        self._on_output: list[Callable[[ReadOnlyTree], None]] = []
        self._on_scarce_disk: list[Callable[[str], None]] = []
        self._on_unknown_program: list[Callable[[ReadOnlyTree, str, str, str], None]] = []

    def on_change(self, handler: Callable[[ReadOnlyTree], None]) -> None:
        """Call the handler with a pod when the state of one of its containers has changed."""
        self._on_change.append(handler)

    def on_output(self, handler: Callable[[ReadOnlyTree], None]) -> None:
        """Call the handler with a pod when one of its containers has written output."""
        self._on_output.append(handler)

    def on_scarce_disk(self, handler: Callable[[str], None]) -> None:
        """Call the handler with the name of a node when little of its disk is left."""
        self._on_scarce_disk.append(handler)

    def on_unknown_program(self, handler: Callable[[ReadOnlyTree, str, str, str], None]) -> None:
        """Call the handler with a pod, its container, a program that the run-time lacks, and what happens without it."""
        self._on_unknown_program.append(handler)

    def report_change(self, pod: ReadOnlyTree) -> None:
        for handler in self._on_change:
            handler(pod)

    def report_output(self, pod: ReadOnlyTree) -> None:
        for handler in self._on_output:
            handler(pod)

    def report_scarce_disk(self, node: str) -> None:
        for handler in self._on_scarce_disk:
            handler(node)

    def report_unknown_program(self, pod: ReadOnlyTree, container: str, program: str, end: str) -> None:
        for handler in self._on_unknown_program:
            handler(pod, container, program, end)
