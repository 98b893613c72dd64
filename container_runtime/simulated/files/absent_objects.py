"""Volumes of API objects that do not exist, in pods that start because a program that is not simulated may have created them."""

from posixpath import normpath

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.volumes import API_VOLUMES, volume_kind
from mockube.container_runtime.simulated.shell.process import UnknownProgram
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.unknown_files import UnknownFiles

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
    return files.view(unknown=_UnknownFolders(files.unknown, folders)) if folders else files


class _UnknownFolders(UnknownFiles):
    """The same unknown files, and folders whose content nobody knows."""

    def __init__(self, unknown: UnknownFiles, folders: tuple[str, ...]) -> None:
        self.__dict__ = unknown.__dict__
        self._folders = folders

    def is_present(self, path: str) -> bool:
        folder = next((folder for folder in self._folders if path.startswith(folder)), "")
        if folder:
            raise UnknownProgram(f"what creates the files in {folder.rstrip('/')}")
        return False

    def check_listing(self, path: str) -> None:
        found = self.mounts.find(path)
        names = self.mounts.inodes.names(path) if found is None else found[0].files.names(found[1])
        if not names:
            self.is_present(f"{path.rstrip('/')}/*")
