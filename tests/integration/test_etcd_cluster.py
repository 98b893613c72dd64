"""Three etcd members, one of which fails under load: acknowledged writes persist and watches miss no event."""

import asyncio

import aiohttp
import pytest

from mockube.component_base.clock import RealClock
from mockube.etcd.errors import KVError, Unavailable
from mockube.etcd.kv import Compare, Put, Range, Target, Txn, WatchRequest, prefix_end
from mockube.etcd.remote.store import RemoteStore
from tests.support.event_loop import next_item
from tests.support.stores.etcd_server import EtcdCluster

pytestmark = pytest.mark.etcd

OPTIONS = ("--unsafe-no-fsync", "--heartbeat-interval=50", "--election-timeout=500")
PREFIX = b"load/"
UNDER_PREFIX = {"key": PREFIX, "range_end": prefix_end(PREFIX)}
WRITERS = 8
WATCHERS = 4


@pytest.fixture
def cluster():
    with EtcdCluster(options=OPTIONS) as cluster:
        yield cluster


@pytest.fixture
async def connect(cluster):
    """Connects stores to all members, and closes them at the end."""
    opened = []

    async def connect(*, deadline=5.0):
        opened.append(await RemoteStore.connect(cluster.urls, clock=RealClock(), deadline=deadline))
        return opened[-1]

    yield connect
    for store in opened:
        await store.close()


async def status_of(member):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{member.url}/v3/maintenance/status", data=b"{}") as answer,
    ):
        return await answer.json()


async def leader_of(cluster):
    """Return the leader, as it reports itself."""
    for member in cluster.members:
        status = await status_of(member)
        if status["leader"] == status["header"]["member_id"]:
            return member
    raise AssertionError("no member leads")


class Load:
    """Writers that create each key once, and record the store's responses."""

    def __init__(self, store):
        self.acknowledged = {}
        """Keys with the revisions that created them."""
        self.failed = {}
        """Keys with the errors that the store returned."""
        self._store = store
        self._heard = asyncio.Event()
        self._stopped = False

    async def run(self):
        async with asyncio.TaskGroup() as group:
            for writer in range(WRITERS):
                group.create_task(self._write(writer))

    async def wait_for_writes(self, count):
        """Wait for this many more acknowledged writes."""
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            self._heard.clear()
            await self._heard.wait()

    def stop(self):
        self._stopped = True

    async def _write(self, writer):
        number = 0
        while not self._stopped:
            number += 1
            await self._create(PREFIX + b"%d/%06d" % (writer, number))

    async def _create(self, key):
        absent = Compare(key=key, target=Target.CREATE, operand=0)
        try:
            answer = await self._store.txn(Txn(compare=[absent], then=[Put(key=key, value=key)]))
        except KVError as error:
            self.failed[key] = error
            return
        assert answer.succeeded, f"{key} was there: the transaction was sent twice"
        self.acknowledged[key] = answer.revision
        self._heard.set()


async def follow(watch, last):
    """The changes that a watch delivers up to the revision that `last` will hold."""
    seen = []
    async for batch in watch:
        seen += [(event.kv.mod_revision, event.kv.key) for event in batch.events]
        if last.done() and batch.revision >= last.result():
            return seen
    raise AssertionError("the watch ended")


async def state(store):
    """Return the keys under the prefix as changes, oldest first. Each was written once: this is the whole history."""
    found = await store.range(Range(**UNDER_PREFIX))
    return found.revision, sorted((kv.mod_revision, kv.key) for kv in found.kvs)


async def test_killed_etcd_leader_loses_no_acknowledged_write(cluster, connect):
    load = Load(await connect(deadline=2.0))
    watches = [
        await (await connect(deadline=2.0)).watch(WatchRequest(**UNDER_PREFIX)) for _ in range(WATCHERS)
    ]
    last = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        following = [group.create_task(follow(watch, last)) for watch in watches]
        writing = group.create_task(load.run())
        await load.wait_for_writes(200)
        (await leader_of(cluster)).kill()
        await load.wait_for_writes(200)
        load.stop()
        await writing
        revision, history = await state(await connect())
        last.set_result(revision)
        for watch in watches:
            await watch.request_progress()
    kept = {key: created for created, key in history}
    assert {key: kept.get(key) for key in load.acknowledged} == load.acknowledged
    assert [key for key, error in load.failed.items() if key in kept and not error.outcome_unknown] == []
    for each in following:
        assert each.result() == history


async def test_watches_and_reads_leave_stopped_member(cluster, connect):
    store = await connect(deadline=1.5)
    watch = await store.watch(WatchRequest(**UNDER_PREFIX))
    written = [(await store.put(Put(key=PREFIX + b"before", value=b""))).revision]
    cluster.members[0].pause()  # the client connects to it first, and so does the watch
    written.append((await (await connect()).put(Put(key=PREFIX + b"after", value=b""))).revision)
    seen = []
    while len(seen) < len(written):  # both may come at once
        seen += [event.kv.mod_revision for event in (await next_item(watch)).events]
    assert seen == written
    assert len((await store.range(Range(**UNDER_PREFIX))).kvs) == len(written)


async def test_restarted_cluster_is_used_again(cluster, connect):
    store = await connect(deadline=1.0)
    watch = await store.watch(WatchRequest(**UNDER_PREFIX))
    alone, *others = cluster.members
    for member in others:
        member.kill()
    while "leader" in await status_of(alone):
        pass
    with pytest.raises(Unavailable):
        await store.put(Put(key=PREFIX + b"lost", value=b""))
    with pytest.raises(Unavailable):
        await store.range(Range(**UNDER_PREFIX))
    for member in others:
        member.spawn()
    for member in others:
        await asyncio.to_thread(member.wait_ready)
    patient = await connect(deadline=20.0)
    revision = (await patient.put(Put(key=PREFIX + b"again", value=b""))).revision
    seen = []
    while revision not in seen:
        seen += [event.kv.mod_revision for event in (await next_item(watch)).events]
    _, history = await state(patient)
    assert history == [(revision, PREFIX + b"again")]
    assert seen == [revision]
