"""The namespace of processes of each container of a pod: its own, that of the pod, or that of another container.

A pod that shares one, or that asks for that of its node, has one process more, as the pause container of a real pod: it is process 1 in
place of a container's program. Its namespace shows the processes of the pod, never those of this machine.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree

from .command import CommandSpec, Identity
from .container_launcher import hold_command
from .local_process import GroupWatch, LocalProcess, start_process

_OF_CONTAINER, _OF_CONTAINER_WITH_NETWORK = ("user", "pid"), ("pid",)


class PodProcesses:
    def __init__(self, watch: GroupWatch) -> None:
        self._watch = watch
        self._holder: LocalProcess | None = None
        self._lock = asyncio.Lock()

    async def with_namespace(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        spec: CommandSpec,
        process_of: Callable[[str], LocalProcess | None],
    ) -> CommandSpec:
        """Return the command of a container with its namespace of processes; `process_of` returns the one of another container."""
        target = (
            process_of(container["targetContainerName"]) if container.get("targetContainerName") else None
        )
        if target is None and (pod["spec"].get("shareProcessNamespace") or pod["spec"].get("hostPID")):
            target = await self._hold(spec.network)
        if target is None:
            return replace(spec, has_own_processes=True)
        await target.wait_for_start()
        kinds = _OF_CONTAINER_WITH_NETWORK if spec.network else _OF_CONTAINER
        return replace(spec, has_own_processes=False, joined=target.pid, joined_kinds=kinds)

    async def _hold(self, network: Sequence[int]) -> LocalProcess:
        async with self._lock:
            if self._holder is None or self._holder.has_ended:
                await self.release()
                spec = CommandSpec(
                    argv=hold_command(),
                    environment={},
                    directory=Path("/"),
                    identity=Identity(),
                    network=network,
                    has_own_processes=True,
                )
                self._holder = await start_process(spec)
                self._watch.add(self._holder.pid)
            return self._holder

    def stop(self) -> None:
        """Kill all processes of the pod that share a namespace."""
        if self._holder is not None:
            self._holder.kill()

    async def release(self) -> None:
        if self._holder is not None:
            holder, self._holder = self._holder, None
            await holder.end()
            self._watch.remove(holder.pid)
