"""The runtime of containers that run as processes of this machine: starts and stops their runs.

The pod workers (`pods`), which start and stop runs, and the kubelets' server share it.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NODES
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.component_base.temporary_folder import temporary_folder
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.state import NEVER_RAN, ProcessState
from mockube.kubelet.effects import ContainerAction, RunHook, StartContainer, StopContainer
from mockube.kubelet.pod_certificates import pod_certificates
from mockube.kubelet.pod_lifecycle.containers import grace_seconds
from mockube.kubelet.pod_lifecycle.probe_totals import ProbeTotals
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.references import REFRESH_SECONDS, PodReferences, ReferenceLoader
from mockube.kubelet.settings import KubeletContext
from mockube.kubelet.start_checks import unmounted_volume

from .folders import write_volumes
from .images import ImageMap, load_images
from .local_process import GroupWatch
from .log_files import rotated_path
from .mount_support import MountSupport
from .process_run import ProcessRun, RunContext

LOG: Final = logging.getLogger(__name__)

FORCED_GRACE: Final = 1.0
"""The grace period in seconds for the processes of a pod that was deleted by force."""
SHUTDOWN_GRACE: Final = 0.3
"""The grace period in seconds for all processes when the kubelet ends."""
MAX_ENDED_RUNS: Final = 2
"""Runs whose logs are retained: the latest and the previous one."""
_FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")


class _PodRecord:
    def __init__(self, references: PodReferences) -> None:
        self.references = references
        self.runs: dict[str, ProcessRun] = {}
        """The latest run of each container."""
        self.probe_totals: dict[tuple[str, Probe], ProbeTotals] = {}
        """The results of the containers' probes in all their runs."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.refresh_task: asyncio.Task[None] | None = None


