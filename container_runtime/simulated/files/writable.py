"""The file systems of running containers with the changes of their commands, for a limited number of runs.

The containers of a pod share the files of its volumes. Those of claims and of nodes outlive the pods.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileError, FileSystem, Mount
from mockube.container_runtime.volume_contents import OF_NODE, OF_POD, Volume

from .folder_file_system import FolderFileSystem
from .fs_groups import give
from .machine_folder import MachineFolder
from .mounts import SharedMount

LOG: Final = logging.getLogger(__name__)

MAX_CONTAINERS: Final = 200
MAX_BYTES: Final = 64 << 20
"""The maximum bytes of all file systems together; the least recently used one is dropped first."""

MAX_LASTING_BYTES: Final = 256 << 20
"""The maximum bytes of all claims and nodes together; the least recently used contents are dropped first, with a line in the log."""

Volumes = MutableMapping[Volume, FileSystem]
"""The contents of volumes."""
CreateVolume = Callable[[Volume, FileEntry, Callable[[], None]], FileSystem]
"""Returns the contents of a volume at first, by its root folder and what is called after each change."""

InFolder = Callable[[MachineFolder, FileSystem], FolderFileSystem]
"""Returns the contents of a volume, which are not in the folder yet, as those of a folder of this machine."""


def empty_volume(_: Volume, root: FileEntry, on_change: Callable[[], None]) -> FileSystem:
    return FileSystem(root=root, on_change=on_change)


def in_folder(folder: MachineFolder, present: FileSystem) -> FolderFileSystem:
    return FolderFileSystem(folder, present.entry("/"), present.source)


class RunKey(NamedTuple):
    uid: str
    container: str
    restarts: int


class ContainerFiles:
    def __init__(
        self,
        on_change: Callable[[Volume], None] = lambda _: None,
        create: CreateVolume = empty_volume,
        in_folder: InFolder = in_folder,
    ) -> None:
        """`on_change` is called with a volume after each change of its contents; `create` makes a volume, and `in_folder` moves one."""
        self._in_folder = in_folder
        self._on_change = on_change
        self._create = create
        self._file_systems: OrderedDict[RunKey, FileSystem] = OrderedDict()
        self._in_use: WeakValueDictionary[RunKey, FileSystem] = WeakValueDictionary()
        """All that exist: a command that runs keeps its own, also when there are too many."""
        self._volumes: dict[str, Volumes] = {}
        """The contents of pods' own volumes by the pod's uid."""
        self._lasting: OrderedDict[Volume, FileSystem] = OrderedDict()
        """The contents that outlive pods."""
        self._mounted: dict[str, set[Volume]] = {}
        """The volumes that a kubelet has given to the group of their pod, by the pod's uid."""

    def contains(self, key: RunKey) -> bool:
        return key in self._in_use

    def keeps(self, key: RunKey) -> bool:
        """Return whether the file system of a run is among the limited number that is kept for those who look at it."""
        return key in self._file_systems

    def has_pod(self, uid: str) -> bool:
        """Return whether files of a pod are in memory."""
        return uid in self._volumes

    def file_system(
        self,
        key: RunKey,
        files: Mapping[str, FileEntry],
        mounts: Sequence[SharedMount],
        create: Callable[[Mapping[str, Mount]], FileSystem],
    ) -> FileSystem:
        """Return the file system of a run, with the present contents of its read-only mounts; `create` returns a new one."""
        shared = self.mount(key.uid, mounts)
        file_system = self._in_use.get(key)
        self._file_systems.pop(key, None)
        if file_system is None:
            file_system = self._in_use[key] = create(shared)
        else:
            file_system.replace_read_only({path: entry for path, entry in files.items() if entry.read_only})
        self._file_systems[key] = file_system
        while len(self._file_systems) > 1 and (
            len(self._file_systems) > MAX_CONTAINERS or self._size() > MAX_BYTES
        ):
            # Nothing here may refer to the file system itself, which is gone if no command uses it.
            evicted = self._file_systems.popitem(last=False)[0]
            if evicted.uid in self._volumes and all(
                other.uid != evicted.uid for other in (*self._file_systems, *self._in_use)
            ):
                volumes = self._volumes.pop(evicted.uid)
                # What is in folders of this machine takes no memory, and processes have it.
                if folders := {volume: files for volume, files in volumes.items() if files.is_folder}:
                    self._volumes[evicted.uid] = folders
        return file_system

    def _give_to_group(
        self, uid: str, mounts: Sequence[SharedMount], mounts_by_path: Mapping[str, Mount]
    ) -> None:
        """Give the contents of volumes to the group of their pod when it mounts them first, as a kubelet does."""
        for mount in mounts:
            if mount.fs_group is None or mount.volume in self._mounted.setdefault(uid, set()):
                continue
            self._mounted[uid].add(mount.volume)
            give(mounts_by_path[mount.mount_path].files, mount.folder, mount.fs_group)

    def find_volume(self, volume: Volume) -> FileSystem | None:
        """Return the contents of a volume, if they are in memory."""
        volumes = self._volumes.get(volume[1], {}) if volume[0] == OF_POD else self._lasting
        return volumes.get(volume)

    def mount(self, uid: str, mounts: Sequence[SharedMount]) -> Mapping[str, Mount]:
        """Return the mounts of a container by path, as `file_system` mounts them; volumes that do not exist yet are created empty."""
        shared = {}
        if mounts:
            shared = mounts_of(mounts, partial(self._volumes_of, uid), self._on_change, self._create)
        self._give_to_group(uid, mounts, shared)
        return shared

    def move_to_folder(self, volume: Volume, path: Path) -> tuple[FolderFileSystem, tuple[str, ...]]:
        """Move the contents of a volume into a folder of this machine, also for the containers that have it now.

        Return them, and the paths of files whose data are nowhere.
        """
        volumes = self._volumes_of(volume[1], volume)
        present = volumes[volume]
        if isinstance(present, FolderFileSystem):
            return present, ()
        path.mkdir(parents=True, exist_ok=True)
        entries = dict(present.entries("/"))
        moved = self._in_folder(MachineFolder(path), present)
        lost = moved.fill(entries)
        moved.capacity = present.capacity
        moved.report_changes(partial(self._on_change, volume))
        volumes[volume] = moved
        for files in self._in_use.values():
            files.replace_mounted(present, moved)
        return moved, lost

    def folders(self) -> Iterator[tuple[Volume, FolderFileSystem]]:
        """Yield the volumes that are in folders of this machine."""
        for volumes in (self._lasting, *self._volumes.values()):
            for volume, files in volumes.items():
                if isinstance(files, FolderFileSystem):
                    yield volume, files

    def drop(self, volume: Volume) -> FileSystem | None:
        """Drop the contents of a deleted volume, and return them."""
        return self._lasting.pop(volume, None)

    def replace_volume(self, volume: Volume, files: Mapping[str, FileEntry]) -> None:
        """Replace the contents of a volume, also in the containers that have it now."""
        self.volume(volume, files.get("/")).replace_contents(files)

    def volume(self, volume: Volume, root: FileEntry | None = None) -> FileSystem:
        """Return the contents of a volume; one that is not in memory is created with a root folder."""
        present = self.find_volume(volume)
        if present is None:
            present = self._create(volume, root or FileEntry(mode=0o755), partial(self._on_change, volume))
            self._volumes_of(volume[1], volume)[volume] = present
        return present

    def _volumes_of(self, uid: str, key: Volume) -> Volumes:
        """Return the volumes of which one is: those of its pod, or those that outlive it."""
        if key[0] == OF_POD:
            return self._volumes.setdefault(uid, {})
        if key in self._lasting:
            self._lasting.move_to_end(key)
        while sum(files.size for files in self._lasting.values()) > MAX_LASTING_BYTES:
            dropped = next(volume for volume, files in self._lasting.items() if files.size)
            del self._lasting[dropped]
            LOG.warning(
                "the contents of %s are dropped: simulated volumes have too many bytes", "/".join(dropped)
            )
        return self._lasting

    def _size(self) -> int:
        volumes = (
            file_system for pod_volumes in self._volumes.values() for file_system in pod_volumes.values()
        )
        return sum(file_system.size for file_system in (*self._file_systems.values(), *volumes))

    def disk_usage(self, uid: str) -> DiskUsage | None:
        """Return what the latest runs of a pod's containers, and its own volumes on the disk have; None if that is not in memory."""
        latest = {
            key.container: files
            for key, files in sorted(self._file_systems.items(), key=lambda item: item[0].restarts)
            if key.uid == uid
        }
        if not latest and uid not in self._volumes:
            return None
        volumes = {
            key[2]: files.used for key, files in self._volumes.get(uid, {}).items() if not files.in_memory
        }
        return DiskUsage({name: files.written for name, files in latest.items()}, volumes)

    def forget(self, uid: str) -> None:
        """Drop the file systems of a deleted pod."""
        for key in [key for key in self._file_systems if key.uid == uid]:
            del self._file_systems[key]
        self._volumes.pop(uid, None)
        self._mounted.pop(uid, None)


