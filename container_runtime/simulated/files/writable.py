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
from weakref import WeakSet, WeakValueDictionary

from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import Mount
from mockube.container_runtime.simulated.shell.vfs.path_walk import tree_entries
from mockube.container_runtime.volume_contents import OF_NODE, OF_POD, Volume

from .folder_inodes import FolderInodes
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

InFolder = Callable[[MachineFolder, FileSystem], FolderInodes]
"""Returns the contents of a volume, which are not in the folder yet, as those of a folder of this machine."""


def empty_volume(_: Volume, root: FileEntry, on_change: Callable[[], None]) -> FileSystem:
    return FileSystem(root=root, on_change=on_change)


def in_folder(folder: MachineFolder, present: FileSystem) -> FolderInodes:
    return FolderInodes(folder, present.entry("/"), present.inodes.source)


class RunKey(NamedTuple):
    uid: str
    container: str
    restarts: int


class FilesOfPod:
    """The files of a pod that are in memory."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, int], FileSystem] = {}
        """By the container's name and the number of its restarts."""
        self.volumes: Volumes = {}
        """The contents of the pod's own volumes."""
        self.mounted: set[Volume] = set()
        """The volumes that a kubelet has given to the group of the pod."""

    def disk_usage(self) -> DiskUsage:
        """Return what the latest runs of the containers, and the volumes on the disk have."""
        latest = {name: self.runs[name, restarts] for name, restarts in sorted(self.runs)}
        volumes = {
            key[2]: files.inodes.used for key, files in self.volumes.items() if not files.inodes.in_memory
        }
        return DiskUsage({name: files.inodes.written for name, files in latest.items()}, volumes)


