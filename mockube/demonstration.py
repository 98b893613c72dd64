"""What `mockube demo` shows: a short story told to the embedded store, and what the store answered.

Every answer printed is the store's own. Time is stepped, so that an hour costs nothing and the story is always the
same. It knows no API server: it writes the keys that one will write.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from mockube.apimachinery.clock import SteppedClock
from mockube.etcd.embedded.memory import MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import (
    HEAD,
    KV,
    NO_LEASE,
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
    prefix_end,
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


class Out(Protocol):
    def write(self, text: str, /) -> object: ...


class Stage(Struct, frozen=True, kw_only=True):
    """What a scene plays on. Keys and values are text here and bytes in the store."""

    store: KV
    clock: SteppedClock
    out: Out

    def tell(self, did: str, answer: str) -> None:
        self.out.write(f"  {did:<54}  {answer}".rstrip() + "\n")

    async def put(self, key: str, value: str, lease: LeaseId = NO_LEASE) -> Revision:
        done = await self.store.put(Put(key=key.encode(), value=value.encode(), lease=lease))
        self.tell(f"put {key}", f"revision {done.revision}")
        return done.revision

    async def read(self, key: str, revision: Revision = HEAD) -> str:
        """The key's value at a revision, or why there is none."""
        try:
            found = await self.store.range(Range(key=key.encode(), revision=revision))
        except Compacted as error:
            return f"refused, {type(error).__name__}: {error}"
        return found.kvs[0].value.decode() if found.kvs else "no such key"

    async def watch(self, prefix: str) -> Watch:
        """Watch from the next change on."""
        return await self.store.watch(
            WatchRequest(key=prefix.encode(), range_end=prefix_end(prefix.encode()))
        )

    async def tell_events(self, watch: Watch, until: Revision) -> None:
        """Print the events of a watch up to a revision, which must come."""
        async for batch in watch:
            for event in batch.events:
                line = f"watched: {event.kind.value} {event.kv.key.decode()}"
                self.tell(line, f"revision {event.kv.mod_revision}")
            if batch.revision >= until:
                break


Scene: TypeAlias = Callable[[Stage], Awaitable[None]]


async def write(stage: Stage) -> None:
    for key, value in FIRST_KEYS:
        await stage.put(key, value)
    registry = Range(key=REGISTRY.encode(), range_end=prefix_end(REGISTRY.encode()), count_only=True)
    found = await stage.store.range(registry)
    stage.tell(f"count {REGISTRY}", f"{found.count} keys at revision {found.revision}")


async def _replace(stage: Stage, expected: Revision, phase: str) -> None:
    value = f'{{"kind":"Pod","phase":"{phase}"}}'.encode()
    result = await stage.store.txn(
        Txn(
            compare=(Compare(key=WEB_0.encode(), target=Target.MOD, operand=expected),),
            then=(Put(key=WEB_0.encode(), value=value),),
            otherwise=(Range(key=WEB_0.encode()),),
        )
    )
    answer = f"done, revision {result.revision}"
    if not result.succeeded:
        (current,) = result.results
        assert isinstance(current, RangeResult)
        answer = f"refused: it changed at revision {current.kvs[0].mod_revision}"
    stage.tell(f"make web-0 {phase} if unchanged since revision {expected}", answer)


async def compare_and_swap(stage: Stage) -> None:
    """Two writers saw the same revision: one wins, one learns that it lost."""
    seen = (await stage.store.range(Range(key=WEB_0.encode()))).kvs[0].mod_revision
    await _replace(stage, seen, "Running")
    await _replace(stage, seen, "Failed")


async def watch_while_writing(stage: Stage) -> None:
    async with await stage.watch(PODS) as watch:
        stage.tell(f"watch {PODS}", "from the next change on")
        await stage.put(WEB_1, '{"kind":"Pod"}')
        await stage.put(NODE_1, '{"kind":"Node"}')
        deleted = await stage.store.delete(Delete(key=WEB_1.encode()))
        stage.tell(f"delete {WEB_1}", f"revision {deleted.revision}")
        await stage.tell_events(watch, until=deleted.revision)


async def history(stage: Stage) -> None:
    created = (await stage.store.range(Range(key=WEB_0.encode()))).kvs[0].create_revision
    stage.tell("read web-0", await stage.read(WEB_0))
    stage.tell(f"read web-0 at revision {created}", await stage.read(WEB_0, created))
    now = (await stage.store.status()).revision
    await stage.store.compact(now)
    stage.tell(
        f"compact at revision {now}", f"history begins at {(await stage.store.status()).compact_revision}"
    )
    stage.tell(f"read web-0 at revision {created}", await stage.read(WEB_0, created))


async def lease(stage: Stage) -> None:
    async with await stage.watch(STARTED) as watch:
        granted = await stage.store.grant(EVENT_TTL)
        stage.tell("grant a lease", f"of {granted.ttl} s")
        put = await stage.put(STARTED, '{"kind":"Event"}', granted.id)
        stage.clock.advance(granted.ttl)
        stage.tell(f"step the clock by {granted.ttl} s", "")
        await stage.tell_events(watch, until=put + 1)
        stage.tell(f"read {STARTED}", await stage.read(STARTED))


SCENES: tuple[tuple[str, Scene], ...] = (
    ("Keys as Kubernetes lays them out", write),
    ("Compare and swap: the second writer loses", compare_and_swap),
    ("Watch a prefix while others write", watch_while_writing),
    ("Read the past, then forget it", history),
    ("A lease expires and takes its key along", lease),
)


async def play(out: Out) -> None:
    clock = SteppedClock()
    store = MemoryStore(clock=clock)
    stage = Stage(store=store, clock=clock, out=out)
    try:
        for title, scene in SCENES:
            out.write(f"\n{title}\n")
            await scene(stage)
    finally:
        await store.close()