def mounts_of(
    mounts: Sequence[SharedMount],
    volumes_of: Callable[[Volume], Volumes],
    on_change: Callable[[Volume], None] = lambda _: None,
    create: CreateVolume = empty_volume,
) -> dict[str, Mount]:
    """Return a container's mounts by path; volumes that do not exist yet are created.

    `on_change` is called with a volume after each change of its contents.
    """
    mounts_by_path = {}
    for mount in mounts:
        volumes = volumes_of(mount.volume)
        files = volumes.get(mount.volume)
        if files is None:
            root = FileEntry(mode=0o755) if mount.volume[0] == OF_NODE else mount.root
            files = volumes[mount.volume] = create(mount.volume, root, partial(on_change, mount.volume))
        files.capacity = mount.capacity
        inner = mount.inner
        # A process may have put a file into the way: what is mounted is not there then.
        with suppress(FileError):
            inner = files.resolve(inner) if inner else ""
            if inner and not files.has(inner) and not mount.root.is_directory:
                files.put(inner, mount.root)
            elif inner and not files.has(inner):
                files.make_directory(inner, parents=True, mode=mount.root.mode & 0o7777)
        mounts_by_path[mount.mount_path] = Mount(files=files, inner=inner, read_only=mount.read_only)
    return mounts_by_path
