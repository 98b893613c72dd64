"""A controller manager in the test's own loop with an API server, and waiting until both are idle."""

import asyncio
import contextlib
from dataclasses import dataclass

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import SeededRandom
from mockube.client.cache.informer import InformerSettings, MutationDetector
from mockube.client.kubeconfig import Access
from mockube.client.metrics.process import Metrics
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.service_accounts import SharedIdentity
from mockube.client.transport import HttpTransport
from mockube.client.verbs import Client
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.running import Dependencies, ManagerRun
from tests.support.controllers.disturbances import Disturbance, DisturbedTransport
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.server.apiserver import running

IDLE_ITERATIONS = 25
"""Iterations of the loop without activity after which it is idle: longer than any task needs to start."""


async def pass_request(_):
    """Pass a request on undisturbed."""


class CountingTransport:
    """A transport that wraps another, and counts the requests without a response. Tests can set hooks."""

    def __init__(self, transport):
        self.transport = transport
        self.in_flight = 0
        self.writes = []
        """Method and target of every write, in the order in which they were sent."""
        self.before_request = pass_request
        self.on_way_back = pass_request
        """Awaited with each write before it is sent and before its response returns; an error raised is its result."""

    @property
    def host(self):
        return self.transport.host

    async def send(self, request, headers):
        self.in_flight += 1
        try:
            if request.is_read:
                return await self.transport.send(request, headers)
            self.writes.append((request.method, request.target))
            await self.before_request(request)
            answer = await self.transport.send(request, headers)
            await self.on_way_back(request)
            return answer
        finally:
            self.in_flight -= 1

    @contextlib.asynccontextmanager
    async def stream(self, request, headers):
        """A watch is in flight until its response begins."""
        async with contextlib.AsyncExitStack() as stack:
            self.in_flight += 1
            try:
                stream = await stack.enter_async_context(self.transport.stream(request, headers))
            finally:
                self.in_flight -= 1
            yield stream

    async def close(self):
        await self.transport.close()


class LastChanges:
    """Follows a resource cache of the server: the newest revision at which something in it changed."""

    def __init__(self, resource_cache):
        self.prefix = resource_cache.prefix
        self.revision = max((stored.revision for stored in resource_cache), default=0)
        resource_cache.watchers.add(self)

    def handle_change(self, change):
        self.revision = change.revision


@dataclass
class Manager:
    work: ManagerRun
    client: Client
    transport: CountingTransport
    clock: object
    metrics: Metrics
    backend: object

    def __post_init__(self):
        self._changes = {}

    async def settle(self):
        """Run everything that can run without time passing."""
        quiet = 0
        async with asyncio.timeout(WAIT_TIMEOUT):
            while quiet < IDLE_ITERATIONS:
                quiet = quiet + 1 if await self._is_quiet() else 0
                await yield_to_loop()

    async def step(self, seconds):
        """Let time pass, and run everything; what is due in between runs at its time."""
        until = self.clock.monotonic() + seconds
        await self.settle()
        while (due := self.clock.next_due()) is not None and self.clock.monotonic() + due <= until:
            self.clock.advance(due)
            await self.settle()
        self.clock.advance(until - self.clock.monotonic())
        await self.settle()

    async def _is_quiet(self):
        watch_cache = self.backend.watch_cache
        return (
            not self.transport.in_flight
            and self.metrics.queues.is_idle
            and self.work.events.is_idle
            and watch_cache.revision == (await self.backend.kv.status()).revision
            and all(map(self._has_seen_everything, self.work.informers._informers.values()))
        )

    def _has_seen_everything(self, informer):
        name = GroupResource(informer.resource.group, informer.resource.plural)
        if name not in self._changes:
            resource_cache = self.backend.watch_cache.resource_cache(
                self.backend.layout.prefix(self.backend.rows[name])
            )
            self._changes[name] = LastChanges(resource_cache)
        return informer.is_synced and informer.revision >= self._changes[name].revision


def dependencies_of(transport, clock, *, config=None, detector=None):
    """The dependencies of a manager that uses a transport, and its metrics."""
    sender = Sender(
        transport=transport,
        credential=FixedToken("admin"),
        agent="kube-controller-manager",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )
    config = config or Config()
    return Dependencies(
        client=Client(sender, SharedIdentity(sender=sender, rate=None)),
        clock=clock,
        random=SeededRandom(),
        metrics=Metrics(clock),
        config=config,
        informer_settings=InformerSettings(
            clock=clock, random=SeededRandom(), detector=detector, gates=config.features.gates
        ),
    )


@contextlib.asynccontextmanager
async def running_cluster(*, clock=None, flags=(), namespaces=(), **manager):
    """A server with some namespaces, and a manager of some controllers, on a clock that the test steps."""
    clock = clock or SteppedClock()
    async with running(*flags, clock=clock) as server:
        for name in namespaces:
            assert (await server.post("/api/v1/namespaces", {"metadata": {"name": name}})).status == 201
        async with running_manager(server, clock, **manager) as started:
            yield server, started


@contextlib.asynccontextmanager
async def running_manager(
    server, clock, *, controllers=(), runnables=(), config=None, disturbance=None, counting=CountingTransport
):
    """`server` is `tests.support.server.apiserver.running(clock=clock)`. At the end all caches must be unmodified.

    It is disturbed once it has started. `counting` is a kind of `CountingTransport`.
    """
    detector = MutationDetector()
    plain = HttpTransport(Access(server=server.url))
    disturbed = DisturbedTransport(plain, Disturbance())
    transport = counting(plain if disturbance is None else disturbed)
    used = dependencies_of(transport, clock, config=config, detector=detector)
    work = ManagerRun(used, controllers=controllers, runnables=runnables)
    task = asyncio.create_task(work.run())
    manager = Manager(work, used.client, transport, clock, used.metrics, server.server.registry)
    try:
        await manager.settle()
        if disturbance is not None:
            disturbed.disturb(disturbance)
        yield manager
        assert not task.done(), "the manager ended by itself"
    finally:
        await kill(task)
        await transport.close()
    detector.check()


async def kill(task):
    """Cancel until it is done: after one cancellation it may finish work that waits for events that no longer come."""
    while not task.done():
        task.cancel()
        await yield_to_loop()
    await asyncio.gather(task, return_exceptions=True)
