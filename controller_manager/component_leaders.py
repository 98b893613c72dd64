"""The scheduler and the controllers of a cluster that kubeadm has made: they work while a static pod of theirs runs and leads.

Each static pod of kube-scheduler or kube-controller-manager is a candidate for the Lease of its name. Only one of them works, as in a
cluster with several control planes; without one nothing is scheduled, or reconciled.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError, NotFound
from mockube.client.cache.informer import HandlerScope
from mockube.client.component import Runner
from mockube.client.events.recorder import Recorder
from mockube.client.kinds import LEASES
from mockube.client.leaderelection.elector import (
    Elector,
    LeaderElectionConfig,
    LeaseLost,
    Timings,
    lead,
    run_without_lease,
)
from mockube.client.metrics.process import report_leadership
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry
from mockube.kubelet.running_programs import RunningPrograms

LOG: Final = logging.getLogger(__name__)

OnFailure = Callable[[str, Exception], None]
Build = Callable[[], Mapping[str, Runner]]


class ElectedComponent(Struct, frozen=True, kw_only=True):
    """A program of the control plane whose parts this manager runs."""

    program: str
    lease: Key
    releases: bool
    """Whether the program releases its Lease when it ends."""
    parts: frozenset[str]
    """The names of the controllers and runnables that belong to it."""
    nodes: Collection[str] = ()
    """The nodes that have a static pod of it in a new cluster."""


class ComponentElection(Struct, frozen=True, kw_only=True):
    """How the static pods of components are elected."""

    is_enabled: bool
    timings: Timings
    client: Client
    """Its requests do not wait behind those of the parts."""
    clock: Clock
    random: Random
    metrics: MetricsRegistry
    shutdown_timeout: float


class _Parts:
    """The parts of a component, for one time that it leads."""

    def __init__(self, build: Build) -> None:
        self._scope = HandlerScope()
        with self._scope.active():
            self._runners = build()

    async def run(self, on_failure: OnFailure) -> None:
        """Run all parts until cancelled, or until one fails: then cancel and await the others, and raise its error."""
        try:
            with self._scope.active():
                tasks = [
                    supervision.start(name, runner.run(), on_failure=on_failure, endless=True)
                    for name, runner in self._runners.items()
                ]
            await supervision.wait_for_all(tasks)
        finally:
            self._scope.remove_handlers()


class ComponentRunner:
    """Runs a component while it leads. Its first parts exist from the beginning, so that their informers start with the others."""

    def __init__(
        self,
        component: ElectedComponent,
        build: Build,
        election: ComponentElection,
        programs: RunningPrograms,
        recorder: Recorder,
        on_failure: OnFailure,
    ) -> None:
        """`build` creates the parts by name: they add handlers to informers, and read nothing."""
        self._component = component
        self._build = build
        self._election = election
        self._programs = programs
        self._recorder = recorder
        self._on_failure = on_failure
        self._parts: _Parts | None = _Parts(build)
        self._leading: Elector | None = None
        self._resumed = set[str]()
        """The nodes whose static pods may have held the Lease before this manager has started."""
        self._changed = asyncio.Event()
        programs.on_change(self._changed.set)

    async def run(self) -> None:
        election, lease = self._election, self._component.lease
        stop_reporting = report_leadership(lease.name, lambda: self._leading is not None, election.metrics)
        instances: dict[tuple[str, int], asyncio.Task[None]] = {}
        if await self._holder() is None:
            for node in self._component.nodes:  # nobody has led yet, so that nobody has removed a manifest
                self._programs.start(node, self._component.program)
        try:
            while True:
                self._changed.clear()
                await self._sync(instances, {*self._programs.runs(self._component.program).items()})
                changing = supervision.start("change of static pods", self._wait_for_change())
                ended, _ = await asyncio.wait(
                    {changing, *instances.values()}, return_when=asyncio.FIRST_COMPLETED
                )
                await supervision.cancel_and_wait([changing])
                for task in ended - {changing}:
                    task.result()
        finally:
            await supervision.cancel_and_wait([*instances.values()])
            stop_reporting()

    async def _wait_for_change(self) -> None:
        await self._changed.wait()

    async def _sync(
        self, instances: "dict[tuple[str, int], asyncio.Task[None]]", runs: set[tuple[str, int]]
    ) -> None:
        """Start and end what the static pods on nodes do, by the runs of their containers."""
        program = self._component.program
        for run in sorted(instances.keys() - runs):
            LOG.warning("%s has ended on %s", program, run[0])
            await supervision.cancel_and_wait([instances.pop(run)])
        for run in sorted(runs - instances.keys()):
            instances[run] = supervision.start(f"{program} on {run[0]}", self._run_instance(run[0]))

    async def _run_instance(self, node: str) -> None:
        """Run the program of a static pod until it ends."""
        election = self._election
        if not election.is_enabled:
            await run_without_lease(
                self._work_of(None), clock=election.clock.real, shutdown_timeout=election.shutdown_timeout
            )
            return
        elector = Elector(
            LeaderElectionConfig(
                lease=self._component.lease,
                identity=await self._identity(node),
                timings=election.timings,
                is_sole=len(self._programs.runs(self._component.program)) == 1,
            ),
            election.client,
            clock=election.clock,
            random=election.random,
        )
        while True:
            try:
                await lead(
                    elector,
                    self._work_of(elector),
                    clock=election.clock.real,
                    shutdown_timeout=election.shutdown_timeout,
                    releases=self._component.releases,
                )
            except LeaseLost as error:
                LOG.error("%s on %s: leaderelection lost: %s", self._component.program, node, error)  # noqa: TRY400 - it is no fault

    async def _identity(self, node: str) -> str:
        """Return the name of a candidate: a static pod that has led before this manager has started goes on.

        Two managers do not use one name at a time: this runs while the Lease of the manager itself is held, and the parts of one
        that has lost that write nothing any more.
        """
        if node not in self._resumed:
            self._resumed.add(node)
            holder = await self._holder()
            if holder is not None and holder.startswith(f"{node}_"):
                return holder
        return f"{node}_{randomness.uid(self._election.random)}"

    async def _holder(self) -> str | None:
        """Return who holds the Lease, or has held it; None if nobody has ever done so."""
        try:
            lease = await self._election.client.get(LEASES, self._component.lease)
        except NotFound:
            return None
        except (ApiError, NoResponse):
            return ""
        return str((lease.get("spec") or {}).get("holderIdentity") or "")

    def _work_of(self, elector: Elector | None) -> Callable[[], Coroutine[None, None, None]]:
        async def work() -> None:
            parts, self._parts = self._parts or _Parts(self._build), None
            self._leading = elector
            if elector is not None and elector.lease is not None:
                self._recorder.record(
                    elector.lease, "Normal", "LeaderElection", f"{elector.identity} became leader"
                )
            try:
                await parts.run(self._on_failure)
            finally:
                self._leading = None

        return work
