"""Mounts of folders over files of an image, at which a container cannot be started. Pure."""

from collections.abc import Callable
from posixpath import normpath
from typing import Final

from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.volume_paths import mount_source

_HINT: Final = "Are you trying to mount a directory onto a file (or vice-versa)? Check if the specified host path exists and is the expected type"


def mount_problem(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    config_map: Callable[[str], ReadOnlyTree | None],
    secret: Callable[[str], ReadOnlyTree | None],
) -> str:
    """Return what runc says of a subPath that the ConfigMap or Secret lacks, at the path of a file of the image; "" if there is none.

    A kubelet makes a folder for such a subPath, which runc cannot mount over the file.
    """
    image = images.behavior_of(container)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for number, mount in enumerate(container.get("volumeMounts") or () if image else ()):
        path, part, volume = (
            normpath(mount["mountPath"]),
            mount.get("subPath"),
            volumes.get(mount["name"], {}),
        )
        if not part or image is None or path not in image.files:
            continue
        for field, name_field, find in (("configMap", "name", config_map), ("secret", "secretName", secret)):
            source = volume.get(field) or {}
            found = find(source[name_field]) if source.get(name_field) else None
            if not found or _has(found, source, part.strip("/")):
                continue
            folder = mount_source(pod, kubelet_uid(pod), container, number)
            return (
                f'error mounting "{folder}" to rootfs at "{path}": mount src={folder}, dst={path}, dstFd=/proc/thread-self/fd/8, '
                f"flags=MS_BIND|MS_REC: not a directory: {_HINT}"
            )
    return ""


def _has(found: ReadOnlyTree, source: ReadOnlyTree, part: str) -> bool:
    """Return whether a path is a file, or a folder of files, in the volume of an object."""
    keys = {key for field in ("data", "binaryData") for key in found.get(field) or ()}
    paths = [item["path"] for item in source.get("items") or ()] or keys
    return any(f"{path}/".startswith(f"{part}/") for path in paths)
