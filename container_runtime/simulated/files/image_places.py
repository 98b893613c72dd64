"""Where a container may have files that are not known."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.simulated.shell.filesystem import ImagePlaces

_SYSTEM_FOLDERS: Final = (
    "/bin/", "/dev/", "/docker-entrypoint", "/entrypoint", "/etc/", "/home/", "/lib", "/opt/", "/proc/", "/root/", "/run/", "/sbin/",
    "/sys/", "/usr/", "/var/",
)  # fmt: skip
"""The beginnings of paths at which each image may have files."""
_FOLDERS_OF_PROGRAMS: Final = ("/app", "/srv")
"""Where images that are not known usually have their own program."""
_PATH: Final = re.compile(r"/[\w.-]+(?:/[\w.+-]*)*")


def file_places(container: Mapping[str, Any]) -> ImagePlaces:
    """Return where a container may have files that are not known: in the folders of a system, in volumes, which may be from
    objects, and in those folders of its image that the table names, or that its specification mentions.
    """
    image = behavior_of(container)
    mounted = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
    folders = [*mounted]
    is_known = image is not None and image.folders is not None
    if image is not None and image.folders is not None:
        folders += image.folders
    else:
        folders += _mentioned_folders(container)
    usual = (*_SYSTEM_FOLDERS, *(f"{path.rstrip('/')}/" for path in folders))
    volumes = tuple(f"{path.rstrip('/')}/" for path in mounted)
    return ImagePlaces(usual, usual if is_known else None, volumes)


def _mentioned_folders(container: Mapping[str, Any]) -> Iterator[str]:
    """Yield the folders in which an image has files, or its command does not run."""
    yield from _FOLDERS_OF_PROGRAMS
    for path in (
        container.get("workingDir"),
        *(container.get("command") or ()),
        *(container.get("args") or ()),
    ):
        if path and _PATH.fullmatch(path):
            yield f"/{path.split('/')[1]}"
