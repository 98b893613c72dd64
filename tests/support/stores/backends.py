"""Every implementation of the KV contract, opened for a test and closed after it.

Each test gets an empty store at any revision: a real etcd serves many tests, one after the other.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mockube.component_base.clock import RealClock, SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import FROM_KEY, KV, Delete, Revision
from mockube.etcd.remote.store import RemoteStore
from tests.support.event_loop import yield_to_loop
from tests.support.stores.random_clients import PassTime
from tests.support.stores.workload import Workload

EMBEDDED = ["memory", "later", "durable"]
EVERY = [*EMBEDDED, pytest.param("etcd", marks=pytest.mark.etcd)]

LATER: Revision = 1_800_000_000_000_000

embedded_only = pytest.mark.parametrize("backend", EMBEDDED, indirect=True)
"""Skips what a real etcd does not guarantee, or gets wrong: each use says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A store, and its properties besides the contract."""

    name: str
    store: KV
    base: Revision
    """Its revision when the test began."""
    pass_time: PassTime | None = None
    """Advances time at once; without it, time passes by itself, and slowly."""

    @property
    def forgets_deletions(self) -> bool:
        """Whether a deletion at the very revision of compaction cannot be watched from there, as in etcd 3.5.1."""
        return self.name == "etcd"

    def workload(self, seed: int) -> Workload:
        return Workload(
            seed=seed,
            pass_time=self.pass_time,
            spares_deletions=self.forgets_deletions,
            first_batches_may_lack_previous=self.name == "etcd",
        )

    async def let_expire(self, seconds: float) -> None:
        """Let what is due in this many seconds happen, sooner or later."""
        if self.pass_time is not None:
            await self.pass_time(seconds)


@asynccontextmanager
async def memory() -> AsyncIterator[Backend]:
    clock = SteppedClock()
    async with _closing("memory", MemoryStore(clock=clock), clock) as backend:
        yield backend


@asynccontextmanager
async def later() -> AsyncIterator[Backend]:
    """A store in memory as an API server creates it: at a revision before which it has no history."""
    clock, core = SteppedClock(), Mvcc()
    core.load(LATER, (), ())
    async with _closing("later", MemoryStore(clock=clock, core=core), clock) as backend:
        yield backend


@asynccontextmanager
async def durable(path: Path) -> AsyncIterator[Backend]:
    clock = SteppedClock()
    async with _closing("durable", await DurableStore.open(path, clock=clock), clock) as backend:
        yield backend


@asynccontextmanager
async def etcd(url: str) -> AsyncIterator[Backend]:
    """A real etcd, emptied first."""
    store = await RemoteStore.connect([url], clock=RealClock())
    try:
        for lease in await store.leases():
            await store.revoke(lease)
        await store.delete(Delete(key=FROM_KEY, range_end=FROM_KEY))
        yield Backend(name="etcd", store=store, base=(await store.status()).revision)
    finally:
        await store.close()


@asynccontextmanager
async def _closing(name: str, store: KV, clock: SteppedClock) -> AsyncIterator[Backend]:
    async def pass_time(seconds: float) -> None:
        clock.advance(seconds)
        await yield_to_loop()

    try:
        yield Backend(name=name, store=store, base=(await store.status()).revision, pass_time=pass_time)
    finally:
        await store.close()
