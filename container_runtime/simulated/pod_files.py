"""The files of a pod's simulated containers, with the changes by clients and by the containers' own commands.

Contents of volumes are kept beyond this process. A command that can be repeated is repeated, and what it has written until the
contents were kept is in them already.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from posixpath import join
from typing import Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.supervision import start
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.logs import LogLine
from mockube.container_runtime.node_machine import NO_SERVICES, NodeServices
from mockube.container_runtime.objects import ObjectReader
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import ContainerRun, NoLogs, run_of
from mockube.container_runtime.start_errors import StartError
from mockube.container_runtime.volume_contents import (
    NOTHING_KEPT,
    OF_NODE,
    OF_POD,
    EncodedContents,
    Volume,
    VolumeContents,
)
from mockube.container_runtime.volume_folders import folder_path

from . import predictions
from .files.folder_inodes import FolderInodes
from .files.machine_folder import MachineFolder
from .files.mounts import SHARED_MEMORY, SharedMount, file_system_of, files_of, shared_mounts, shared_volumes
from .files.node_disks import NodeDisks
from .files.stored_contents import BrokenContents, Contents, decode, encode
from .files.writable import ContainerFiles, FilesOfPod, RunKey, Volumes, in_folder, mounts_of
from .live_containers import LiveContainers
from .node.node_files import FolderNodeInodes, NodeInodes, SystemInodes
from .node.root_files import root_files
from .programs import commands as runs
from .programs.contexts import unknown_places
from .programs.log_replay import LogReplay, replay_memory
from .programs.other_processes import process_entries, process_view
from .programs.program import containers_in_namespace, note_unknown_places, pid_of
from .run_log import RunLog
from .shell import limits
from .shell.process import Host
from .shell.vfs.file_entry import FileEntry, FileError
from .shell.vfs.file_system import FileSystem
from .shell.vfs.path_walk import tree_entries
from .shell.vfs.process_views import ProcessView, show_processes


class ReplayedRun(NamedTuple):
    """A run up to now: what is left of it, and what it has logged."""

    replay: LogReplay
    log: RunLog
    host: Host
    files: FileSystem


class _Replays(Struct):
    """The commands of a pod that were repeated, up to a time."""

    until: datetime | None = None
    runs: dict[tuple[str, int], ReplayedRun] = field(default_factory=dict)
    """By the container's name and the number of its restarts."""
    early: set[tuple[str, int]] = field(default_factory=set)
    """The runs whose files were read before the pod's status had the run, as by a postStart hook."""


class _Changed(set[str]):
    """The names of the containers whose files a client may have changed."""


_NAMED: Final = 5
"""The number of files that a message names."""
_MAX_AT_ONCE: Final = 256 << 10
"""The bytes of a volume that are encoded at once; more are encoded in a thread."""


