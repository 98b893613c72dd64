"""Where a container may have files that are not known."""

import re
from collections.abc import Iterator, Mapping
from posixpath import dirname, normpath
from typing import Any, Final

from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.shell.vfs.image_folders import ImagePlaces

from .distributions import BUSYBOX, distribution_of
from .system_files import SYSTEM_FILES

_SYSTEM_FOLDERS: Final = (
    "/bin/", "/dev/", "/docker-entrypoint", "/entrypoint", "/etc/", "/home/", "/lib", "/opt/", "/proc/", "/root/", "/run/", "/sbin/",
    "/sys/", "/usr/", "/var/",
)  # fmt: skip
"""The beginnings of paths at which each image may have files."""
_FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "alpine": ("/media", "/mnt", "/opt", "/run", "/srv", "/tmp"),  # noqa: S108 - of a simulated container
    "debian": ("/boot", "/media", "/mnt", "/opt", "/run", "/srv", "/tmp"),  # noqa: S108
    BUSYBOX: ("/tmp",),  # noqa: S108
}
"""The folders of base images, by distribution, besides those that every container has."""
_LACKING: Final = {BUSYBOX: ("/opt/", "/run/")}
"""The folders of a system that a distribution lacks."""
_FOLDERS_OF_PROGRAMS: Final = ("/app", "/srv")
"""Where images that are not known usually have their own program."""
_PATH: Final = re.compile(r"/[\w.-]+(?:/[\w.+-]*)*")


def file_places(images: ImageTable, container: Mapping[str, Any]) -> ImagePlaces:
    """Return where a container may have files that are not known: in the folders of a system, in volumes, which may be from
    objects, and in those folders of its image that the table names, or that its specification mentions.
    """
    image = images.behavior_of(container)
    mounted = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
    folders = [*mounted]
    is_known = image is not None and image.folders is not None
    if image is not None and image.folders is not None:
        folders += image.folders
    else:
        folders += _mentioned_folders(container)
    lacking = _LACKING.get(distribution_of(images, container).family, ()) if is_known else ()
    system = (path for path in _SYSTEM_FOLDERS if path not in lacking)
    usual = (*system, *(f"{path.rstrip('/')}/" for path in folders))
    volumes = tuple(f"{path.rstrip('/')}/" for path in mounted)
    listed = SYSTEM_FILES[distribution_of(images, container).family] if image and image.is_base else ()
    if not is_known:
        return ImagePlaces(usual, None, volumes, listed=listed)
    return ImagePlaces(usual, usual, volumes, tuple(_present_folders(images, container)), listed)


def _present_folders(images: ImageTable, container: Mapping[str, Any]) -> Iterator[str]:
    """Yield the folders of a known image, and those that a runtime creates."""
    yield from _FOLDERS[distribution_of(images, container).family]
    image = images.behavior_of(container)
    if image is not None:
        yield from image.volumes
        yield from (need.path for need in image.writes)
        if image.workdir:
            yield image.workdir
    if directory := container.get("workingDir"):
        yield normpath(directory)
    if message_path := container.get("terminationMessagePath"):
        yield dirname(normpath(message_path))


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
