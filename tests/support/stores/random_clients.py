"""Actions of the workload's clients: each picks from a table by a seeded choice.

They behave as Kubernetes does (read, then compare and swap), and also make all other calls of the contract.
Responses are recorded, and checked later: nothing is asserted here.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from mockube.etcd.errors import Compacted, FutureRevision, Interrupted, LeaseNotFound
from mockube.etcd.kv import (
    FROM_KEY,
    Compare,
    Delete,
    KeyValue,
    Put,
    Range,
    RangeResult,
    Revision,
    Target,
    Txn,
    prefix_end,
)
from tests.support.seeded import Random
from tests.support.stores.history import Client

KEYS = (b"/a/0", b"/a/1", b"/a/2", b"/ab/0", b"/b/0", b"/b/1")
INTERVALS = (
    (b"/a/0", None),
    (b"/b/0", None),
    (b"/a/", prefix_end(b"/a/")),
    (b"/a", prefix_end(b"/a")),
    (b"/a/1", b"/b/1"),
    (b"/a/2", FROM_KEY),
)
ALL_KEYS = (b"/", FROM_KEY)

TO_BE_JUDGED = (Compacted, FutureRevision, Interrupted, LeaseNotFound)
"""Errors that a client may get; the checker decides whether they were correct."""

PassTime = Callable[[float], Awaitable[None]]


class RandomClient:
    """One client of the workload."""

    def __init__(
        self,
        client: Client,
        *,
        base: Revision,
        random: Random,
        pass_time: PassTime | None,
        spares_deletions: bool,
        observed: Callable[[], Revision],
    ) -> None:
        self.client = client
        self.base = base
        self.random = random
        self.pass_time = pass_time
        self.spares_deletions = spares_deletions
        self.observed = observed
        """The revision up to which some client has seen everything."""
        self.newest = base
        self.values = 0
        self.puts: list[Revision] = []

    async def act(self, times: int) -> None:
        for _ in range(times):
            (action,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            with suppress(*TO_BE_JUDGED):
                await action(self)

    async def create(self) -> None:
        await self._write_if_unchanged(self._key(), 0, lambda key: Put(key=key, value=self._value()))

    async def update(self) -> None:
        kv = await self._read(self._key())
        if kv is not None:
            await self._write_if_unchanged(
                kv.key, kv.mod_revision, lambda key: Put(key=key, value=self._value(), previous=True)
            )

    async def remove(self) -> None:
        kv = await self._read(self._key())
        if kv is not None:
            await self._write_if_unchanged(
                kv.key, kv.mod_revision, lambda key: Delete(key=key, previous=True)
            )

    async def put(self) -> None:
        result = await self.client.put(
            Put(key=self._key(), value=self._value(), previous=self._random_bool())
        )
        self.puts.append(result.revision)

    async def clear(self) -> None:
        key, range_end = self._interval()
        await self.client.delete(Delete(key=key, range_end=range_end, previous=self._random_bool()))

    async def change_many(self) -> None:
        """Several changes in one revision, with reads between that see half of them."""
        first, second, third = self.random.sample(KEYS, 3)
        kv = await self._read(first)
        read_all = Range(key=ALL_KEYS[0], range_end=ALL_KEYS[1])
        await self.client.txn(
            Txn(
                compare=[Compare(key=first, target=Target.MOD, operand=kv.mod_revision if kv else 0)],
                then=[
                    Put(key=first, value=self._value()),
                    read_all,
                    Delete(key=second),
                    Put(key=third, value=self._value(), previous=True),
                    read_all,
                ],
                otherwise=[read_all, Range(key=second, count_only=True)],
            )
        )

    async def compare_value(self) -> None:
        """A transaction that only reads."""
        key = self._key()
        kv = await self._read(key)
        await self.client.txn(
            Txn(
                compare=[Compare(key=key, target=Target.VALUE, operand=kv.value if kv else b"")],
                then=[Range(key=key)],
                otherwise=[Range(key=key, keys_only=True)],
            )
        )

    async def read(self) -> None:
        key, range_end = self._interval()
        limit = self.random.choice((0, 1, 2))
        await self._range(
            Range(key=key, range_end=range_end, limit=limit, keys_only=self.random.random() < 0.1)
        )

    async def count(self) -> None:
        key, range_end = self._interval()
        await self._range(Range(key=key, range_end=range_end, count_only=True))

    async def read_past(self) -> None:
        key, range_end = self._interval()
        revision = max(self.base, self.newest - self.random.randrange(40))
        await self._range(
            Range(key=key, range_end=range_end, revision=revision, limit=self.random.choice((0, 2)))
        )

    async def read_future(self) -> None:
        await self._range(Range(key=self._key(), revision=self.newest + self.random.randrange(1, 4)))

    async def compact(self) -> None:
        """Compact, but only what some client has seen: the checker needs a witness of every revision."""
        target = self.newest - self.random.randrange(30)
        seen = range(self.base + 1, self.observed() + 1)
        allowed = [revision for revision in self.puts if revision in seen] if self.spares_deletions else seen
        if allowed:
            await self.client.compact(min(allowed, key=lambda revision: abs(revision - target)))

    async def compact_future(self) -> None:
        await self.client.compact(self.newest + 1_000)

    async def lease(self) -> None:
        """Attach keys to a lease, and revoke it or let it expire."""
        lease = await self.client.grant(self.random.randrange(2, 6))
        first, second = self.random.sample(KEYS, 2)
        puts = [Put(key=key, value=self._value(), lease=lease.id) for key in (first, second)]
        await self.client.txn(Txn(then=puts))
        if self.pass_time is None or self._random_bool():
            await self.client.revoke(lease.id)

    async def wait(self) -> None:
        if self.pass_time is not None:
            await self.pass_time(1.0)

    async def _write_if_unchanged(
        self, key: bytes, revision: Revision, change: Callable[[bytes], Put | Delete]
    ) -> None:
        unchanged = Compare(key=key, target=Target.MOD, operand=revision)
        result = await self.client.txn(
            Txn(compare=[unchanged], then=[change(key)], otherwise=[Range(key=key)])
        )
        self.newest = max(self.newest, result.revision)

    async def _read(self, key: bytes) -> KeyValue | None:
        result = await self._range(Range(key=key))
        return result.kvs[0] if result.kvs else None

    async def _range(self, request: Range) -> RangeResult:
        result = await self.client.range(request)
        self.newest = max(self.newest, result.revision)
        return result

    def _key(self) -> bytes:
        return self.random.choice(KEYS)

    def _interval(self) -> tuple[bytes, bytes | None]:
        return self.random.choice((*INTERVALS, ALL_KEYS))

    def _random_bool(self) -> bool:
        return self.random.random() < 0.5

    def _value(self) -> bytes:
        """Never repeats a value, so that an observed value identifies its write."""
        self.values += 1
        return f"{self.client.name}.{self.values}".encode()


WEIGHTS: dict[Callable[[RandomClient], Awaitable[None]], int] = {
    RandomClient.create: 20,
    RandomClient.update: 20,
    RandomClient.remove: 10,
    RandomClient.put: 8,
    RandomClient.clear: 4,
    RandomClient.change_many: 8,
    RandomClient.compare_value: 3,
    RandomClient.read: 12,
    RandomClient.count: 3,
    RandomClient.read_past: 8,
    RandomClient.read_future: 3,
    RandomClient.compact: 4,
    RandomClient.compact_future: 1,
    RandomClient.lease: 5,
    RandomClient.wait: 4,
}
