"""The files of a pod's simulated containers, with the changes by clients and by the containers' own commands."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.logs import LogLine
from mockube.container_runtime.objects import ObjectReader
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import ContainerRun, NoLogs, run_of

from .files.mounts import file_system_of, files_of, shared_mounts, shared_volumes
from .files.writable import ContainerFiles, RunKey, Volumes, mounts_of
from .interactive import RunLog
from .live_containers import LiveContainers
from .programs import commands as runs
from .programs.live_commands import WRITE_COMMAND
from .programs.log_replay import LogReplay, replay_memory
from .programs.other_processes import process_entries
from .programs.program import command_of
from .shell.filesystem import FileSystem
from .shell.process import Host


class ReplayedRun(NamedTuple):
    """A run up to now: what is left of it, and what it has logged."""

    replay: LogReplay
    log: RunLog
    host: Host
    files: FileSystem


class PodFiles:
    def __init__(self, references: ObjectReader, live: LiveContainers, clock: Clock) -> None:
        self._references = references
        self._live = live
        self._clock = clock
        self._container_files = ContainerFiles()
        self._replays: dict[RunKey, ReplayedRun] = {}
        self._early: dict[str, set[RunKey]] = {}
        """The runs whose files were read before the pod's status had the run, as by a postStart hook, by the pod's uid."""
        self._changed: dict[str, set[str]] = {}
        """The names of the containers whose files a client may have changed, by the pod's uid."""

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
        shared = shared_volumes(pod, container)
        for other in every_container(pod["spec"]):
            if other["name"] != container["name"] and shared & shared_volumes(pod, other):
                await self._replay_up_to_now(pod, other)
        return await self._replay_up_to_now(pod, container, restarts, references)

    async def take_over(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
    ) -> ReplayedRun | None:
        """Return the present run of a container, replayed up to now, for a caller that continues it; None if it has ended."""
        run = _latest_run(pod, container)
        if run is None or run.finished is not None:
            return None
        key = RunKey(meta.uid(pod), container["name"], run.restarts)
        files = await self._replay_up_to_now(pod, container, run.restarts, references)
        if key not in self._replays:  # it writes no files
            self._begin_replay(key, pod, container, references, run, files)
            await self._advance(self._replays[key], run)
        replayed = self._replays.pop(key)
        return None if replayed.replay.has_ended else replayed

    def note_command(self, uid: str, name: str, argv: Sequence[str], *, has_input: bool) -> bool:
        """Note a command that a client runs in a container; return whether it is the first that may change files."""
        may_write = has_input or WRITE_COMMAND.search("\0".join(argv)) is not None
        if not may_write or self.is_changed(uid, name):
            return False
        self._changed.setdefault(uid, set()).add(name)
        return True

    def is_changed(self, uid: str, name: str) -> bool:
        """Return whether a client may have changed files of a container."""
        return name in self._changed.get(uid, ())

    async def volumes_after_init_containers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Volumes:
        """Return the contents of a container's volumes at its first start: those that init containers have written."""
        volumes: Volumes = {}
        shared = shared_volumes(pod, container)
        for init_container in pod["spec"].get("initContainers") or () if shared else ():
            if init_container["name"] == container["name"]:
                break
            if (
                shared & shared_volumes(pod, init_container)
                and _may_write(pod, init_container)
                and (run := _latest_run(pod, init_container))
            ):
                references = await self._references.load_shared(pod, init_container)
                mounts = mounts_of(shared_mounts(pod, init_container, references), lambda _: volumes)
                files = file_system_of(pod, init_container, references, mounts, is_partial=True)
                host = runs.host_of(pod, init_container, references, run.started, files=files)
                replay = LogReplay(
                    runs.main_process(pod, init_container, references, host), host, run.started
                )
                await _replay(replay, files, run.finished or self._clock.now())
        return volumes

    def disk_usage(self, uid: str) -> DiskUsage | None:
        """Return what a pod has written to the disk of its node; None if nothing of it is in memory."""
        return self._container_files.disk_usage(uid)

    def forget(self, uid: str) -> None:
        """Drop the files of a deleted pod."""
        self._container_files.forget(uid)
        self._early.pop(uid, None)
        self._changed.pop(uid, None)
        self._drop_replays()

    async def _replay_up_to_now(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        restarts: int | None = None,
        references: References | None = None,
    ) -> FileSystem:
        """Replay a container's command up to now; return its files."""
        run = _latest_run(pod, container)
        if restarts is None:
            restarts = run.restarts if run else 0
        if references is None:
            references = await self._references.load_shared(pod, container, restarts)
        key = RunKey(meta.uid(pod), container["name"], restarts)
        is_new = not self._container_files.contains(key)
        mounts = shared_mounts(pod, container, references)
        entries = files_of(pod, container, references) | process_entries(pod, container, references)
        files = self._container_files.file_system(
            key, entries, mounts, partial(file_system_of, pod, container, references, files=entries)
        )
        if is_new:
            self._drop_replays()
        early = self._early.get(key.uid, set())
        has_begun = run is not None and run.restarts == restarts
        if is_new and not has_begun:
            self._early.setdefault(key.uid, set()).add(key)
        elif run is not None and has_begun and (is_new or key in early):
            # A run in real time that begins now writes its files itself.
            is_live = (key in early and self._live.command(pod, container)) or self._live.has_changing_files(
                pod, container
            )
            early.discard(key)
            if not is_live and _may_write(pod, container):
                self._begin_replay(key, pod, container, references, run, files)
        replayed = self._replays.get(key)
        if replayed is not None and run is not None:
            await self._advance(replayed, run)
        return files

    def _begin_replay(
        self,
        key: RunKey,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        references: References,
        run: ContainerRun,
        files: FileSystem,
    ) -> None:
        host = runs.host_of(pod, container, references, run.started, files=files)
        host.memory = replay_memory(pod, container, host.memory_bytes)
        command = runs.main_process(pod, container, references, host)
        self._replays[key] = ReplayedRun(LogReplay(command, host, run.started), RunLog(), host, files)

    async def _advance(self, replayed: ReplayedRun, run: ContainerRun) -> None:
        until = run.finished or self._clock.now()
        await _replay(replayed.replay, replayed.files, until, replayed.log.append)

    def _drop_replays(self) -> None:
        for key in [key for key in self._replays if not self._container_files.keeps(key)]:
            self._replays.pop(key).replay.close()


async def _replay(
    replay: LogReplay, files: FileSystem, until: datetime, note: Callable[[LogLine], None] = lambda _: None
) -> None:
    while replay.is_behind(until):
        files.is_partial = True  # The container's command may read files of its image.
        for line in replay.advance(until):
            note(line)
        files.is_partial = False
        await yield_to_loop()


def _latest_run(pod: ReadOnlyTree, container: ReadOnlyTree) -> ContainerRun | None:
    try:
        return run_of(pod, container["name"])
    except NoLogs:
        return None


def _may_write(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    if not runs.is_repeatable(pod, container):
        return False
    script = script_of(meta.annotations(pod)).command(container["name"])
    text = " ".join(command_of(container)) if script is None else script
    return WRITE_COMMAND.search(text) is not None
