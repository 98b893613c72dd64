"""Which containers run in real time, so that what happens outside of them has its effect on their commands.

A command is computed in advance until it asks for something that its container alone does not answer (`OutsideAnswer`). Then it runs in real time
from its start, as do those that read input from clients, the servers with configurations, and those that a client has joined by a command.
All others cost nothing while they run.
"""

from collections.abc import Callable

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.records import Records

from . import predictions
from .files.mounts import shared_volumes
from .programs import commands
from .programs.contexts import concurrent_containers
from .programs.live_commands import handler_commands


class _Joined(set[str]):
    """The names of the containers of a pod that clients have joined."""


class _Certain(dict[tuple[str, str, int], bool]):
    """Whether the runs of a pod's containers are certain in advance, by the container's name and image, and the version of the table."""


class _Interfering(dict[tuple[str, str, int], bool]):
    """Whether probes and hooks may change what a pod's containers do, by the same."""


class LiveContainers:
    def __init__(
        self,
        images: ImageTable,
        records: Records,
        is_process: Callable[[ReadOnlyTree, str], bool] | None = None,
    ) -> None:
        """`is_process` returns whether a container of a pod is a process; None if none is."""
        self._images = images
        self._is_process = is_process
        self._records = records

    def command(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
        """Return the command of a container that runs in real time; empty for any other container."""
        if command := commands.live_command(self._images, pod, container):
            return command
        argv = commands.interpreted_command(self._images, pod, container)
        return argv if argv and self._is_live(pod, container) else ()

    def may_run(self, pod: ReadOnlyTree) -> bool:
        """Return whether a container of the pod may run in real time."""
        return any(self.command(pod, container) for container in every_container(pod["spec"]))

    def may_be_changed(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether hooks, probes and processes may change a container's files, or others send signals to its processes."""
        if self._has_interfering_handlers(pod, container) or self.shares_with_process(pod, container):
            return True
        return bool(pod["spec"].get("shareProcessNamespace")) and any(
            self._has_interfering_handlers(pod, other) or not self._is_certain(pod, other)
            for other in every_container(pod["spec"])
            if other["name"] != container["name"] and commands.interpreted_command(self._images, pod, other)
        )

    def is_process(self, pod: ReadOnlyTree, name: str) -> bool:
        """Return whether a container is a process, whose files are in the folders of its volumes."""
        return self._is_process is not None and self._is_process(pod, name)

    def shares_with_process(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether a process that runs beside a container may change its files."""
        if self._is_process is None or not container.get("volumeMounts"):
            return False
        shared, concurrent = shared_volumes(pod, container), [*concurrent_containers(pod)]
        return any(other["name"] == container["name"] for other in concurrent) and any(
            shared & shared_volumes(pod, other) and self._is_process(pod, other["name"])
            for other in concurrent
        )

    def without_processes(self, pod: ReadOnlyTree) -> ReadOnlyTree:
        """Return a pod without its processes, of which nobody need guess what they write: it is in the folders of volumes."""
        if self._is_process is None:
            return pod
        others = [each for each in pod["spec"]["containers"] if not self.is_process(pod, each["name"])]
        return {**pod, "spec": {**pod["spec"], "containers": others}}

    def can_join(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether a container that is computed in advance can go on in real time."""
        return (
            not self.is_process(pod, container["name"])
            and not self.command(pod, container)
            and bool(commands.interpreted_command(self._images, pod, container))
            and predictions.is_simulated(self._images, pod, container, script_of(meta.annotations(pod)))
        )

    def join(self, pod: ReadOnlyTree, name: str) -> None:
        self._records.ensure(meta.uid(pod), _Joined).add(name)

    def _is_live(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether what happens outside of a command counts for it."""
        is_joined = container["name"] in (self._records.find(meta.uid(pod), _Joined) or ())
        return is_joined or not self._is_certain(pod, container) or self.may_be_changed(pod, container)

    def _has_interfering_handlers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether a command of a container's probes or hooks may write files that others read, or send signals."""
        commands = handler_commands(container)
        if not commands:
            return False
        known = self._records.ensure(meta.uid(pod), _Interfering)
        key = container["name"], container.get("image") or "", self._images.version
        if key not in known:
            script = script_of(meta.annotations(pod))
            known[key] = any(
                predictions.outcome_of_handler(self._images, pod, container, script, argv).interferes
                for argv in commands.values()
            )
        return known[key]

    def _is_certain(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether a command is computed to its end, or what it does is not simulated at all."""
        known = self._records.ensure(meta.uid(pod), _Certain)
        key = container["name"], container.get("image") or "", self._images.version
        if key not in known:
            behavior = predictions.program_of_run(
                self._images, pod, container, script_of(meta.annotations(pod))
            )()
            known[key] = behavior is None or behavior.is_certain
        return known[key]
