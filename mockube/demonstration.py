"""The demonstration of `mockube demo`: a short sequence of requests to the embedded store, with its responses.

It uses no API server, and writes the keys that one would write. The clock is stepped, so that the output is always the
same and an hour passes at once.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from mockube.component_base.clock import SteppedClock
from mockube.etcd import kv
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import (
    Compare,
    Delete,
    LeaseId,
    Put,
    Range,
    RangeResult,
    Revision,
    Target,
    Txn,
    Watch,
    WatchRequest,
)

REGISTRY = "/registry/"
PODS = "/registry/pods/"
WEB_0 = "/registry/pods/default/web-0"
WEB_1 = "/registry/pods/default/web-1"
NODE_1 = "/registry/minions/node-1"
STARTED = "/registry/events/default/web-0.started"

EVENT_TTL = 3600
"""Seconds for which Kubernetes keeps an event."""

FIRST_KEYS = (
    ("/registry/namespaces/default", '{"kind":"Namespace"}'),
    ("/registry/minions/node-0", '{"kind":"Node"}'),
    (WEB_0, '{"kind":"Pod","phase":"Pending"}'),
)


class OutputStream(Protocol):
    def write(self, text: str, /) -> object: ...


class Demonstration(Struct, frozen=True, kw_only=True):
    """The store, the clock and the output of a demonstration. Keys and values are text here and bytes in the store."""

    store: kv.KV
    clock: SteppedClock
    out: OutputStream

    def print_step(self, action: str, outcome: str) -> None:
        self.out.write(f"  {action:<54}  {outcome}".rstrip() + "\n")

    async def put(self, key: str, value: str, lease: LeaseId = kv.NO_LEASE) -> Revision:
        result = await self.store.put(Put(key=key.encode(), value=value.encode(), lease=lease))
        self.print_step(f"put {key}", f"revision {result.revision}")
        return result.revision

    async def read(self, key: str, revision: Revision = kv.HEAD) -> str:
        """Return the key's value at a revision, or a message if there is none."""
        try:
            result = await self.store.range(Range(key=key.encode(), revision=revision))
        except Compacted as error:
            return f"refused, {type(error).__name__}: {error}"
        return result.kvs[0].value.decode() if result.kvs else "no such key"

    async def watch(self, prefix: str) -> Watch:
        """Start a watch of a prefix, from the next change on."""
        return await self.store.watch(
            WatchRequest(key=prefix.encode(), range_end=kv.prefix_end(prefix.encode()))
        )

    async def print_events(self, watch: Watch, until: Revision) -> None:
        """Print the events of a watch, until it has reached a revision."""
        async for batch in watch:
            for event in batch.events:
                line = f"watched: {event.kind.value} {event.kv.key.decode()}"
                self.print_step(line, f"revision {event.kv.mod_revision}")
            if batch.revision >= until:
                break


Section: TypeAlias = Callable[[Demonstration], Awaitable[None]]


async def write(demonstration: Demonstration) -> None:
    for key, value in FIRST_KEYS:
        await demonstration.put(key, value)
    registry = Range(key=REGISTRY.encode(), range_end=kv.prefix_end(REGISTRY.encode()), count_only=True)
    result = await demonstration.store.range(registry)
    demonstration.print_step(f"count {REGISTRY}", f"{result.count} keys at revision {result.revision}")


async def _replace(demonstration: Demonstration, expected: Revision, phase: str) -> None:
    value = f'{{"kind":"Pod","phase":"{phase}"}}'.encode()
    result = await demonstration.store.txn(
        Txn(
            compare=(Compare(key=WEB_0.encode(), target=Target.MOD, operand=expected),),
            then=(Put(key=WEB_0.encode(), value=value),),
            otherwise=(Range(key=WEB_0.encode()),),
        )
    )
    outcome = f"done, revision {result.revision}"
    if not result.succeeded:
        (current,) = result.results
        assert isinstance(current, RangeResult)
        outcome = f"refused: it changed at revision {current.kvs[0].mod_revision}"
    demonstration.print_step(f"make web-0 {phase} if unchanged since revision {expected}", outcome)


async def compare_and_swap(demonstration: Demonstration) -> None:
    """Let two writers read the same revision: the first write succeeds, the second fails."""
    revision = (await demonstration.store.range(Range(key=WEB_0.encode()))).kvs[0].mod_revision
    await _replace(demonstration, revision, "Running")
    await _replace(demonstration, revision, "Failed")


async def watch_while_writing(demonstration: Demonstration) -> None:
    async with await demonstration.watch(PODS) as watch:
        demonstration.print_step(f"watch {PODS}", "from the next change on")
        await demonstration.put(WEB_1, '{"kind":"Pod"}')
        await demonstration.put(NODE_1, '{"kind":"Node"}')
        deleted = await demonstration.store.delete(Delete(key=WEB_1.encode()))
        demonstration.print_step(f"delete {WEB_1}", f"revision {deleted.revision}")
        await demonstration.print_events(watch, until=deleted.revision)


async def history(demonstration: Demonstration) -> None:
    created = (await demonstration.store.range(Range(key=WEB_0.encode()))).kvs[0].create_revision
    demonstration.print_step("read web-0", await demonstration.read(WEB_0))
    demonstration.print_step(f"read web-0 at revision {created}", await demonstration.read(WEB_0, created))
    now = (await demonstration.store.status()).revision
    await demonstration.store.compact(now)
    demonstration.print_step(
        f"compact at revision {now}",
        f"history begins at {(await demonstration.store.status()).compact_revision}",
    )
    demonstration.print_step(f"read web-0 at revision {created}", await demonstration.read(WEB_0, created))


async def lease(demonstration: Demonstration) -> None:
    async with await demonstration.watch(STARTED) as watch:
        granted = await demonstration.store.grant(EVENT_TTL)
        demonstration.print_step("grant a lease", f"of {granted.ttl} s")
        put = await demonstration.put(STARTED, '{"kind":"Event"}', granted.id)
        demonstration.clock.advance(granted.ttl)
        demonstration.print_step(f"step the clock by {granted.ttl} s", "")
        await demonstration.print_events(watch, until=put + 1)
        demonstration.print_step(f"read {STARTED}", await demonstration.read(STARTED))


SECTIONS: tuple[tuple[str, Section], ...] = (
    ("Keys in the layout of Kubernetes", write),
    ("Compare and swap: the second writer loses", compare_and_swap),
    ("Watch a prefix while others write", watch_while_writing),
    ("Read history, then compact it", history),
    ("A lease expires and its key is deleted", lease),
)


async def demonstrate(out: OutputStream) -> None:
    clock = SteppedClock()
    store = MemoryStore(clock=clock)
    demonstration = Demonstration(store=store, clock=clock, out=out)
    try:
        for title, section in SECTIONS:
            out.write(f"\n{title}\n")
            await section(demonstration)
    finally:
        await store.close()