class ProcessRuntime:
    def __init__(self, context: KubeletContext, images: ImageMap) -> None:
        self._clock = context.clock
        self._images = images
        self._loader = ReferenceLoader(
            context.client, context.informers.of(NODES).lister, pod_certificates(context)
        )
        self._recorder = context.recorder.of("kubelet")
        self._server = context.settings.server
        self._pods: dict[str, _PodRecord] = {}
        self._cleanup_tasks: set[asyncio.Task[None]] = set()
        self._context: RunContext | None = None
        self.on_change: Callable[[Key], None] = lambda _: None
        """Called with a pod's key when the state of one of its processes has changed."""
        self.on_output: Callable[[Key], None] = lambda _: None
        """Called with a pod's key when one of its processes has written output."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Allow processes to start during the block; end all of them at its end."""
        watch = GroupWatch()
        with temporary_folder("mockube-pods-") as folder:
            self._context = RunContext(
                clock=self._clock,
                recorder=self._recorder,
                watch=watch,
                folder=folder,
                can_mount=MountSupport(folder).check,
                server=self._server,
                on_change=lambda pod: self.on_change(Key.of(pod)),
                on_output=lambda pod: self.on_output(Key.of(pod)),
            )
            try:
                yield
            finally:
                try:
                    await self._end_all()
                finally:  # also if this is cancelled, because there is no time left
                    await watch.end()

    # --- the interface to the pod lifecycle

    def states(self, pod: ReadOnlyTree) -> Mapping[str, ProcessState]:
        """Return the states of the pod's containers that run as processes, by name."""
        record = self._pods.get(meta.uid(pod))
        script = script_of(meta.annotations(pod))
        states: dict[str, ProcessState] = {}
        for _, container in _containers(pod):
            name = container["name"]
            run = record.runs.get(name) if record else None
            if run is not None:
                states[name] = run.state
            elif script.command(name) is None and self._images.find(container.get("image") or ""):
                states[name] = NEVER_RAN
        return states

    def apply(self, pod: ReadOnlyTree, actions: Iterable[ContainerAction]) -> None:
        record = self._pods.get(meta.uid(pod))
        if record is not None:
            record.references.pod = pod
        for action in actions:
            match action:
                case StartContainer(container=name, restarts=restarts):
                    self._start(pod, name, restarts)
                case StopContainer(container=name):
                    run = record.runs.get(name) if record else None
                    if run is not None:
                        run.stop(grace_seconds(pod))
                case RunHook():
                    pass  # of a simulated container

    def run_of(self, pod: ReadOnlyTree, name: str) -> ProcessRun | None:
        """Return the latest run of a container; None if it is simulated, or has not run yet."""
        record = self._pods.get(meta.uid(pod))
        return record.runs.get(name) if record else None

    def runs_of(self, uid: str) -> Iterable[ProcessRun]:
        record = self._pods.get(uid)
        return record.runs.values() if record else ()

    def probe_totals(self, pod: ReadOnlyTree) -> Mapping[tuple[str, Probe], ProbeTotals] | None:
        """Return the results of the probes of a pod's processes; None if it has had none."""
        record = self._pods.get(meta.uid(pod))
        return record.probe_totals if record else None

    def is_process(self, pod: ReadOnlyTree, name: str) -> bool:
        return name in self.states(pod)

    def log_of(self, pod: ReadOnlyTree, name: str, restarts: int) -> Path | None:
        """Return the path of a run's log; None if it was removed."""
        run = self.run_of(pod, name)
        path = run.log.with_name(f"{name}.{restarts}.log") if run is not None else None
        return path if path is not None and path.exists() else None

    def forget(self, uid: str) -> None:
        """Remove the processes and files of a deleted pod."""
        record = self._pods.pop(uid, None)
        if record is not None:
            task = start("the end of a pod", self._clean_up(uid, record))
            self._cleanup_tasks.add(task)
            task.add_done_callback(self._cleanup_tasks.discard)

    # --- starting and ending runs

    def _start(self, pod: ReadOnlyTree, name: str, restarts: int) -> None:
        uid = meta.uid(pod)
        record = self._pods.get(uid)
        if record is None:
            record = self._pods[uid] = _PodRecord(PodReferences(self._loader, self._clock, pod))
        previous_run = record.runs.get(name)
        if self._context is None or (previous_run is not None and previous_run.state.restarts >= restarts):
            return
        field, container = next(
            (field, candidate) for field, candidate in _containers(pod) if candidate["name"] == name
        )
        image = self._images.find(container["image"])
        if image is None:
            return
        run = ProcessRun(
            self._context,
            record.references,
            container,
            field=f"spec.{field}{{{name}}}",
            image=image,
            restarts=restarts,
        )
        run.probe_totals = record.probe_totals
        if previous_run is not None:
            _delete_log(previous_run.log, restarts - MAX_ENDED_RUNS)
        record.runs[name] = run
        task = start(f"container {name} of {Key.of(pod)}", run.run())
        record.tasks.add(task)
        task.add_done_callback(record.tasks.discard)
        if record.refresh_task is None:
            record.refresh_task = start(f"volumes of {Key.of(pod)}", self._refresh_volumes(record))

    async def _refresh_volumes(self, record: _PodRecord) -> None:
        """Update the pod's volumes from the API periodically."""
        while True:
            try:
                await self._clock.sleep(REFRESH_SECONDS)
                for run in [*record.runs.values()]:
                    if run.spec is not None and run.state.exit is None:
                        await self._refresh_run_volumes(run, record.references)
            except Exception:
                LOG.exception(
                    "volumes of pod %s were not updated; the update will be retried",
                    Key.of(record.references.pod),
                )

    async def _refresh_run_volumes(self, run: ProcessRun, references: PodReferences) -> None:
        assert self._context is not None
        try:
            new_references = await references.load(run.container)
        except (ApiError, NoResponse):
            return
        if not unmounted_volume(references.pod, run.container, new_references)[1]:
            write_volumes(self._context.folder, references.pod, run.container, new_references)

    async def _clean_up(self, uid: str, record: _PodRecord) -> None:
        assert self._context is not None
        try:
            await _end_runs(record, FORCED_GRACE)
        finally:
            await cancel_and_wait([*record.tasks])
            shutil.rmtree(self._context.folder / uid, ignore_errors=True)

    async def _end_all(self) -> None:
        pods, self._pods = [*self._pods.values()], {}
        await asyncio.gather(*(_end_runs(record, SHUTDOWN_GRACE) for record in pods), *self._cleanup_tasks)


async def _end_runs(record: _PodRecord, grace: float) -> None:
    if record.refresh_task is not None:
        await cancel_and_wait([record.refresh_task])
    for run in record.runs.values():
        run.stop(grace)
    await asyncio.gather(*record.tasks)


def _containers(pod: ReadOnlyTree) -> Iterator[tuple[str, ReadOnlyTree]]:
    """Yield each container of the pod with its field."""
    for field in _FIELDS:
        for container in pod["spec"].get(field) or ():
            yield field, container


def _delete_log(latest: Path, restarts: int) -> None:
    name = latest.name.rsplit(".", 2)[0]
    path = latest.with_name(f"{name}.{restarts}.log")
    for log_file in (path, rotated_path(path)):
        log_file.unlink(missing_ok=True)


def process_runtime(context: KubeletContext) -> ProcessRuntime:
    """Return the manager's runtime; the first call creates it."""
    runtime: ProcessRuntime | None = context.shared.get(ProcessRuntime)
    if runtime is None:
        path = context.settings.process_images
        assert path is not None
        runtime = context.shared[ProcessRuntime] = ProcessRuntime(context, load_images(path))
    return runtime
