"""The files of a pod's simulated containers: what clients and the containers' own commands have written into them."""

import re
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.logs import LogReplay
from mockube.controller_manager.kubelet.containers.mounts import (
    files_of,
    shared_mounts,
    shared_volumes,
)
from mockube.controller_manager.kubelet.containers.runs import (
    ContainerRun,
    NoLogs,
    host_of,
    interactive_command,
    main_process,
    run_of,
)
from mockube.controller_manager.kubelet.containers.writable import (
    ContainerFiles,
    RunKey,
    Volumes,
    mounts_of,
)
from mockube.controller_manager.kubelet.pod_lifecycle.program import command_of
from mockube.controller_manager.kubelet.pod_lifecycle.script import script_of
from mockube.controller_manager.kubelet.server.references import ReferenceLoader
from mockube.controller_manager.kubelet.shell.filesystem import FileSystem
from mockube.controller_manager.supervision import yield_to_loop

_WRITES: Final = re.compile(r">|\b(?:tee|touch|mkdir|cp|mv|rm|tar|ln|sed|dd|chmod|mounttest)\b")
"""In the command of a container that may write files; others need not be replayed for that."""


class PodFiles:
    def __init__(self, references: ReferenceLoader, clock: Clock) -> None:
        self._references = references
        self._clock = clock
        self._container_files = ContainerFiles()
        self._replays: dict[RunKey, LogReplay] = {}

    async def of(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, *, restarts: int | None = None
    ) -> FileSystem:
        """The present files of a running container; `restarts` is its run, if the pod's status does not have it yet."""
        shared = shared_volumes(pod, container)
        for other in every_container(pod["spec"]):
            if other is not container and shared & shared_volumes(pod, other):
                await self._bring_up(pod, other)
        return await self._bring_up(pod, container, restarts)

    async def volumes_after_init_containers(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Volumes:
        """What a container of the pod found in its volumes when it began for the first time."""
        volumes: Volumes = {}
        shared = shared_volumes(pod, container)
        for init_container in pod["spec"].get("initContainers") or () if shared else ():
            if init_container["name"] == container["name"]:
                break
            if (
                shared & shared_volumes(pod, init_container)
                and _may_write(pod, init_container)
                and (run := _run(pod, init_container))
            ):
                references = await self._references.load_shared(pod, init_container)
                mounts = mounts_of(shared_mounts(pod, init_container, references), volumes)
                files = FileSystem(files_of(pod, init_container, references), mounts=mounts, is_partial=True)
                host = host_of(pod, init_container, references, run.started, files=files)
                replay = LogReplay(main_process(pod, init_container, references, host), host, run.started)
                await _catch_up(replay, files, run.finished or self._clock.now())
        return volumes

    def forget(self, uid: str) -> None:
        """Drop the files of a deleted pod."""
        self._container_files.forget(uid)
        self._drop_replays()

    async def _bring_up(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int | None = None
    ) -> FileSystem:
        """Run a container's command up to now, so that its files are written."""
        run = _run(pod, container)
        references = await self._references.load_shared(pod, container)
        if restarts is None:
            restarts = run.restarts if run else 0
        key = RunKey(meta.uid(pod), container["name"], restarts)
        is_new = not self._container_files.has_run(key)
        mounts = shared_mounts(pod, container, references)
        files = self._container_files.of(key, files_of(pod, container, references), mounts)
        if is_new:
            self._drop_replays()
            if run is not None and _may_write(pod, container):
                host = host_of(pod, container, references, run.started, files=files)
                command = main_process(pod, container, references, host)
                self._replays[key] = LogReplay(command, host, run.started)
        replay = self._replays.get(key)
        if replay is not None and run is not None:
            await _catch_up(replay, files, run.finished or self._clock.now())
        return files

    def _drop_replays(self) -> None:
        for key in [key for key in self._replays if not self._container_files.has_run(key)]:
            self._replays.pop(key).close()


async def _catch_up(replay: LogReplay, files: FileSystem, until: datetime) -> None:
    while replay.is_behind(until):
        files.is_partial = True  # to the container's command, which depends on its image
        for _ in replay.advance(until):
            pass
        files.is_partial = False
        await yield_to_loop()


def _run(pod: ReadOnlyTree, container: ReadOnlyTree) -> ContainerRun | None:
    try:
        return run_of(pod, container["name"])
    except NoLogs:
        return None


def _may_write(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    if interactive_command(pod, container):
        return False  # it runs, and need not be replayed
    script = script_of(meta.annotations(pod)).command(container["name"])
    text = " ".join(command_of(container)) if script is None else script
    return _WRITES.search(text) is not None
