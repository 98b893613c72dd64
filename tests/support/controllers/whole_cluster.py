"""A server and a whole manager with simulated nodes, disturbed while they run scenarios on a stepped clock."""

import asyncio
import contextlib

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.cache.informer import MutationDetector
from mockube.client.leaderelection.elector import Elector, LeaderElectionConfig, LeaseLost, lead
from mockube.client.resources import Key
from mockube.client.transport import FencedTransport
from mockube.component_base.clock import SteppedClock
from mockube.component_base.packs import selected_packs
from mockube.controller_manager import catalog
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.controller_manager.running import ManagerRun
from mockube.embedded.direct import DirectTransport
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.disturbances import DisturbedTransport
from tests.support.controllers.running_manager import CountingTransport, dependencies_of, kill
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.server.apiserver import running
from tests.support.server.census import Census

NODES = 3
IDLE_ITERATIONS = 20
"""Iterations of the loop without a request in flight after which the clock advances."""
MAX_STEP = 1.0
"""The longest step of the clock, in seconds."""
MAX_SECONDS = 1200.0
"""Seconds in which an expected state must be reached, disturbed or not."""
START_SECONDS = 10.0
"""Seconds after which a new cluster is idle."""
DELAYED_WORK_SECONDS = 60.0
"""Seconds after a scenario in which delayed work is done."""
IDLE_SECONDS = 600.0
"""Seconds without writes at the end of a scenario."""
PERIODIC_WRITES = ("/apis/coordination.k8s.io/", "/api/v1/nodes/", "/apis/events.k8s.io/")
"""Writes that continue nevertheless: leases, node status, and counts of repeated events."""
LEASE = Key("kube-system", "kube-controller-manager")

CONFIG = Config(simulation=Simulation(simulate_nodes=plain_nodes(NODES)))


class DisturbedCluster:
    def __init__(self, server, clock, disturbance, packs):
        self.server = server
        self.clock = clock
        self.disturbance = disturbance
        self.census = Census(server.server)
        self._packs = catalog.controllers_of_packs(packs, {})
        self.starts = 0

    async def until(self, condition):
        """Let time pass until a condition holds for the server's objects."""
        deadline = self.clock.monotonic() + MAX_SECONDS
        await self._pause()
        while not condition(self.census):
            assert self.clock.monotonic() < deadline, condition.__qualname__
            self._advance_clock(MAX_STEP)
            await self._pause()

    async def finish_and_wait(self):
        """Stop disturbing, finish all work, and then let much time pass; return the writes of that time."""
        self._disturbed_transport.stop_disturbing()
        await self.pass_time(DELAYED_WORK_SECONDS)
        while not self.work.events.is_idle:
            await self.pass_time(DELAYED_WORK_SECONDS)
        before = len(self.transport.writes)
        await self.pass_time(IDLE_SECONDS)
        return [write for write in self.transport.writes[before:] if not write[1].startswith(PERIODIC_WRITES)]

    async def pass_time(self, seconds):
        until = self.clock.monotonic() + seconds
        await self._pause()
        while (left := until - self.clock.monotonic()) > 0:
            self.clock.advance(min(left, 5.0))
            await self._pause()

    def _advance_clock(self, maximum):
        due = self.clock.next_due()
        self.clock.advance(maximum if due is None else min(due, maximum))

    async def _pause(self):
        """Wait until no request is in flight; meanwhile replace a manager that was killed."""
        quiet = 0
        async with asyncio.timeout(WAIT_TIMEOUT):
            while quiet < IDLE_ITERATIONS:
                if self.disturbance.is_dead:
                    await self.stop()
                    self.disturbance.revive()
                    await self.start()
                await yield_to_loop()
                assert not self._running.done(), "the manager ended unexpectedly"
                quiet = 0 if self.transport.in_flight else quiet + 1

    async def start(self):
        self.starts += 1
        self._detector = MutationDetector()
        self._disturbed_transport = DisturbedTransport(
            DirectTransport(self.server.server.handler.handle, self.clock), self.disturbance
        )
        self.transport = CountingTransport(self._disturbed_transport)
        candidate = LeaderElectionConfig(lease=LEASE, identity=f"manager-{self.starts}")
        client = dependencies_of(self.transport, self.clock).client
        elector = Elector(candidate, client, clock=self.clock, random=SeededRandom())
        self._running = asyncio.create_task(self._lead(elector))

    async def _lead(self, elector):
        while True:
            with contextlib.suppress(LeaseLost):
                await lead(
                    elector, lambda: self._run_manager(elector), clock=self.clock, shutdown_timeout=10.0
                )

    async def _run_manager(self, elector):
        transport = FencedTransport(self.transport, elector.may_write)
        used = dependencies_of(transport, self.clock, config=CONFIG, detector=self._detector)
        controllers = (*catalog.CONTROLLERS, *self._packs.controllers)
        self.work = ManagerRun(used, controllers=controllers, runnables=catalog.RUNNABLES)
        await self.work.run()

    async def stop(self):
        await kill(self._running)
        await self.transport.close()
        self._detector.check()


@contextlib.asynccontextmanager
async def cluster_of(disturbance_of, *, flags=()):
    clock = SteppedClock()
    async with running(*flags, clock=clock) as server:
        for name in ("kube-system", "kube-node-lease"):
            await server.post("/api/v1/namespaces", {"metadata": {"name": name}})
        cluster = DisturbedCluster(
            server, clock, disturbance_of(clock, server), selected_packs(flags, {}, "")
        )
        await cluster.start()
        try:
            await cluster.until(is_up)
            await cluster.pass_time(START_SECONDS)
            yield cluster
        finally:
            await cluster.stop()


def is_up(census):
    conditions = [
        condition for node in census.all("nodes") for condition in node["status"].get("conditions") or ()
    ]
    ready = [
        condition for condition in conditions if (condition["type"], condition["status"]) == ("Ready", "True")
    ]
    return len(ready) == NODES and not any(node.get("spec", {}).get("taints") for node in census.all("nodes"))
