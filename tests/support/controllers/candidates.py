"""Candidates of a leader election in tests: managers on one clock, whose connections can be cut or held."""

import asyncio

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.kinds import LEASES
from mockube.client.leaderelection.elector import Elector, LeaderElectionConfig, lead
from mockube.client.resources import Key
from mockube.client.wire import Unreachable
from tests.support.event_loop import yield_to_loop

LEASE = Key("kube-system", "manager")


class Line:
    """A client for leases whose connection can be cut, or can hold requests back."""

    def __init__(self, client):
        self._client = client
        self.is_cut = False
        self.in_flight = 0
        self.held = 0
        self.verbs = []
        """The verbs of all requests that were sent."""
        self.pass_requests()

    def pass_requests(self):
        """Let new requests pass; those that are held stay so."""
        self.gate = asyncio.Event()
        self.gate.set()

    def hold_requests(self):
        self.gate = asyncio.Event()

    def __getattr__(self, verb):
        async def call(*arguments, **options):
            if self.is_cut:
                raise Unreachable("cut")
            if not self.gate.is_set():
                self.held += 1
                await self.gate.wait()
            self.in_flight += 1
            self.verbs.append(verb)
            try:
                return await getattr(self._client, verb)(*arguments, **options)
            finally:
                self.in_flight -= 1

        return call


class Candidacy:
    """One manager: whether it leads, and since when."""

    def __init__(self, client, clock, identity, *, is_sole=False):
        self.line = Line(client)
        self.elector = Elector(
            LeaderElectionConfig(lease=LEASE, identity=identity, is_sole=is_sole),
            self.line,
            clock=clock,
            random=SeededRandom(len(identity)),
        )
        self.works = False
        self.starts = 0
        self._clock = clock

    def start(self):
        self.task = asyncio.create_task(
            lead(self.elector, self._work, clock=self._clock, shutdown_timeout=10.0)
        )

    async def _work(self):
        self.works = True
        self.starts += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.works = False


async def pass_time(clock, seconds, candidates=(), *, check=lambda: None):
    """Advance in steps of half a second; each request then completes before the next step."""
    for _ in range(int(seconds / 0.5)):
        clock.advance(0.5)
        quiet = 0
        while quiet < 25:
            await yield_to_loop()
            quiet = 0 if any(candidate.line.in_flight for candidate in candidates) else quiet + 1
        check()


async def lease_spec(client):
    return (await client.get(LEASES, LEASE))["spec"]
