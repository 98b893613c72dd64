"""The file systems of running containers with the changes of their commands, for a limited number of runs.

The containers of a pod share the files of its volumes.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileSystem, ImagePlaces, Mount

from .mounts import SharedMount

MAX_CONTAINERS: Final = 200
MAX_BYTES: Final = 64 << 20
"""The maximum bytes of all file systems together; the least recently used one is dropped first."""

Volumes = dict[str, FileSystem]
"""The file systems of one pod's volumes, by name."""


class RunKey(NamedTuple):
    uid: str
    container: str
    restarts: int


class ContainerFiles:
    def __init__(self) -> None:
        self._file_systems: OrderedDict[RunKey, FileSystem] = OrderedDict()
        self._volumes: dict[str, Volumes] = {}

    def contains(self, key: RunKey) -> bool:
        return key in self._file_systems

    def file_system(
        self,
        key: RunKey,
        files: Mapping[str, FileEntry],
        mounts: Sequence[SharedMount] = (),
        places: ImagePlaces | None = None,
        known_paths: tuple[str, ...] = (),
    ) -> FileSystem:
        """Return the file system of a run, with the present contents of its read-only mounts.

        The image of a new one has no files below the `known_paths`.
        """
        file_system = self._file_systems.pop(key, None)
        if file_system is None:
            shared = mounts_of(mounts, self._volumes.setdefault(key.uid, {})) if mounts else None
            file_system = FileSystem(files, mounts=shared, volumes=known_paths, places=places)
        else:
            file_system.replace_read_only({path: entry for path, entry in files.items() if entry.read_only})
        self._file_systems[key] = file_system
        while len(self._file_systems) > 1 and (
            len(self._file_systems) > MAX_CONTAINERS or self._size() > MAX_BYTES
        ):
            evicted, _ = self._file_systems.popitem(last=False)
            if all(other.uid != evicted.uid for other in self._file_systems):
                self._volumes.pop(evicted.uid, None)
        return file_system

    def _size(self) -> int:
        volumes = (
            file_system for pod_volumes in self._volumes.values() for file_system in pod_volumes.values()
        )
        return sum(file_system.size for file_system in (*self._file_systems.values(), *volumes))

    def forget(self, uid: str) -> None:
        """Drop the file systems of a deleted pod."""
        for key in [key for key in self._file_systems if key.uid == uid]:
            del self._file_systems[key]
        self._volumes.pop(uid, None)


def mounts_of(mounts: Sequence[SharedMount], volumes: Volumes) -> dict[str, Mount]:
    """Return a container's mounts by path; volumes that do not exist yet are created empty."""
    mounts_by_path = {}
    for mount in mounts:
        files = volumes.setdefault(mount.volume, FileSystem())
        if mount.inner:
            files.make_directory(mount.inner, parents=True)
        mounts_by_path[mount.mount_path] = Mount(files=files, inner=mount.inner, read_only=mount.read_only)
    return mounts_by_path