class ContainerFiles:
    def __init__(
        self,
        records: Records,
        on_change: Callable[[Volume], None] = lambda _: None,
        create: CreateVolume = empty_volume,
        in_folder: InFolder = in_folder,
        on_drop: Callable[[RunKey], None] = lambda _: None,
    ) -> None:
        """`on_change` is called with a volume after each change of its contents; `create` makes a volume, and `in_folder` moves one.

        `on_drop` is called with a run whose files are dropped because there are too many.
        """
        self._records = records
        self._on_drop = on_drop
        self._in_folder = in_folder
        self._on_change = on_change
        self._create = create
        self._in_use: WeakValueDictionary[RunKey, FileSystem] = WeakValueDictionary()
        """All that exist, the least recently used one first: a command that runs keeps its own, also when there are too many."""
        self._pods: WeakSet[FilesOfPod] = WeakSet()
        """The pods of which files are in memory."""
        self._lasting: OrderedDict[Volume, FileSystem] = OrderedDict()
        """The contents that outlive pods."""

    def contains(self, key: RunKey) -> bool:
        return key in self._in_use

    def of_pod(self, uid: str) -> FilesOfPod:
        """Return the files of a pod."""
        present = self._records.ensure(uid, FilesOfPod)
        self._pods.add(present)
        return present

    def has_volumes(self, uid: str) -> bool:
        """Return whether own volumes of a pod are in memory."""
        present = self._records.find(uid, FilesOfPod)
        return present is not None and bool(present.volumes)

    def file_system(
        self,
        key: RunKey,
        files: Mapping[str, FileEntry],
        mounts: Sequence[SharedMount],
        create: Callable[[Mapping[str, Mount]], FileSystem],
    ) -> FileSystem:
        """Return the file system of a run, with the present contents of its read-only mounts; `create` returns a new one."""
        shared = self.mount(key.uid, mounts)
        file_system = self._in_use.pop(key, None)
        is_new = file_system is None
        if file_system is None:
            file_system = create(shared)
        self._in_use[key] = self.of_pod(key.uid).runs[key.container, key.restarts] = file_system
        if not is_new:
            file_system.mounts.replace_read_only(
                {path: entry for path, entry in files.items() if entry.read_only}
            )
        self._drop_oldest()
        return file_system

    def _drop_oldest(self) -> None:
        """Drop the file systems that were not used for the longest time, if there are too many."""
        keys = [key for key in self._in_use if self._keeps(key)]
        while len(keys) > 1 and (len(keys) > MAX_CONTAINERS or self._size() > MAX_BYTES):
            # Nothing here may refer to the file system itself, which is gone if no command uses it.
            dropped = keys.pop(0)
            files = self.of_pod(dropped.uid)
            del files.runs[dropped.container, dropped.restarts]
            self._on_drop(dropped)
            if not any(other.uid == dropped.uid for other in self._in_use):
                # What is in folders of this machine takes no memory, and processes have it.
                files.volumes = {key: each for key, each in files.volumes.items() if each.inodes.is_folder}
            if not files.runs and not files.volumes:
                self._pods.discard(files)

    def _keeps(self, key: RunKey) -> bool:
        """Return whether the file system of a run is among the limited number that is kept for those who look at it."""
        present = self._records.find(key.uid, FilesOfPod)
        return present is not None and (key.container, key.restarts) in present.runs

    def _give_to_group(
        self, uid: str, mounts: Sequence[SharedMount], mounts_by_path: Mapping[str, Mount]
    ) -> None:
        """Give the contents of volumes to the group of their pod when it mounts them first, as a kubelet does."""
        for mount in mounts:
            if mount.fs_group is None or mount.volume in (mounted := self.of_pod(uid).mounted):
                continue
            mounted.add(mount.volume)
            give(mounts_by_path[mount.mount_path].files, mount.folder, mount.fs_group)

    def find_volume(self, volume: Volume) -> FileSystem | None:
        """Return the contents of a volume, if they are in memory."""
        if volume[0] != OF_POD:
            return self._lasting.get(volume)
        present = self._records.find(volume[1], FilesOfPod)
        return None if present is None else present.volumes.get(volume)

    def mount(self, uid: str, mounts: Sequence[SharedMount]) -> Mapping[str, Mount]:
        """Return the mounts of a container by path, as `file_system` mounts them; volumes that do not exist yet are created empty."""
        shared = {}
        if mounts:
            shared = mounts_of(mounts, partial(self._volumes_of, uid), self._on_change, self._create)
        self._give_to_group(uid, mounts, shared)
        return shared

    def move_to_folder(self, volume: Volume, path: Path) -> tuple[FolderInodes, tuple[str, ...]]:
        """Move the contents of a volume into a folder of this machine, also for the containers that have it now.

        Return them, and the paths of files whose data are nowhere.
        """
        volumes = self._volumes_of(volume[1], volume)
        present = volumes[volume]
        if isinstance(present.inodes, FolderInodes):
            return present.inodes, ()
        path.mkdir(parents=True, exist_ok=True)
        entries = dict(tree_entries(present, "/"))
        moved = self._in_folder(MachineFolder(path), present)
        lost = moved.fill(entries)
        moved.quota.capacity = present.inodes.quota.capacity
        moved.report_changes(partial(self._on_change, volume))
        volumes[volume] = in_folder = FileSystem(inodes=moved)
        for files in self._in_use.values():
            files.mounts.replace(present, in_folder)
        return moved, lost

    def folders(self) -> Iterator[tuple[Volume, FolderInodes]]:
        """Yield the volumes that are in folders of this machine."""
        for volumes in (self._lasting, *(pod.volumes for pod in self._pods)):
            for volume, files in volumes.items():
                if isinstance(files.inodes, FolderInodes):
                    yield volume, files.inodes

    def drop(self, volume: Volume) -> FileSystem | None:
        """Drop the contents of a deleted volume, and return them."""
        return self._lasting.pop(volume, None)

    def replace_volume(self, volume: Volume, files: Mapping[str, FileEntry]) -> None:
        """Replace the contents of a volume, also in the containers that have it now."""
        self.volume(volume, files.get("/")).inodes.replace_contents(files)

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
            return self.of_pod(uid).volumes
        if key in self._lasting:
            self._lasting.move_to_end(key)
        while sum(files.inodes.size for files in self._lasting.values()) > MAX_LASTING_BYTES:
            dropped = next(volume for volume, files in self._lasting.items() if files.inodes.size)
            del self._lasting[dropped]
            LOG.warning(
                "the contents of %s are dropped: simulated volumes have too many bytes", "/".join(dropped)
            )
        return self._lasting

    def _size(self) -> int:
        return sum(
            files.inodes.size for pod in self._pods for files in (*pod.runs.values(), *pod.volumes.values())
        )

    def disk_usage(self, uid: str) -> DiskUsage | None:
        """Return what a pod uses of its node's disk; None if that is not in memory."""
        present = self._records.find(uid, FilesOfPod)
        return None if present is None else present.disk_usage()


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
        files.inodes.quota.capacity = mount.capacity
        inner = mount.inner
        # A process may have put a file into the way: what is mounted is not there then.
        with suppress(FileError):
            inner = files.resolve(inner) if inner else ""
            if inner and not files.has(inner) and not mount.root.is_directory:
                files.inodes.put(inner, mount.root)
            elif inner and not files.has(inner):
                files.make_directory(inner, parents=True, mode=mount.root.mode & 0o7777)
        mounts_by_path[mount.mount_path] = Mount(files=files, inner=inner, read_only=mount.read_only)
    return mounts_by_path
