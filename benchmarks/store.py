"""Measure the throughput of the stores: memory, durable and a real etcd, in one run.

    python benchmarks/store.py [--quick] [memory] [durable] [etcd]

Every figure is measured in one client process through the KV interface, with values of 1 KB. Two baselines
are measured as well: sequential fsyncs of this disk, and creates against the same etcd with only aiohttp and
orjson.
"""

import argparse
import asyncio
import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import uvloop

from benchmarks import raw_etcd
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import KV, Compare, Put, Range, Target, Txn, Watch, WatchRequest, prefix_end
from mockube.etcd.remote.store import RemoteStore
from tests.support.stores.etcd_server import EtcdServer

VALUE = os.urandom(512).hex().encode()
PREFIX = b"/registry/pods/"
CLIENTS = 64
BACKENDS = ("memory", "durable", "etcd")
AMOUNT = {"memory": 100_000, "durable": 40_000, "etcd": 10_000}
"""Number of writes by many clients; the amounts of all other work are proportional."""

Figures = dict[str, float]


def key(number: int) -> bytes:
    return b"/registry/pods/default/pod-%07d" % number


async def rate(count: int, work: Callable[[int], Awaitable[object]], *, clients: int = 1) -> float:
    """Run `count` pieces of work with this many concurrent clients; return the pieces per second."""

    async def client(first: int) -> None:
        for number in range(first, count, clients):
            await work(number)

    started = time.perf_counter()
    await asyncio.gather(*(client(first) for first in range(clients)))
    return count / (time.perf_counter() - started)


async def measure(kv: KV, amount: int, watchers: tuple[int, ...] = (1, 100, 1000)) -> Figures:
    alone, figures = amount // 10, {}
    seen: dict[int, int] = {}

    async def write(number: int) -> None:
        """Create or update a key: both are a compare and a put."""
        compare = Compare(key=key(number), target=Target.MOD, operand=seen.get(number, 0))
        answer = await kv.txn(Txn(compare=(compare,), then=(Put(key=key(number), value=VALUE),)))
        assert answer.succeeded
        seen[number] = answer.revision

    async def read(number: int) -> None:
        assert (await kv.range(Range(key=key(number)))).kvs

    async def read_thousand(_: int) -> None:
        page = await kv.range(Range(key=PREFIX, range_end=prefix_end(PREFIX), limit=1000))
        assert len(page.kvs) == 1000

    figures["creates/s, 1 client"] = await rate(alone, write)
    figures[f"creates/s, {CLIENTS} clients"] = await rate(
        amount, lambda number: write(alone + number), clients=CLIENTS
    )
    figures["updates/s, 1 client"] = await rate(alone, write)
    figures[f"updates/s, {CLIENTS} clients"] = await rate(amount, write, clients=CLIENTS)
    figures["point reads/s, 1 client"] = await rate(amount, read)
    figures["ranges of 1,000/s, 1 client"] = await rate(max(amount // 100, 10), read_thousand)
    for count in watchers:
        figures[f"watch deliveries/s, {count:,} watchers"] = await deliveries(kv, count, 10 * amount)
    return figures


async def deliveries(kv: KV, watchers: int, total: int) -> float:
    """Return the events per second delivered to all watchers together, while eight clients write."""
    prefix, events = b"/watched/%d/" % watchers, max(total // watchers, 200)
    request = WatchRequest(key=prefix, range_end=prefix_end(prefix))
    streams = [await kv.watch(request) for _ in range(watchers)]

    async def follow(stream: Watch) -> None:
        missing = events
        async for batch in stream:
            missing -= len(batch.events)
            if missing <= 0:
                return

    async def write(number: int) -> None:
        await kv.put(Put(key=b"%b%d" % (prefix, number), value=VALUE))

    started = time.perf_counter()
    await asyncio.gather(rate(events, write, clients=8), *map(follow, streams))
    seconds = time.perf_counter() - started
    for stream in streams:
        await stream.close()
    return watchers * events / seconds


# --- the stores


@contextlib.asynccontextmanager
async def closing(kv: KV) -> AsyncIterator[KV]:
    try:
        yield kv
    finally:
        await kv.close()


async def measure_memory(amount: int) -> Figures:
    async with closing(MemoryStore(clock=RealClock())) as kv:
        figures = await measure(kv, amount)
    return figures | await weigh(amount)


async def weigh(amount: int) -> Figures:
    """Return the memory per stored byte of a store that is filled once."""
    async with closing(MemoryStore(clock=RealClock())) as kv:
        before = resident()
        for number in range(amount):
            await kv.put(Put(key=key(number), value=bytes(VALUE[:1]) + VALUE[1:]))
        growth = resident() - before
        return {"bytes of memory for each byte stored": growth / (amount * (len(key(0)) + len(VALUE)))}


async def measure_durable(amount: int) -> Figures:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder)
        figures = {"fsyncs/s, one after the other": fsyncs(path)}
        async with closing(await DurableStore.open(path / "one", clock=RealClock())) as kv:
            figures |= await measure(kv, amount)
        async with closing(await DurableStore.open(path / "two", clock=RealClock())) as kv:
            await rate(amount, lambda number: kv.put(Put(key=key(number), value=VALUE)), clients=CLIENTS)
        started = time.perf_counter()
        async with closing(await DurableStore.open(path / "two", clock=RealClock())):
            figures["recovery of 100,000 keys, s"] = (time.perf_counter() - started) * 100_000 / amount
    return figures


def fsyncs(folder: Path) -> float:
    count, started = 200, time.perf_counter()
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(VALUE)
            os.fdatasync(file.fileno())
    return count / (time.perf_counter() - started)


async def measure_etcd(amount: int) -> Figures:
    with EtcdServer(options=("--quota-backend-bytes=8000000000",)) as server:
        async with closing(await RemoteStore.connect([server.url], clock=RealClock())) as kv:
            figures = await measure(kv, amount, watchers=(1, 100))
        return figures | await raw_etcd.measure(server.url, VALUE, amount=amount, clients=CLIENTS)


MEASURES = {"memory": measure_memory, "durable": measure_durable, "etcd": measure_etcd}


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "backends", nargs="*", metavar="BACKEND", help=f"of {', '.join(BACKENDS)}; all of them"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: to see that it runs")
    arguments = parser.parse_args()
    python = f"Python {platform.python_version()}, uvloop"
    print(f"{python}, {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}\n")
    for backend in arguments.backends or BACKENDS:
        amount = AMOUNT[backend] // (10 if arguments.quick else 1)
        print(backend)
        for name, figure in uvloop.run(MEASURES[backend](amount)).items():
            print(f"  {name:42} {figure:>14,.2f}" if figure < 100 else f"  {name:42} {figure:>14,.0f}")
        print(flush=True)


if __name__ == "__main__":
    main()
