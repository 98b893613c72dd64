"""What a server begins with: a snapshot where its store is new, and never with a store that is half restored."""

import pytest

from apimachinery.clock import SteppedClock
from apiserver.config.settings import Store
from apiserver.storage.snapshots import BUMP
from apiserver.store import STORE_FOLDER, opened
from etcd.archive.mark import HalfRestored, mark_of
from etcd.archive.read import BadArchive
from etcd.embedded.disk import Disk
from etcd.embedded.durable import DurableStore
from etcd.embedded.memory import MemoryStore
from etcd.errors import Compacted
from etcd.kv import Put, Range
from tests.support.archives import ROOT, entries, fill, saved

CONTENT = {b"pods/a": b'{"a":1}', b"pods/b": b'{"b":1}'}


@pytest.fixture
async def snapshot(tmp_path):
    """A file, and at which revision it was taken."""
    source = MemoryStore(clock=SteppedClock())
    await fill(source, CONTENT | {b"leases/kube-system/leader": b"{}"})
    file = tmp_path / "a.gz"
    file.write_bytes(await saved(source))
    return file, (await source.status()).revision


@pytest.fixture(params=["memory", "durable"])
def data_dir(request, tmp_path):
    return tmp_path / "data" if request.param == "durable" else None


async def test_a_new_store_begins_with_a_snapshot_and_counts_on_far_behind_it(snapshot, data_dir):
    file, revision = snapshot
    async with opened(Store(snapshot=file, data_dir=data_dir, fsync=False), SteppedClock()) as kv:
        held = [line for line in entries(await saved(kv)) if b"leases/kube-system" not in line]
        assert len(held) == len(entries(await saved(kv))) == 2
        assert (await kv.range(Range(key=ROOT + b"pods/a"))).kvs[0].mod_revision == revision + BUMP + 1
        with pytest.raises(Compacted):
            await kv.range(Range(key=ROOT, revision=revision))


async def test_a_store_that_is_in_use_is_not_touched(snapshot, tmp_path, caplog):
    file, _ = snapshot
    settings = Store(snapshot=file, data_dir=tmp_path / "data", fsync=False)
    async with opened(settings, SteppedClock()) as kv:
        await kv.put(Put(key=ROOT + b"pods/a", value=b"mine"))
    async with opened(settings, SteppedClock()) as kv:
        assert (await kv.range(Range(key=ROOT + b"pods/a"))).kvs[0].value == b"mine"
    assert "a.gz is not used, for the store is not new: the store holds 2 objects" in caplog.text


async def test_a_file_that_is_no_snapshot_is_refused_before_a_store_is_begun(tmp_path):
    file = tmp_path / "a.gz"
    file.write_text("words")
    with pytest.raises(BadArchive, match=r"a\.gz is no snapshot"):
        async with opened(Store(snapshot=file, data_dir=tmp_path / "data"), SteppedClock()):
            pass
    assert not (tmp_path / "data").exists()


async def test_a_half_restored_store_is_refused(tmp_path):
    kv = await DurableStore.open(tmp_path / STORE_FOLDER, clock=SteppedClock(), disk=Disk(fsync=False))
    await kv.put(Put(key=mark_of(ROOT), value=b"a.gz"))
    await kv.close()
    with pytest.raises(HalfRestored, match=r"from a\.gz: restore it again, with --replace"):
        async with opened(Store(data_dir=tmp_path, fsync=False), SteppedClock()):
            pass
