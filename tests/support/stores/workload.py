"""The standard workload: conflicting clients and watchers, and their history.

It is the same for every store, correct or broken. It proves nothing if few calls are made, so `assert_busy` checks minimums.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from mockube.etcd.errors import Compacted, Interrupted
from mockube.etcd.kv import HEAD, KV, Put, Range, Revision, Txn, TxnResult
from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.seeded import source
from tests.support.stores.followers import FURTHEST_FUTURE, CacheWatcher
from tests.support.stores.history import Call, Client, Compact, History, Revoke
from tests.support.stores.random_clients import ALL_KEYS, INTERVALS, KEYS, PassTime, RandomClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    seed: int
    clients: int = 4
    actions: int = 120
    """The number of actions of each client."""
    pass_time: PassTime | None = None
    """How to let leases expire; without it they are revoked."""
    spares_deletions: bool = False
    """Never compact at the very revision of a deletion."""
    first_batches_may_lack_previous: bool = False
    """The store may send the first events of a watch without the previous values that were requested."""


async def run(store: KV, workload: Workload, history: History | None = None) -> History:
    """Drive a store that has no keys of the workload, or continue where `history` ends, after a restart."""
    base = (await store.status()).revision
    history = history or History(base)
    history.first_batches_may_lack_previous = workload.first_batches_may_lack_previous
    followers = followers_of(store, history, workload.seed, base)
    observer = followers[0]
    actors = [
        RandomClient(
            client_of(store, history, f"client-{number}", workload.seed),
            base=base,
            random=source(workload.seed, "actor", number),
            pass_time=workload.pass_time,
            spares_deletions=workload.spares_deletions,
            observed=lambda: observer.seen,
        )
        for number in range(workload.clients)
    ]
    async with asyncio.timeout(1.5 * WAIT_TIMEOUT), asyncio.TaskGroup() as group:
        for follower in followers:
            group.create_task(follower.follow())
        async with asyncio.TaskGroup() as acting:
            for actor in actors:
                acting.create_task(actor.act(workload.actions))
        goal = await close(client_of(store, history, "closer", workload.seed))
        for follower in followers:
            await follower.finish(goal)
    return history


def client_of(store: KV, history: History, name: str, seed: int) -> Client:
    random = source(seed, "pause", name)
    return Client(f"{name}/{seed}", store, history, pause=lambda: yield_to_loop(random.randrange(4)))


def followers_of(store: KV, history: History, seed: int, base: Revision) -> list[CacheWatcher]:
    """One that sees everything and never disconnects, and two that disconnect for every interval."""
    patience = [(ALL_KEYS, None)] + [(interval, maximum) for interval in INTERVALS for maximum in (3, 12)]
    return [
        CacheWatcher(
            client_of(store, history, f"watcher-{number}", seed),
            interval,
            base=base,
            random=source(seed, "watcher", number),
            patience=maximum,
        )
        for number, (interval, maximum) in enumerate(patience)
    ]


async def close(client: Client) -> int:
    """Change every key, often enough for watches that start in the future; return the last revision."""
    for number in range(FURTHEST_FUTURE):
        with suppress(Interrupted):
            await client.txn(
                Txn(then=[Put(key=key, value=f"{client.name}.{number}".encode()) for key in KEYS])
            )
    return (await client.range(Range(key=ALL_KEYS[0], range_end=ALL_KEYS[1]))).revision


# --- did enough happen?

MINIMUM = {
    "transaction won": 60,
    "transaction lost": 20,
    "several changes in one": 5,
    "put": 10,
    "delete of something": 1,
    "read": 100,
    "read at an old revision": 10,
    "read cut by a limit": 5,
    "read refused": 3,
    "compaction": 2,
    "lease ended": 1,
    "stream": 40,
    "stream cut off by compaction": 1,
    "event": 300,
    "previous value": 100,
    "progress notification": 5,
}


def count_events(history: History) -> Counter[str]:
    """Count the events of each sort that the checker checks."""
    counts: Counter[str] = Counter()
    for call in history.calls:
        counts.update(kind for kind, is_so in KINDS.items() if is_so(call))
    for stream in history.streams:
        events = [event for _, batch in stream.batches for event in batch.events]
        counts["stream"] += 1
        counts["stream cut off by compaction"] += isinstance(stream.error, Compacted)
        counts["event"] += len(events)
        counts["previous value"] += sum(event.previous is not None for event in events)
        counts["progress notification"] += sum(not batch.events for _, batch in stream.batches)
    return counts


def assert_busy(history: History) -> None:
    counts = count_events(history)
    missing = {kind: counts[kind] for kind, minimum in MINIMUM.items() if counts[kind] < minimum}
    assert not missing, f"too little happened to prove anything: {missing}"


def _is_old(call: Call) -> bool:
    return isinstance(call.request, Range) and call.request.revision != HEAD


KINDS: dict[str, Callable[[Call], object]] = {
    "transaction won": lambda call: isinstance(call.answer, TxnResult) and call.answer.succeeded,
    "transaction lost": lambda call: isinstance(call.answer, TxnResult) and not call.answer.succeeded,
    "several changes in one": lambda call: (
        isinstance(call.request, Txn) and call.has_changed and len(call.request.then) > 2
    ),
    "put": lambda call: isinstance(call.request, Put) and call.has_changed,
    "delete of something": lambda call: not isinstance(call.request, Put | Txn) and call.has_changed,
    "read": lambda call: isinstance(call.request, Range) and call.answer,
    "read at an old revision": lambda call: _is_old(call) and call.answer,
    "read cut by a limit": lambda call: isinstance(call.request, Range) and call.answer and call.answer.more,
    "read refused": lambda call: isinstance(call.request, Range) and call.error,
    "compaction": lambda call: isinstance(call.request, Compact) and not call.error,
    "lease ended": lambda call: isinstance(call.request, Revoke) and not call.error,
    "outcome unknown": lambda call: call.is_unknown,
}
