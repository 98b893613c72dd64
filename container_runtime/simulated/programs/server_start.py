"""Where the server of a known image writes at its start, and how it ends if it cannot. Pure."""

from collections.abc import Mapping, Sequence
from posixpath import basename, dirname, normpath
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import (
    ImageTable,
    WrittenPath,
    runs_server,
    without_entrypoint,
)
from mockube.container_runtime.simulated.shell.access import SEARCH, WRITE, ContainerUser
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

_NUMBERS: Final = {
    "Operation not permitted": 1,
    "Permission denied": 13,
    "No space left on device": 28,
    "Read-only file system": 30,
}
"""The numbers of errors by what the C library says."""


class FailedStart(NamedTuple):
    """The end of a server that cannot write where it has to."""

    lines: tuple[str, ...]
    exit_code: int


def written_paths(images: ImageTable, container: ReadOnlyTree) -> tuple[WrittenPath, ...]:
    """Return where a container's server writes; nothing if its command or its configuration is not that of the image."""
    image = images.behavior_of(container)
    if image is None or not image.writes or container.get("command"):
        return ()
    arguments = container.get("args") or ("-",)
    if not arguments[0].startswith("-") or any(_replaces(container, path) for path in image.configuration):
        return ()
    mounts = tuple(f"{normpath(mount['mountPath'])}/" for mount in container.get("volumeMounts") or ())
    return tuple(_with_mounted_alias(need, mounts) for need in image.writes)


def _with_mounted_alias(need: WrittenPath, mounts: tuple[str, ...]) -> WrittenPath:
    """Return a path as a volume is mounted there: /var/run is a link to /run, and some mount one, and some the other."""
    for path, alias in (("/run", "/var/run"), ("/var/run", "/run")):
        if f"{need.path}/".startswith(f"{path}/"):
            other = alias + need.path.removeprefix(path)
            return replace(need, path=other) if f"{other}/".startswith(mounts) else need
    return need


def _replaces(container: ReadOnlyTree, configuration: str) -> bool:
    """Return whether a volume replaces a server's configuration, and not only files that it includes, as those in conf.d."""
    for mount in container.get("volumeMounts") or ():
        path = normpath(mount["mountPath"])
        is_main = dirname(path) == configuration and not basename(path).endswith(".d")
        if path == configuration or is_main or configuration.startswith(f"{path}/"):
            return True
    return False


def failed_by_capabilities(
    images: ImageTable, container: Mapping[str, Any], user: ContainerUser
) -> FailedStart | None:
    """Return how a server ends that starts as root without a capability that it needs; None for any other."""
    if user.user or user.capabilities is None:
        return None
    image = images.behavior_of(container)
    if (
        image is None
        or not image.needs
        or not runs_server(images, container)
        or without_entrypoint(container, image)[0]
    ):
        return None
    need = next((need for need in image.needs if any(not user.has(name) for name in need.capabilities)), None)
    return None if need is None else FailedStart(need.logs, need.exit_code)


def failed_start(files: FileSystem, needs: Sequence[WrittenPath]) -> FailedStart | None:
    """Return how a server ends that cannot write one of its folders; None if it can write them all."""
    for need in needs:
        if reason := _problem(files, need.path):
            number = str(_NUMBERS.get(reason, 1))
            lines = (line.replace("$(number)", number).replace("$(reason)", reason) for line in need.logs)
            return FailedStart(tuple(lines), need.exit_code)
    return None


def _problem(files: FileSystem, path: str) -> str:
    try:
        if files.place(files.resolve(f"{path}/x")).read_only:
            return "Read-only file system"
        files.rights.require(files.entry(path), WRITE | SEARCH)
    except FileError as error:
        return str(error)
    return ""
