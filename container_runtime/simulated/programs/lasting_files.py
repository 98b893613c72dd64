"""The commands that use files which outlive their pods, those of claims and of nodes, and those that may fill a disk. Pure.

What such a command does depends on what other pods have written, or on what is left of a disk, so it is not known before it runs.
"""

import re
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import is_claim
from mockube.container_runtime.disk_usage import EPHEMERAL_STORAGE

_WRITES_MUCH: Final = re.compile(
    r"\b(?:dd|fallocate|head|yes|cat|while|for|until|cp)\b|/dev/(?:zero|u?random)"
)
"""Matches a command that may write many bytes."""


def is_lasting(volume: ReadOnlyTree) -> bool:
    """Return whether the contents of a volume may outlive its pod."""
    return "hostPath" in volume or is_claim(volume)


def uses_lasting_files(pod: ReadOnlyTree, container: ReadOnlyTree, argv: tuple[str, ...]) -> bool:
    """Return whether a command of a container names a folder with such files, also by a variable, or runs in one."""
    mounts = container.get("volumeMounts")
    if not mounts or not argv:
        return False
    names = {volume["name"] for volume in pod["spec"].get("volumes") or () if is_lasting(volume)}
    paths = [mount["mountPath"].rstrip("/") or "/" for mount in mounts if mount["name"] in names]
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
    """Return whether a pod has an emptyDir with a size, or limits what it may use of its node's disk."""
    spec = pod["spec"]
    for volume in spec.get("volumes") or ():
        if "emptyDir" in volume and (volume["emptyDir"] or {}).get("sizeLimit"):
            return True
    for container in spec["containers"]:
        resources = container.get("resources")
        if resources and EPHEMERAL_STORAGE in (resources.get("limits") or {}):
            return True
    return False


def may_fill_disk(argv: tuple[str, ...]) -> bool:
    """Return whether a command may write more than a small disk has."""
    return any(_WRITES_MUCH.search(argument) for argument in argv)
