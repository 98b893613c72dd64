"""Which containers run in real time, so that what happens in their pods has its effect on their commands.

Those run in real time whose commands demand it (`commands.live_command`), those that share files with others, those whose ends are not
certain in advance, and those that a client has joined by a command. All others are computed, and cost nothing while they run.
"""

from collections.abc import Callable
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import has_default_command
from mockube.container_runtime.config.volumes import API_VOLUMES, volume_kind
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import script_of

from . import predictions
from .files.mounts import shared_volumes
from .programs import commands
from .programs.lasting_files import names_mounts
from .programs.live_commands import handlers_may_interfere, sends_signals
from .servers.probe_answers import concurrent_containers


class LiveContainers:
    def __init__(
        self, images: ImageTable, is_process: Callable[[ReadOnlyTree, str], bool] | None = None
    ) -> None:
        """`is_process` returns whether a container of a pod is a process; None if none is."""
        self._images = images
        self._is_process = is_process
        self._joined: dict[str, set[str]] = {}
        """The names of the containers that clients have joined, by the pod's uid."""
        self._with_others: dict[str, frozenset[str]] = {}
        """The names of the containers whose files others may change while they run, by the pod's uid."""
        self._uncertain: dict[str, frozenset[str]] = {}
        """The names of the containers whose ends are not certain in advance, by the pod's uid."""

    def command(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
        """Return the command of a container that runs in real time; empty for any other container."""
        if command := commands.live_command(self._images, pod, container):
            return command
        is_live = self.has_changing_files(pod, container) or container["name"] in self._names_uncertain(pod)
        return commands.interpreted_command(self._images, pod, container) if is_live else ()

    def may_run(self, pod: ReadOnlyTree) -> bool:
        """Return whether a container of the pod may run in real time."""
        return (
            meta.uid(pod) in self._joined
            or bool(self._names_with_others(pod))
            or bool(self._names_uncertain(pod))
            or commands.may_run_live(self._images, pod)
        )

    def has_changing_files(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether somebody else may change the files of a container while its command runs."""
        name = container["name"]
        return name in self._joined.get(meta.uid(pod), ()) or name in self._names_with_others(pod)

    def is_process(self, pod: ReadOnlyTree, name: str) -> bool:
        """Return whether a container is a process, whose files are in the folders of its volumes."""
        return self._is_process is not None and self._is_process(pod, name)

    def shares_with_process(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether a process of the pod may change files of a container."""
        if self._is_process is None or not container.get("volumeMounts"):
            return False
        shared = shared_volumes(pod, container)
        return any(
            shared & shared_volumes(pod, other) and self._is_process(pod, other["name"])
            for other in every_container(pod["spec"])
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
        self._joined.setdefault(meta.uid(pod), set()).add(name)

    def forget(self, uid: str) -> None:
        self._joined.pop(uid, None)
        self._with_others.pop(uid, None)
        self._uncertain.pop(uid, None)

    def _names_with_others(self, pod: ReadOnlyTree) -> frozenset[str]:
        uid = meta.uid(pod)
        names = self._with_others.get(uid)
        if names is None:
            if not _may_have_others(pod):
                return _NO_NAMES  # as for nearly all pods, so that nothing is kept for them
            names = self._with_others[uid] = frozenset(
                container["name"]
                for container in concurrent_containers(pod)
                if not self.is_process(pod, container["name"]) and self._has_others(pod, container)
            )
        return names

    def _has_others(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether other containers, or the container's own hooks and probes, may change its files or send it signals."""
        interferes_itself = handlers_may_interfere(container)
        shared = {
            name: others
            for name in shared_volumes(pod, container)
            if (
                others := [
                    other
                    for other in concurrent_containers(pod)
                    if other["name"] != container["name"] and name in shared_volumes(pod, other)
                ]
            )
        }
        gets_signals = _gets_signals(self._images, pod, container)
        if not interferes_itself and not shared and not gets_signals:
            return False
        script = script_of(meta.annotations(pod))
        argv = commands.interpreted_command(self._images, pod, container)
        if not argv or not predictions.is_simulated(self._images, pod, container, script):
            return False
        # What a program that is not simulated writes is not there: a command that needs it would fail.
        known = {
            name
            for name, others in shared.items()
            if all(
                (has_default_command(other) and predictions.knows_image(self._images, other))
                or predictions.is_simulated(self._images, pod, other, script)
                or self.is_process(pod, other["name"])
                for other in others
            )
        }
        return interferes_itself or gets_signals or names_mounts(container, argv, known)

    def _names_uncertain(self, pod: ReadOnlyTree) -> frozenset[str]:
        uid = meta.uid(pod)
        names = self._uncertain.get(uid)
        if names is None:
            interpreted = [
                container
                for container in every_container(pod["spec"])
                if commands.interpreted_command(self._images, pod, container)
            ]
            if not interpreted:
                return _NO_NAMES
            names = self._uncertain[uid] = frozenset(
                container["name"]
                for container in interpreted
                if not _is_certain(self._images, pod, container)
            )
        return names


def _is_certain(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a command is computed to its end, or what it does is not simulated at all."""
    behavior = predictions.program_of_run(images, pod, container, script_of(meta.annotations(pod)))()
    if behavior is None:
        return True
    return behavior.is_certain and not commands.shows_surroundings(
        commands.interpreted_command(images, pod, container)
    )


_NO_NAMES: Final[frozenset[str]] = frozenset()


def _may_have_others(pod: ReadOnlyTree) -> bool:
    spec = pod["spec"]
    is_alone = len(spec["containers"]) == 1 and not spec.get("initContainers")
    if not is_alone and any(volume_kind(volume) not in API_VOLUMES for volume in spec.get("volumes") or ()):
        return True
    shares_processes = not is_alone and bool(spec.get("shareProcessNamespace"))
    return shares_processes or any(map(handlers_may_interfere, spec["containers"]))


def _gets_signals(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether another container shares its processes with a container, and may send signals to them."""
    if not pod["spec"].get("shareProcessNamespace"):
        return False
    return any(
        sends_signals(commands.interpreted_command(images, pod, other)) or handlers_may_interfere(other)
        for other in every_container(pod["spec"])
        if other["name"] != container["name"]
    )
