"""The servers of images whose programs are in folders that volumes hide. Pure."""

from collections.abc import Iterator
from posixpath import normpath
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import NOT_FOUND
from mockube.container_runtime.config.volumes import volume_kind
from mockube.container_runtime.images.programs import ImagePrograms, programs_of_image
from mockube.container_runtime.images.table import ImageTable, Requirement
from mockube.container_runtime.start_errors import NOT_STARTED, not_in_path

ENTRYPOINT: Final = "docker-entrypoint.sh"
_NEW_VOLUMES: Final = ("emptyDir", "ephemeral", "persistentVolumeClaim")
"""The kinds of volumes that contain only what containers of the cluster have written."""


def hidden_server(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> Requirement | None:
    """Return what a container without a command does whose entrypoint, or its server, is hidden; None if none is.

    One whose entrypoint is not there does not start: its exit code is `NOT_STARTED`.
    """
    image = images.behavior_of(container)
    if image is None or not image.servers or container.get("command") or not container.get("volumeMounts"):
        return None
    installed = programs_of_image(images, container.get("image") or "")
    empty = [*_new_folders(pod, container)]
    if installed is None or not empty:
        return None
    if _is_hidden(installed, ENTRYPOINT, empty):
        return Requirement(one_of=(), exit_code=NOT_STARTED)
    server = image.servers[0]
    if not _is_hidden(installed, server, empty):
        return None
    return Requirement(one_of=(), logs=(f"/{ENTRYPOINT}: exec: {server}: not found",), exit_code=NOT_FOUND)


def start_problem(requirement: Requirement) -> str:
    """Return why the entrypoint cannot be started; "" if it can."""
    return not_in_path(ENTRYPOINT) if requirement.exit_code == NOT_STARTED else ""


def new_volumes(pod: ReadOnlyTree) -> set[str]:
    """Return the names of the volumes that only containers of the pod write, and that no init container mounts."""
    prepared = {
        mount["name"]
        for other in pod["spec"].get("initContainers") or ()
        for mount in other.get("volumeMounts") or ()
    }
    volumes = pod["spec"].get("volumes") or ()
    return {each["name"] for each in volumes if volume_kind(each) in _NEW_VOLUMES} - prepared


def _new_folders(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[str]:
    """Yield the mount paths, with final slashes, of the volumes that have no program."""
    names = new_volumes(pod)
    for mount in container.get("volumeMounts") or ():
        if mount["name"] in names:
            yield f"{normpath(mount['mountPath']).rstrip('/')}/"


def _is_hidden(installed: ImagePrograms, name: str, empty: list[str]) -> bool:
    folders = [*installed.folders(name)]
    return bool(folders) and all(
        any(f"{path}/".startswith(tuple(empty)) for path in paths) for paths in folders
    )
