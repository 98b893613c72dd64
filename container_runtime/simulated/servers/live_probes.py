"""The probes at ports whose answers depend on files, so that they are asked in real time: servers of files with volumes, or changed by clients."""

from collections.abc import Callable, Iterator
from functools import partial
from posixpath import normpath
from typing import Final

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import API_VOLUMES, volume_kind
from mockube.container_runtime.images.table import ImageTable, PortBehavior
from mockube.container_runtime.port_probe import PortAnswer, PortProbe, port_number
from mockube.container_runtime.simulated.programs.contexts import concurrent_containers
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .http_paths import KindOfFile, is_of_image
from .listeners import listeners_of
from .probe_answers import (
    answer_of,
    handled_server_on,
    has_fixed_files,
    server_of_files,
)
from .running_servers import RunningServers
from .server_programs import ACTIONS

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_CREDENTIALS: Final = "/var/run/secrets/"
_KNOWN_VOLUMES: Final = API_VOLUMES | {"emptyDir"}
"""The kinds of volumes in which nobody but the pod's containers can have written files."""


class FileNotKnown(Exception):
    """Nobody knows whether a file exists."""


def live_port_probes(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, is_changed: Callable[[str], bool]
) -> Iterator[str]:
    """Yield the fields of the httpGet probes of a container that are asked in real time.

    `is_changed` returns whether a client may have changed the files of a container.
    """
    probes = [
        (field, probe["httpGet"])
        for field in _PROBES
        if (probe := container.get(field)) and "httpGet" in probe
    ]
    if not probes or not any(
        _may_change(other) or is_changed(other["name"]) for other in concurrent_containers(pod)
    ):
        return
    for field, action in probes:
        if action.get("host"):
            continue
        port = port_number(container, action["port"])
        served = server_of_files(images, pod, port) if port else None
        if served is not None and (is_changed(served[0]["name"]) or not has_fixed_files(images, *served)):
            yield field


def fields_of_actions(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[str]:
    """Yield the fields of httpGet probes and hooks whose requests have an effect in the server that answers them."""
    fields = [(field, container[field]) for field in _PROBES if field in container]
    for field, handler in (*fields, *(container.get("lifecycle") or {}).items()):
        action = handler.get("httpGet")
        if not action or action.get("host"):
            continue
        if field in _PROBES and not str(action.get("path") or "").partition("?")[0].endswith(ACTIONS):
            continue
        port = port_number(container, action["port"])
        if port and handled_server_on(images, pod, port) is not None:
            yield field


def fields_of_port_probes(container: ReadOnlyTree) -> Iterator[str]:
    """Yield the fields of the probes of a container at ports of its pod."""
    for field in _PROBES:
        probe = container.get(field) or {}
        action = probe.get("httpGet") or probe.get("tcpSocket") or probe.get("grpc")
        if action and not action.get("host"):
            yield field


def _may_change(container: ReadOnlyTree) -> bool:
    """Return whether the files of a container may be others than those of its image; most of them have only credentials in addition."""
    return bool(
        container.get("command")
        or container.get("args")
        or container.get("lifecycle")
        or any(
            not mount["mountPath"].startswith(_CREDENTIALS) for mount in container.get("volumeMounts") or ()
        )
    )


def answer_from_files(  # noqa: PLR0913, PLR0917 - each argument is a dependency
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    behavior: PortBehavior,
    request: PortProbe,
    elapsed: float,
    files: FileSystem,
    servers: RunningServers | None = None,
) -> PortAnswer:
    """Return the answer of a server with its present files; unknown where a program that is not simulated may have written the file."""
    try:
        kind = _kind(
            files,
            _unknown_folders(images, pod, container, servers),
            partial(may_be_of_image, images, container, behavior),
        )
        return answer_of(container, behavior, request, elapsed, kind)
    except FileNotKnown as error:
        return PortAnswer(unknown=f"what writes {error} in the image {container.get('image')}")


def may_be_of_image(images: ImageTable, container: ReadOnlyTree, behavior: PortBehavior, path: str) -> bool:
    """Return whether a path that does not exist in a container may be one of its image."""
    image = images.behavior_of(container)
    mounts = (mount["mountPath"] for mount in container.get("volumeMounts") or ())
    return is_of_image(behavior, path, (*(() if image is None else image.files), *mounts))


def _kind(
    files: FileSystem, unknown_folders: tuple[str, ...], is_unknown: Callable[[str], bool]
) -> KindOfFile:
    def kind(path: str) -> str:
        try:
            if files.exists(path):
                return "folder" if files.entry(path).is_directory else "file"
        except FileError:
            return ""
        if f"{path}/".startswith(unknown_folders) or is_unknown(path):
            raise FileNotKnown(path)
        return ""

    return kind


def _unknown_folders(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, servers: RunningServers | None
) -> tuple[str, ...]:
    """Return the folders of a server, with final slashes, in which something that is not simulated may have written."""
    if listeners_of(images, pod, container, servers).unknown:
        return ("/",)
    kinds = {volume["name"]: volume_kind(volume) for volume in pod["spec"].get("volumes") or ()}
    shared = {
        mount["name"]
        for other in every_container(pod["spec"])
        if other["name"] != container["name"] and listeners_of(images, pod, other, servers).unknown
        for mount in other.get("volumeMounts") or ()
    }
    return tuple(
        f"{normpath(mount['mountPath'])}/"
        for mount in container.get("volumeMounts") or ()
        if kinds.get(mount["name"]) not in _KNOWN_VOLUMES
        or (mount["name"] in shared and kinds[mount["name"]] not in API_VOLUMES)
    )
