"""The store at the start of a server: a new one may use a snapshot, a partially restored one is refused."""

from datetime import UTC, datetime

import pytest

from mockube.apiserver.config.settings import StorageOptions
from mockube.apiserver.store import REVISION_BUMP, STORE_FOLDER, initial_revision, open_store
from mockube.component_base.clock import SteppedClock
from mockube.etcd.archive.lines import IncompleteRestore, restore_marker_key
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Put, Range, WatchRequest
from tests.support.stores.archives import ROOT, entries, fill, saved

CONTENT = {b"pods/a": b'{"a":1}', b"pods/b": b'{"b":1}'}


@pytest.fixture
async def snapshot(tmp_path):
    """A snapshot file, and the revision at which it was taken."""
    source = MemoryStore(clock=SteppedClock())
    await fill(source, CONTENT | {b"leases/kube-system/leader": b"{}"})
    file = tmp_path / "a.gz"
    file.write_bytes(await saved(source))
    return file, (await source.status()).revision


@pytest.fixture(params=["memory", "durable"])
def data_dir(request, tmp_path):
    return tmp_path / "data" if request.param == "durable" else None


def first_revision(clock):
    return initial_revision(clock.now())


async def test_new_store_starts_with_snapshot_at_initial_revision(snapshot, data_dir):
    file, revision = snapshot
    clock = SteppedClock()
    async with open_store(StorageOptions(snapshot=file, data_dir=data_dir, fsync=False), clock) as kv:
        held = [line for line in entries(await saved(kv)) if b"leases/kube-system" not in line]
        assert len(held) == len(entries(await saved(kv))) == 2
        assert (await kv.range(Range(key=ROOT + b"pods/a"))).kvs[0].mod_revision == first_revision(clock) + 1
        with pytest.raises(Compacted):
            await kv.range(Range(key=ROOT, revision=revision))


async def test_snapshot_of_future_clock_is_below_new_store(tmp_path, data_dir):
    ahead = SteppedClock(datetime(2040, 1, 1, tzinfo=UTC))
    async with open_store(StorageOptions(), ahead) as kv:
        await fill(kv, CONTENT)
        revision = (await kv.status()).revision
        (tmp_path / "a.gz").write_bytes(await saved(kv))
    settings = StorageOptions(snapshot=tmp_path / "a.gz", data_dir=data_dir, fsync=False)
    async with open_store(settings, SteppedClock()) as kv:
        assert (await kv.status()).revision == revision + REVISION_BUMP + 1


async def test_new_empty_store_starts_compacted(data_dir):
    clock = SteppedClock()
    async with open_store(StorageOptions(data_dir=data_dir, fsync=False), clock) as kv:
        first = first_revision(clock)
        status = await kv.status()
        assert (status.revision, status.compact_revision) == (first, first)
        with pytest.raises(Compacted):
            await kv.range(Range(key=ROOT, revision=4_000))
        async with await kv.watch(WatchRequest(key=ROOT, start_revision=4_001)) as watch:
            with pytest.raises(Compacted):
                await anext(watch)
        assert (await kv.put(Put(key=ROOT + b"a", value=b"{}"))).revision == first + 1


async def test_durable_store_continues_its_revision(tmp_path):
    settings, clock = StorageOptions(data_dir=tmp_path, fsync=False), SteppedClock()
    for number in range(1, 4):
        async with open_store(settings, clock) as kv:
            put = await kv.put(Put(key=ROOT + b"a", value=b"{}"))
        assert put.revision == first_revision(SteppedClock()) + number
        clock.advance(3_600)


async def test_store_in_use_is_refused(snapshot, tmp_path, caplog):
    file, _ = snapshot
    settings = StorageOptions(snapshot=file, data_dir=tmp_path / "data", fsync=False)
    async with open_store(settings, SteppedClock()) as kv:
        await kv.put(Put(key=ROOT + b"pods/a", value=b"mine"))
    async with open_store(settings, SteppedClock()) as kv:
        assert (await kv.range(Range(key=ROOT + b"pods/a"))).kvs[0].value == b"mine"
    assert (
        "a.gz is ignored, because the store already contains objects: the store holds 2 objects"
        in caplog.text
    )


async def test_invalid_snapshot_is_refused_before_store_is_created(tmp_path):
    file = tmp_path / "a.gz"
    file.write_text("words")
    with pytest.raises(BadArchive, match=r"a\.gz is not a mockube snapshot"):
        async with open_store(StorageOptions(snapshot=file, data_dir=tmp_path / "data"), SteppedClock()):
            pass
    assert not (tmp_path / "data").exists()


async def test_partially_restored_store_is_refused(tmp_path):
    kv = await DurableStore.open(tmp_path / STORE_FOLDER, clock=SteppedClock(), disk=Disk(fsync=False))
    await kv.put(Put(key=restore_marker_key(ROOT), value=b"a.gz"))
    await kv.close()
    with pytest.raises(
        IncompleteRestore, match=r"the restore of a\.gz was interrupted: restore it again, with --replace"
    ):
        async with open_store(StorageOptions(data_dir=tmp_path, fsync=False), SteppedClock()):
            pass
