"""The forks of a named cluster: named clusters that start with a snapshot of it, as processes that end with it.

The API server sends an order through a socket. A fork is a copy of this process, which has imported all that it needs, so that only
the two programs of the fork have to start.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mockube.component_base.fork_orders import MAX_LINE, ForkAnswer, ForkOrder
from mockube.component_base.process_fork import reap_at_end
from mockube.component_base.supervision import cancel_and_wait
from mockube.failure import Failure

from .named_cluster import MEMORY, ClusterFolder, ClusterState, cluster_folder, inspect_cluster, read_record
from .spec import ClusterSpec, ReadyCondition

START_SECONDS: Final = 50.0
"""How long a fork may take until it is ready."""
_NOT_COPIED: Final = ("*.kubeconfig", ".lock", "component-urls.json", "installation.json", "etcd-note.txt")
"""Files beside the keys that belong to one run."""
_STORE_FLAGS: Final = ("--data-dir", "--etcd-", "--snapshot", "--fork-socket")
"""The flags of the store: that of a fork is in memory."""
_NO_PUBLISHING: Final = "--publish=false"
_AUDIT_FLAGS: Final = ("--audit-log-", "--audit-webhook-")


class StartedFork(Struct, frozen=True, kw_only=True):
    """The process of a fork that is ready, or why it is not."""

    pid: int = 0
    problem: str = ""


StartFork: TypeAlias = Callable[[ClusterFolder, ClusterSpec], Awaitable[StartedFork]]
"""Starts a process that runs a cluster, and waits until it is ready."""


class ForkSupervisor:
    """The forks of one cluster."""

    def __init__(self, parent: ClusterFolder, spec: ClusterSpec, start: StartFork | None) -> None:
        self._parent, self._spec, self._start = parent, spec, start
        self._processes = ForkProcesses()
        self._starting: set[str] = set()
        """The names of the forks that are being started."""
        self._orders: set[asyncio.Task[None]] = set()
        """The tasks of the orders that are being carried out."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Path | None]:
        """Yield the socket for orders, None where there are no forks; stop the forks at the end of the block."""
        if self._start is None or sys.platform != "linux":
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="mockube-") as folder:
            path = Path(folder, "forks")
            async with await asyncio.start_unix_server(self._serve, path, limit=MAX_LINE):
                try:
                    yield path
                finally:
                    await self._stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._orders.add(task)
        try:
            order = msgspec.json.decode(await reader.readline(), type=ForkOrder)
            try:
                answer = await self._make(order)
            except (Failure, OSError) as error:
                answer = ForkAnswer(problem=str(error))
            writer.write(msgspec.json.encode(answer) + b"\n")
        except asyncio.CancelledError:
            pass  # by _stop, which waits for it
        finally:
            self._orders.discard(task)
            writer.close()

    async def _make(self, order: ForkOrder) -> ForkAnswer:
        folder = cluster_folder(order.name, os.environ)
        if problem := name_problem(folder, self._starting):
            return ForkAnswer(problem=problem, is_conflict=True)
        self._starting.add(order.name)
        try:
            return await self._make_in(folder, order)
        finally:
            self._starting.discard(order.name)

    async def _make_in(self, folder: ClusterFolder, order: ForkOrder) -> ForkAnswer:
        try:
            prepare_folder(folder, self._parent)
            shutil.move(order.snapshot, folder.snapshot)
            started = await self._start_in(folder)
        except BaseException:
            remove_secrets_of_ended(folder)
            raise
        if started.problem:
            remove_secrets_of_ended(folder)
            return ForkAnswer(problem=started.problem)
        self._processes.add(started.pid, lambda: self._note_end(folder))
        record = read_record(folder.record)
        return ForkAnswer(
            url="" if record is None else record.url,
            kubeconfig=str(folder.kubeconfig),
            not_forked=(*_not_forked(self._spec),),
        )

    async def _start_in(self, folder: ClusterFolder) -> StartedFork:
        assert self._start is not None
        return await self._start(folder, fork_spec(self._spec, self._parent.name, folder.snapshot))

    def _note_end(self, folder: ClusterFolder) -> None:
        if folder.name not in self._starting:
            remove_secrets_of_ended(folder)

    async def _stop(self) -> None:
        await cancel_and_wait([*self._orders])
        await self._processes.stop()