class PodFiles:
    def __init__(  # noqa: PLR0913, PLR0917 - each argument is a dependency
        self,
        records: Records,
        images: ImageTable,
        references: ObjectReader,
        live: LiveContainers,
        clock: Clock,
        contents: VolumeContents = NOTHING_KEPT,
        nodes: NodeServices = NO_SERVICES,
        *,
        on_scarce_disk: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_scarce_disk` is called with the name of a node whose disk becomes scarce."""
        self._records = records
        self._images = images
        self._references = references
        self._nodes = nodes
        self._refreshed: dict[str, float] = {}
        """When the files of the system of a node were brought up to date, by its name."""
        self._live = live
        self._clock = clock
        self._contents = contents
        contents.connect(self)
        self._container_files = ContainerFiles(
            records, self._on_volume_change, self._create_volume, _in_folder, self._drop_replay
        )
        self.disks = NodeDisks(
            lambda node: self._container_files.find_volume((OF_NODE, node)),
            on_scarce_disk,
        )
        self._is_replaying = False
        self._loading, self._loading_of_pods = asyncio.Lock(), asyncio.Lock()
        self._pods_being_loaded: set[str] = set()
        self._released: dict[Volume, EncodedContents] = {}
        """The last contents of folders that are removed."""
        self._removals: set[asyncio.Task[None]] = set()

    async def file_system(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        *,
        restarts: int | None = None,
        references: References | None = None,
    ) -> FileSystem:
        """Return the present files of a running container; `restarts` is its run, if the pod's status lacks it yet.

        `references` are its objects, if they are loaded already.
        """
        await self._bring_volumes_up_to_date(pod, container)
        files = await self._replay_up_to_now(pod, container, restarts, references)
        others = containers_in_namespace(pod, container)
        if len(others) > 1:
            show_processes(files, await self._views_of(others, pod, container))
        return files

    async def _views_of(
        self, others: Sequence[ReadOnlyTree], pod: ReadOnlyTree, container: ReadOnlyTree
    ) -> dict[int, ProcessView]:
        """Return what /proc shows a container of others that run, by the ids of their first processes."""
        views: dict[int, ProcessView] = {}
        for other in others:
            run = _latest_run(pod, other)
            is_hidden = other["name"] == container["name"] or self._live.is_process(pod, other["name"])
            if is_hidden or run is None or run.finished is not None:
                continue
            references = await self._references.load_shared(pod, other)
            root = await self._replay_up_to_now(pod, other, references=references)
            views[pid_of(pod, other)] = process_view(self._images, pod, other, references, root, container)
        return views

    async def _bring_volumes_up_to_date(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> None:
        """Let the volumes of a container have what other containers of the pod have written up to now."""
        shared = shared_volumes(pod, container)
        if shared and self._needs_volumes(pod):
            async with self._loading_of_pods:
                await self._load_volumes_of_pod(pod)
        for other in every_container(pod["spec"]):
            is_sharing = other["name"] != container["name"] and shared & shared_volumes(pod, other)
            is_process = self._live.is_process(pod, other["name"])
            # The folders of sub-paths are made when the container that mounts them starts.
            if is_sharing and not is_process and _latest_run(pod, other) is not None:
                await self._replay_up_to_now(pod, other)

    async def take_over(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
    ) -> ReplayedRun | None:
        """Return the present run of a container, replayed up to now, for a caller that continues it; None if it has ended."""
        run = _latest_run(pod, container)
        if run is None or run.finished is not None:
            return None
        files = await self._replay_up_to_now(pod, container, run.restarts, references)
        replays, key = self._records.ensure(meta.uid(pod), _Replays), (container["name"], run.restarts)
        if key not in replays.runs:  # it writes no files
            replays.runs[key] = self._begin_replay(pod, container, references, run, files)
            await self._advance(replays, replays.runs[key], run)
        if replays.runs[key].replay.has_ended:  # and stays known: it must not be replayed once more
            return None
        return replays.runs.pop(key)

    async def references_of(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> References:
        """Return the objects that a container refers to."""
        return await self._references.load_shared(pod, container)

    def note_command(self, uid: str, name: str) -> bool:
        """Note a command that a client runs in a container, which may change its files; return whether it is the first."""
        if self.is_changed(uid, name):
            return False
        self._records.ensure(uid, _Changed).add(name)
        return True

    def is_changed(self, uid: str, name: str) -> bool:
        """Return whether a client may have changed files of a container."""
        return name in (self._records.find(uid, _Changed) or ())

    async def volumes_after_init_containers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Volumes:
        """Return the contents of a container's volumes at its first start: those that init containers have written."""
        volumes: Volumes = {}
        shared, script = shared_volumes(pod, container), script_of(meta.annotations(pod))
        for init_container in pod["spec"].get("initContainers") or () if shared else ():
            if init_container["name"] == container["name"]:
                break
            if (
                shared & shared_volumes(pod, init_container)
                and predictions.changes_files(self._images, pod, init_container)
                and (run := _latest_run(pod, init_container))
            ):
                references = await self._references.load_shared(pod, init_container)
                mounts = mounts_of(shared_mounts(pod, init_container, references), lambda _: volumes)
                files = file_system_of(self._images, pod, init_container, references, mounts, is_partial=True)
                note_unknown_places(files, unknown_places(self._images, pod, init_container, script))
                host = runs.host_of(self._images, pod, init_container, references, run.started, files=files)
                replay = LogReplay(
                    runs.main_process(self._images, pod, init_container, references, host), host, run.started
                )
                await self._replay(replay, files, run.finished or self._clock.now())
        return volumes

    def disk_usage(self, uid: str) -> DiskUsage | None:
        """Return what a pod has written to the disk of its node; None if nothing of it is in memory."""
        return self._container_files.disk_usage(uid)

    def node_path_type(self, node: str, path: str) -> str:
        """Return the type of a path that containers have written on a node, Directory or File; "" if there is none."""
        files = self._container_files.find_volume((OF_NODE, node))
        if files is None or not files.exists(path):
            return ""
        return "Directory" if files.entry(path).is_directory else "File"

    def node_files(self, node: str, folder: str) -> Mapping[str, bytes] | None:
        """Return the files in a folder of a node by name; None if nothing on the node is in memory."""
        files = self._container_files.find_volume((OF_NODE, node))
        if files is None or not files.exists(folder):
            return None if files is None else {}
        found: dict[str, bytes] = {}
        for name in files.children(folder):
            with suppress(FileError):  # a folder, a broken link, or a file that is too large
                found[name] = files.read(join(folder, name))
        return found

    def add_node_files(self, node: str, files: Mapping[str, bytes]) -> None:
        """Add the files that a node has from its installation."""
        volume = (OF_NODE, node)
        present = self._container_files.find_volume(volume)
        entries = {} if present is None else dict(tree_entries(present, "/"))
        entries |= {path: FileEntry(data=data, mode=0o600) for path, data in files.items()}
        self._container_files.replace_volume(volume, entries)

    def drop_files(self, uid: str) -> None:
        """Drop the files of a pod whose containers are removed."""
        self._records.pop(uid, FilesOfPod)
        self._records.pop(uid, _Replays)

    async def _replay_up_to_now(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        restarts: int | None = None,
        references: References | None = None,
        *,
        until: datetime | None = None,
    ) -> FileSystem:
        """Replay a container's command up to now, or `until` then; return its files."""
        run = _latest_run(pod, container)
        if restarts is None:
            restarts = run.restarts if run else 0
        if references is None:
            references = await self._references.load_shared(pod, container, restarts)
        key = RunKey(meta.uid(pod), container["name"], restarts)
        is_new = not self._container_files.contains(key)
        mounts = shared_mounts(pod, container, references)
        await self._load_lasting_volumes(mounts)
        entries = files_of(self._images, pod, container, references) | process_entries(
            self._images, pod, container, references
        )
        files = self._container_files.file_system(
            key,
            entries,
            mounts,
            partial(file_system_of, self._images, pod, container, references, files=entries),
        )
        note_unknown_places(
            files, unknown_places(self._images, pod, container, script_of(meta.annotations(pod)))
        )
        self.disks.place(
            pod["spec"].get("nodeName") or "",
            references.disk_bytes,
            self._container_files.of_pod(key.uid),
            (files, *(mount.files for mount in files.mounts.by_path.values())),
        )
        replays, run_key = self._records.ensure(key.uid, _Replays), (key.container, restarts)
        has_begun = run is not None and run.restarts == restarts
        if is_new and not has_begun:
            replays.early.add(run_key)
        elif run is not None and has_begun and (is_new or run_key in replays.early):
            # A run in real time that begins now writes its files itself.
            is_live = bool(self._live.command(pod, container))
            replays.early.discard(run_key)
            is_computed = not is_live and bool(runs.interpreted_command(self._images, pod, container))
            if is_computed and predictions.changes_files(self._images, pod, container):
                replays.runs[run_key] = self._begin_replay(pod, container, references, run, files)
        replayed = replays.runs.get(run_key)
        if replayed is not None and run is not None:
            await self._advance(replays, replayed, run, until)
        return files

    def _begin_replay(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        references: References,
        run: ContainerRun,
        files: FileSystem,
    ) -> ReplayedRun:
        host = runs.host_of(self._images, pod, container, references, run.started, files=files)
        host.memory = replay_memory(pod, container, host.memory_bytes)
        command = runs.main_process(self._images, pod, container, references, host)
        return ReplayedRun(LogReplay(command, host, run.started), RunLog(), host, files)

    async def _advance(
        self, replays: _Replays, replayed: ReplayedRun, run: ContainerRun, until: datetime | None = None
    ) -> None:
        replays.until = now = self._clock.now() if until is None else until
        end = now if run.finished is None else min(run.finished, now)
        await self._replay(replayed.replay, replayed.files, end, replayed.log.append)

    async def _replay(
        self,
        replay: LogReplay,
        files: FileSystem,
        until: datetime,
        note: Callable[[LogLine], None] = lambda _: None,
    ) -> None:
        while replay.is_behind(until):
            files.unknown.is_partial = True  # The container's command may read files of its image.
            self._is_replaying = True
            try:
                for line in replay.advance(until):
                    note(line)
            finally:
                self._is_replaying = False
            files.unknown.is_partial = False
            await yield_to_loop()

    # --- volumes of processes, which are in folders of this machine

    async def mount(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, references: References, base: Path
    ) -> Mapping[str, Path]:
        await self._bring_volumes_up_to_date(pod, container)
        mounts = [
            mount for mount in shared_mounts(pod, container, references) if mount.volume[-1] != SHARED_MEMORY
        ]
        await self._load_lasting_volumes(mounts)
        try:
            self._container_files.mount(meta.uid(pod), mounts)
            return {mount.mount_path: self._source_of(mount, base) for mount in mounts}
        except FileError as error:
            raise StartError(
                f"failed to mount the volumes of container {container['name']!r}: {error}"
            ) from error

    def _source_of(self, mount: SharedMount, base: Path) -> Path:
        """Return the folder or the file of this machine that a mount has."""
        path = folder_path(base, mount.volume)
        files, lost = self._container_files.move_to_folder(mount.volume, path)
        if lost:
            problem = f"only the sizes of {', '.join(lost[:_NAMED])} were in memory"
            self._contents.note_loss(mount.volume, problem)
        if not mount.inner:
            return path
        source = files.path_on_machine(mount.inner)
        if source is None:
            raise StartError(
                f"failed to mount {mount.inner} of a volume at {mount.mount_path}: it is, or is below, a link or a file"
            )
        return Path(source)

    async def note_changes(self, pod: ReadOnlyTree) -> None:
        for volume, files in [*self._container_files.folders()]:
            if volume[0] == OF_POD and volume[1] != meta.uid(pod):
                continue
            mark = await asyncio.to_thread(files.fingerprint)
            if files.noted_mark != mark:
                files.noted_mark = mark
                self._contents.note_change(volume)

    async def release(self) -> None:
        for volume, files in [*self._container_files.folders()]:
            if files.noted_mark != await asyncio.to_thread(files.fingerprint):
                self._contents.note_change(volume)
            if (contents := await self.encoded(volume)) is not None:
                self._released[volume] = contents

    def drop(self, volume: Volume) -> None:
        files = self._container_files.drop(volume)
        if files is not None and isinstance(files.inodes, FolderInodes):
            removal = asyncio.to_thread(shutil.rmtree, files.inodes.folder.path, ignore_errors=True)
            task = start(f"the removal of volume {volume[-1]}", removal)
            self._removals.add(task)
            task.add_done_callback(self._removals.discard)

    async def removals(self) -> None:
        """Wait until the folders of deleted volumes are removed."""
        await asyncio.gather(*self._removals)

    # --- contents of volumes that are kept

    def _on_volume_change(self, volume: Volume) -> None:
        if not self._is_replaying and volume[-1] != SHARED_MEMORY:
            self._contents.note_change(volume)

    async def encoded(self, volume: Volume) -> EncodedContents | None:
        if volume in self._released:
            return self._released[volume]
        files = self._container_files.find_volume(volume)
        if files is None:
            return None
        inodes = files.inodes
        if isinstance(inodes, FolderInodes):
            return await asyncio.to_thread(_encode_folder, inodes, self._clock.now())
        replays = self._records.find(volume[1], _Replays)
        complete_until = (None if replays is None else replays.until) or self._clock.now()
        entries = tuple(inodes.changes())
        if inodes.size <= _MAX_AT_ONCE:
            return encode(entries, complete_until)
        return await asyncio.to_thread(encode, entries, complete_until)

    def replace(self, volume: Volume, data: bytes | None) -> None:
        # What is on a node can be asked for before a container mounts it.
        if volume[0] == OF_NODE or self._container_files.find_volume(volume) is not None:
            contents = None if data is None else self._decode(volume, data)
            self._container_files.replace_volume(volume, {} if contents is None else contents.files)

    def _decode(self, volume: Volume, data: bytes) -> Contents | None:
        try:
            return decode(data)
        except BrokenContents as error:
            self._contents.note_loss(volume, str(error))
            return None

    async def _load(self, volume: Volume) -> Contents | None:
        data = await self._contents.load(volume)
        return None if data is None else self._decode(volume, data)

    # --- files of nodes

    def _create_volume(self, volume: Volume, root: FileEntry, on_change: Callable[[], None]) -> FileSystem:
        node = self._nodes.node(volume[1]) if volume[0] == OF_NODE else None
        if node is None:
            return FileSystem(root=root, on_change=on_change)
        return FileSystem(inodes=NodeInodes(self._system_of(node), on_change))

    def _system_of(self, node: ReadOnlyTree) -> Mapping[str, FileEntry]:
        services = self._nodes
        pods = services.pods(meta.name(node))
        return root_files(
            node,
            pods,
            server=services.api_server(),
            authority=services.authority(),
            cluster_dns=services.cluster_dns(),
            credentials=services.credentials(node),
        )

    def find_node_files(self, name: str) -> FileSystem | None:
        """Return the files of a node, if they are in memory."""
        return self._container_files.find_volume((OF_NODE, name))

    async def files_of_node(self, name: str) -> FileSystem:
        """Return the present files of a node."""
        volume = (OF_NODE, name)
        await self._nodes.wait_ready()
        if self._container_files.find_volume(volume) is None:
            async with self._loading:
                await self._load_lasting_volume(volume, None)
        files = self._container_files.volume(volume)
        self._refresh_system(name)
        return files

    def _refresh_system(self, name: str) -> None:
        """Bring what the system of a node writes up to date, at most once a second."""
        now, node = self._clock.monotonic(), self._nodes.node(name)
        files = self._container_files.find_volume((OF_NODE, name))
        is_old = now - self._refreshed.get(name, -2.0) > 1.0
        inodes = None if files is None else files.inodes
        if node is not None and isinstance(inodes, SystemInodes) and is_old:
            self._refreshed[name] = now
            inodes.update_system(self._system_of(node))

    async def _load_lasting_volumes(self, mounts: Sequence[SharedMount]) -> None:
        """Load the kept contents of volumes that outlive pods, when one is mounted for the first time. A clone gets those of its origin."""
        for mount in mounts:
            volume = mount.volume
            if volume[0] == OF_NODE:
                await self.files_of_node(volume[1])
                continue
            if volume[0] == OF_POD or self._container_files.find_volume(volume) is not None:
                continue
            if self._contents.is_kept(volume) or mount.origin is not None:
                async with self._loading:
                    await self._load_lasting_volume(volume, mount.origin)

    async def _load_lasting_volume(self, volume: Volume, origin: Volume | None) -> None:
        if self._container_files.find_volume(volume) is not None:
            return
        contents = await self._load(volume) if self._contents.is_kept(volume) else None
        if contents is not None:
            self._container_files.replace_volume(volume, contents.files)
        elif origin is not None:
            await self._load_lasting_volume(origin, None)
            files = self._container_files.find_volume(origin)
            self._container_files.replace_volume(volume, {} if files is None else _entries_of(files))
            self._contents.note_change(volume)

    async def _load_volumes_of_pod(self, pod: ReadOnlyTree) -> None:
        """Load the kept contents of a pod's own volumes.

        The commands that can be repeated are repeated up to the time of the contents first, so that they write nothing twice.
        """
        uid = meta.uid(pod)
        volumes = _own_volumes(pod)
        if not self._needs_volumes(pod):
            return
        self._pods_being_loaded.add(uid)
        try:
            loaded = {volume: contents for volume in volumes if (contents := await self._load(volume))}
            until = min((contents.complete_until for contents in loaded.values()), default=None)
            names = {volume[2] for volume in loaded}
            for container in every_container(pod["spec"]):
                if names & shared_volumes(pod, container) and not self._live.is_process(
                    pod, container["name"]
                ):
                    await self._replay_up_to_now(pod, container, until=until)
            for volume, contents in loaded.items():
                self._container_files.replace_volume(volume, contents.files)
        finally:
            self._pods_being_loaded.discard(uid)

    def _needs_volumes(self, pod: ReadOnlyTree) -> bool:
        """Return whether the kept contents of a pod's own volumes are not all in memory."""
        uid = meta.uid(pod)
        if self._container_files.has_volumes(uid):
            return uid in self._pods_being_loaded
        return any(map(self._contents.is_kept, _own_volumes(pod)))

    def _drop_replay(self, key: RunKey) -> None:
        """Drop the replay of a run whose files are dropped."""
        if (replays := self._records.find(key.uid, _Replays)) is not None:
            replays.runs.pop((key.container, key.restarts), None)


def _entries_of(files: FileSystem) -> Mapping[str, FileEntry]:
    """Return all files of a volume with their data."""
    if isinstance(files.inodes, FolderInodes):
        return files.inodes.entries_with_data(limits.MAX_FILE_BYTES)[0]
    return dict(tree_entries(files, "/"))


def _encode_folder(files: FolderInodes, now: datetime) -> EncodedContents:
    entries, left_out = files.entries_with_data(limits.MAX_FILE_BYTES)
    encoded = encode(entries.items(), now)
    return EncodedContents(encoded.data, (*encoded.left_out, *left_out))


def _in_folder(folder: MachineFolder, present: FileSystem) -> FolderInodes:
    inodes = present.inodes
    return FolderNodeInodes(folder, inodes) if isinstance(inodes, NodeInodes) else in_folder(folder, present)


def _own_volumes(pod: ReadOnlyTree) -> list[Volume]:
    return [(OF_POD, meta.uid(pod), volume["name"]) for volume in pod["spec"].get("volumes") or ()]


def _latest_run(pod: ReadOnlyTree, container: ReadOnlyTree) -> ContainerRun | None:
    try:
        return run_of(pod, container["name"])
    except NoLogs:
        return None
