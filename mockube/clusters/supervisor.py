"""One run of a named cluster: the supervisor locks and records it, runs its processes, and resets it on request."""

import asyncio
import math
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Final

import msgspec

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import wait_first
from mockube.failure import Failure, TimedOut
from mockube.launch import KUBEADM
from mockube.processes.child_processes import Report, exit_message
from mockube.processes.control_plane import (
    MANAGER,
    SERVER,
    ControlPlane,
    Launch,
    NotReady,
    control_plane,
    start_import,
)

from . import kubeconfigs
from .forks import ForkSupervisor, StartFork, remove_secrets
from .logs import SUPERVISOR_LOG
from .named_cluster import MEMORY, ClusterFolder, ClusterRecord, Component, hold_lock, write_record
from .ports import port_of
from .profiles import record_profile, stored_profile
from .spec import ClusterSpec, ReadyCondition

RESET: Final = signal.SIGUSR1
"""The signal that requests the process that runs a cluster to empty its store."""


class Supervisor:
    """The run of a named cluster in the current process."""

    def __init__(
        self,
        folder: ClusterFolder,
        spec: ClusterSpec,
        *,
        clock: Clock,
        report: Report,
        step: Report,
        start_fork: StartFork | None = None,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._clock = clock
        self._report = report
        self._step = step
        self._start_fork = start_fork
        self._fork_socket: Path | None = None
        self._is_resetting = False
        self._timed_out = False
        self._began = 0.0
        self._record = ClusterRecord(
            pid=os.getpid(),
            version=spec.version,
            started=format_time(clock.now()),
            detached=spec.detached,
            nodes=spec.nodes.count,
            pools=spec.nodes.content,
            packs=spec.packs,
            profile=spec.profile.name,
            control_planes=spec.profile.control_planes if spec.profile.name == KUBEADM else 0,
            store=spec.store,
            fork_of=spec.fork_of,
            one_process=spec.one_process,
            flags=(*spec.flags, *spec.manager_flags),
        )

    async def run(self, *, on_ready: Callable[[ClusterRecord], None]) -> int:
        """Run until a signal stops the cluster or the server exits; return the exit code."""
        forks = ForkSupervisor(self._folder, self._spec, self._start_fork)
        async with hold_lock(self._folder, self._clock), forks.running() as self._fork_socket:
            with self._hold_record():
                while True:
                    code = await self._run_once(on_ready)
                    if not self._is_resetting:
                        return code
                    self._report("emptying the store")
                    delete_objects(self._folder)

    @contextmanager
    def _hold_record(self) -> Iterator[None]:
        """Truncate the logs, and write the record, which is removed at the end of the block."""
        folder = self._folder
        for component in (SERVER, MANAGER):
            self._launch().log(component).write_bytes(b"")
        if not self._spec.detached:
            folder.log(SUPERVISOR_LOG).unlink(missing_ok=True)
        if not self._spec.fork_of:  # the folder may be that of an earlier fork
            folder.fork_of.unlink(missing_ok=True)
        write_record(folder, self._record)
        try:
            yield
        finally:
            folder.record.unlink(missing_ok=True)
            if self._spec.fork_of:
                remove_secrets(folder)

    async def _run_once(self, on_ready: Callable[[ClusterRecord], None]) -> int:
        """Run both processes until a reset is requested, or until they stop; return the exit code."""
        self._is_resetting, self._began = False, self._clock.monotonic()
        plane = control_plane(
            self._launch(),
            clock=self._clock,
            report=self._report,
            on_change=self._update_components,
            store=self._spec.store,
            one_process=self._spec.one_process,
        )
        plane.handle_signals()
        asyncio.get_running_loop().add_signal_handler(RESET, self._reset, plane)
        client_import = start_import("mockube.cluster_client")
        self._step("starting the API server and the controller manager")
        with suppress(NotReady), self._start_timeout(plane):
            async with plane.running():
                await self._make_ready(plane, await client_import)
                if not plane.is_over:
                    on_ready(self._record)
                    await plane.wait_until_stopped()
        self._is_resetting = self._is_resetting and not plane.stopped_by
        code = plane.code(stopped=0 if self._record.ready else 128 + plane.stopped_by)
        if plane.failed is not None:
            self._report(exit_message(plane.failed, code))
        if self._timed_out:
            raise TimedOut(f"the cluster was not ready within {self._spec.seconds:g} s and was stopped")
        return code

    async def _make_ready(self, plane: ControlPlane, client: ModuleType) -> None:
        url = kubeconfigs.publish(self._folder)
        if self._spec.copy_to is not None:
            kubeconfigs.copy(self._folder, self._spec.copy_to)
        if self._spec.replaces_nodes:
            request = client.replace_nodes(self._folder.kubeconfig, self._spec.nodes, clock=self._clock)
            await wait_first(request, plane.wait_until_stopped())
        if not plane.is_over:
            await wait_first(self._make_usable(client), plane.wait_until_stopped())
        if plane.is_over:
            return
        self._record = msgspec.structs.replace(self._record, ready=True, url=url)
        self._update_components(plane)

    async def _make_usable(self, client: ModuleType) -> None:
        """Wait for what the specification names."""
        spec = self._spec
        if spec.until is ReadyCondition.NODES:
            self._step("waiting for the nodes")
            await self._wait_nodes(client)
        if spec.data_dir is not None:
            record_profile(spec.data_dir, spec.profile)

    async def _wait_nodes(self, client: ModuleType) -> None:
        launch = self._launch()
        nodes = await client.wait_usable(
            launch.kubeconfig,
            launch.nodes,
            has_only_these=self._spec.replaces_nodes,
            clock=self._clock,
            report=self._note_time,
            controllers=launch.controllers,
            control_planes=self._record.control_planes,
        )
        self._record = msgspec.structs.replace(self._record, nodes=nodes)

    def _note_time(self, milestone: str) -> None:
        if self._spec.notes_times:
            self._report(f"{milestone} after {self._clock.monotonic() - self._began:.2f} s")

    @contextmanager
    def _start_timeout(self, plane: ControlPlane) -> Iterator[None]:
        """Stop the run if it is not ready for the first time within the timeout."""

        def expire() -> None:
            self._timed_out = not self._record.ready
            if self._timed_out:
                plane.stop()

        seconds = math.inf if self._record.resets else self._spec.seconds
        timer = self._clock.call_later(seconds, expire)
        try:
            yield
        finally:
            timer.cancel()

    def _launch(self) -> Launch:
        folder, spec = self._folder, self._spec
        same_port = port_of(self._record.url)
        return Launch(
            kubeconfig=folder.admin_kubeconfig,
            logs=folder.logs,
            nodes=spec.nodes,
            packs=spec.packs,
            flags=(
                *("--cert-dir", str(folder.pki), *spec.flags),
                *(("--secure-port", str(same_port)) if same_port else ()),
                *(("--fork-socket", str(self._fork_socket)) if self._fork_socket else ()),
            ),
            manager_flags=spec.manager_flags,
            profile=spec.profile.name,
            control_planes=spec.profile.control_planes,
        )

    def _update_components(self, plane: ControlPlane) -> None:
        components = {
            name: Component(pid=pid, restarts=restarts) for name, (pid, restarts) in plane.pids.items()
        }
        self._record = msgspec.structs.replace(self._record, components=components)
        write_record(self._folder, self._record)

    def _reset(self, plane: ControlPlane) -> None:
        self._is_resetting = True
        self._record = msgspec.structs.replace(self._record, ready=False, resets=self._record.resets + 1)
        plane.stop()


def delete_objects(folder: ClusterFolder) -> None:
    """Delete all objects that the cluster's folder stores; the cluster will store new ones as before."""
    if folder.data.exists():
        profile = stored_profile(folder.data)
        shutil.rmtree(folder.data)
        folder.data.mkdir(mode=0o700)
        if profile is not None:
            record_profile(folder.data, profile)


def check_resettable(cluster_record: ClusterRecord, folder: ClusterFolder) -> None:
    """Raise Failure for a copy of another cluster, and if the store is not in memory or in the cluster's folder."""
    if cluster_record.is_copy:
        raise Failure(
            f'"{folder.name}" is a copy of the process of "{cluster_record.fork_of}", and cannot start anew: stop it, and fork again'
        )
    if cluster_record.store not in {MEMORY, str(folder.data)}:
        raise Failure(
            f"the store {cluster_record.store} does not belong to this cluster: delete its objects there"
        )