class ForkProcesses:
    """The processes of forks, which are children of this one."""

    def __init__(self) -> None:
        self._ends: dict[int, asyncio.Event] = {}
        """What is set when a process has ended, by the id of the process."""

    def add(self, pid: int, on_end: Callable[[], None]) -> None:
        """Wait for a process when it has ended, so that nothing of it stays, and call a function."""

        def note_end() -> None:
            self._ends.pop(pid).set()
            on_end()

        self._ends[pid] = asyncio.Event()
        reap_at_end(pid, note_end)

    async def kill(self, pid: int) -> None:
        """End a process at once, and wait for its end."""
        if ended := self._ends.get(pid):
            os.kill(pid, signal.SIGKILL)
            await ended.wait()

    async def stop(self) -> None:
        ends = self._ends.copy()
        for pid in ends:
            os.kill(pid, signal.SIGTERM)  # it was not waited for yet: no other process can have its id
        for ended in ends.values():
            await ended.wait()


def name_problem(folder: ClusterFolder, starting: Collection[str]) -> str:
    """Return why a fork cannot have a name; "" if it can. The folder of an earlier fork is used again.

    `starting` are the names of the forks that are being started.
    """
    if folder.name in starting:
        return f'"{folder.name}" is already starting: use another name'
    if inspect_cluster(folder).state in {ClusterState.RUNNING, ClusterState.STARTING}:
        return f'"{folder.name}" is already running: stop it with `mockube down --name={folder.name}`, or use another name'
    if folder.path.exists() and not folder.fork_of.exists():
        return f'there is a cluster "{folder.name}": delete it with `mockube down --name={folder.name} --delete`, or use another name'
    return ""


def prepare_folder(folder: ClusterFolder, parent: ClusterFolder) -> None:
    """Create the folder of a fork, with the keys of its parent."""
    folder.prepare()
    folder.fork_of.write_text(parent.name)
    shutil.rmtree(folder.pki)  # it may have the keys of another cluster, of which an earlier fork was one
    shutil.copytree(parent.pki, folder.pki, ignore=shutil.ignore_patterns(*_NOT_COPIED))


def remove_secrets_of_ended(folder: ClusterFolder) -> None:
    """Remove what a fork has left that did not start, or was killed; nothing while the cluster runs."""
    if inspect_cluster(folder).state not in {ClusterState.RUNNING, ClusterState.STARTING}:
        remove_secrets(folder)


def remove_secrets(folder: ClusterFolder) -> None:
    """Remove what a fork that has ended has of its parent: keys, credentials and all objects. Its logs stay."""
    shutil.rmtree(folder.pki, ignore_errors=True)
    folder.snapshot.unlink(missing_ok=True)
    folder.kubeconfig.unlink(missing_ok=True)


def fork_spec(spec: ClusterSpec, parent: str, snapshot: Path) -> ClusterSpec:
    """Return the options of a fork: those of its parent, with a store in memory, free ports, and nothing that both would write to."""
    return replace(
        spec,
        flags=(
            *_without(spec.flags, *_STORE_FLAGS, *_AUDIT_FLAGS),
            "--secure-port=0",
            f"--snapshot={snapshot}",
        ),
        manager_flags=with_no_publishing(spec.manager_flags),
        store=MEMORY,
        data_dir=None,
        fork_of=parent,
        detached=True,
        replaces_nodes=False,
        copy_to=None,
        until=ReadyCondition.NODES,
        seconds=START_SECONDS,
    )


def with_no_publishing(flags: Sequence[str]) -> tuple[str, ...]:
    return (*(flag for flag in flags if flag != _NO_PUBLISHING), _NO_PUBLISHING)


def _not_forked(spec: ClusterSpec) -> Sequence[str]:
    texts = []
    if spec.store != MEMORY:
        texts.append(
            f"The store: {spec.store} stays that of this cluster, and the objects of the fork are in memory"
        )
    if len(_without(spec.flags, *_AUDIT_FLAGS)) < len(spec.flags):
        texts.append("The audit log: the fork writes none")
    if "--publish=true" in spec.manager_flags:
        texts.append("Addresses on this machine: the fork publishes no Services and Ingresses")
    return texts


def _without(flags: Sequence[str], *prefixes: str) -> Sequence[str]:
    return [flag for flag in flags if not flag.startswith(prefixes)]
