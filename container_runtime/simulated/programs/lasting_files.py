"""The commands that use files which outlive their pods, those of claims and of nodes, and those that may fill a disk. Pure.

What such a command does depends on what other pods have written, or on what is left of a disk, so it is not known before it runs.
"""

import re
from collections.abc import Container
from functools import lru_cache
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import is_claim
from mockube.container_runtime.disk_usage import EPHEMERAL_STORAGE
from mockube.container_runtime.simulated.shell.disks import SHARED_MEMORY_PATH

WRITE_COMMAND: Final = re.compile(
    r">|\b(?:tee|touch|mkdir|cp|mv|rm|tar|ln|sed|dd|chmod|mounttest|apt|apt-get|apk|yum|dnf|microdnf)\b"
)
"""Matches a command that may write files."""
_WRITES_MUCH: Final = re.compile(
    r"\b(?:dd|fallocate|head|yes|cat|while|for|until|cp)\b|/dev/(?:zero|u?random)"
)
"""Matches a command that may write many bytes."""


def is_lasting(volume: ReadOnlyTree) -> bool:
    """Return whether the contents of a volume may outlive its pod."""
    return "hostPath" in volume or is_claim(volume)


def uses_lasting_files(pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether a command of a container names a folder with such files, also by a variable, or runs in one."""
    if not container.get("volumeMounts") or not argv:
        return False
    names = {volume["name"] for volume in pod["spec"].get("volumes") or () if is_lasting(volume)}
    return names_mounts(container, argv, names)


def names_mounts(container: ReadOnlyTree, argv: tuple[str, ...], volumes: Container[str]) -> bool:
    """Return whether a command names a folder at which one of the volumes is mounted, also by a variable, or runs in one."""
    mounts = container.get("volumeMounts") or ()
    paths = [mount["mountPath"].rstrip("/") or "/" for mount in mounts if mount["name"] in volumes]
    if not paths:
        return False
    texts = [
        *argv,
        container.get("workingDir") or "",
        *(entry.get("value") or "" for entry in container.get("env") or ()),
    ]
    return any(path in text for path in paths for text in texts)


def has_lasting_volume(pod: ReadOnlyTree) -> bool:
    return any(is_lasting(volume) for volume in pod["spec"].get("volumes") or ())


def has_small_disk(pod: ReadOnlyTree) -> bool:
    """Return whether a pod has an emptyDir with a size or in memory, or limits what it may use of its node's disk."""
    spec = pod["spec"]
    for volume in spec.get("volumes") or ():
        source = volume.get("emptyDir") or {}
        if source.get("sizeLimit") or source.get("medium") == "Memory":
            return True
    for container in spec["containers"]:
        resources = container.get("resources")
        if resources and EPHEMERAL_STORAGE in (resources.get("limits") or {}):
            return True
    return False


@lru_cache(maxsize=4096)
def may_fill_shared_memory(argv: tuple[str, ...]) -> bool:
    """Return whether a command may write more into the shared memory of its pod than that has."""
    return any(f"{SHARED_MEMORY_PATH}/" in argument for argument in argv) and may_fill_disk(argv)


def may_fill_disk(argv: tuple[str, ...]) -> bool:
    """Return whether a command may write more than a small disk has."""
    return any(_WRITES_MUCH.search(argument) for argument in argv)
