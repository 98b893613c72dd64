"""Volumes of API objects that do not exist, in pods that start because a program that is not simulated may have created them."""

from collections.abc import Iterable
from posixpath import normpath

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.volumes import API_VOLUMES, volume_kind
from mockube.container_runtime.simulated.shell.filesystem import FileSystem
from mockube.container_runtime.simulated.shell.process import UnknownProgram

from .mounts import lacks_object


def with_absent_objects(
    files: FileSystem, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> FileSystem:
    """Return the files of a container, where a command that reads a volume of an object that does not exist is not simulated."""
    names = {
        volume["name"]
        for volume in pod["spec"].get("volumes") or ()
        if volume_kind(volume) in API_VOLUMES and lacks_object(volume, references)
    }
    folders = tuple(
        f"{normpath(mount['mountPath'])}/"
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in names
    )
    return _UnknownFolders(files, folders) if folders else files


class _UnknownFolders(FileSystem):
    """The same files, with folders whose content nobody knows."""

    def __init__(self, files: FileSystem, folders: tuple[str, ...]) -> None:
        self.__dict__ = files.__dict__
        self._folders = folders

    def has(self, path: str) -> bool:
        return super().has(path) or self._is_unknown(path)

    def _names(self, path: str) -> Iterable[str]:
        names = tuple(super()._names(path))
        if not names:
            self._is_unknown(f"{path.rstrip('/')}/*")
        return names

    def _is_unknown(self, path: str) -> bool:
        folder = next((folder for folder in self._folders if path.startswith(folder)), "")
        if folder:
            raise UnknownProgram(f"what creates the files in {folder.rstrip('/')}")
        return False
