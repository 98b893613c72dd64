"""Power loss at any fsync: acknowledged writes are recovered, and partial writes are not reported as damage."""

import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.disk import remove_unfinished
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.recovery import Recovery
from mockube.etcd.embedded.segment import segment_paths
from mockube.etcd.embedded.snapshot import snapshot_paths
from mockube.etcd.kv import Delete
from tests.support.seeded import source
from tests.support.stores.durable import outcome, put
from tests.support.stores.power import LossyDisk

WRITERS = 6


async def write(store, writer, acknowledged):
    for n in range(60):
        key = b"%d/%d" % (writer, n)
        acknowledged[key] = (await store.put(put(key, key * 100))).revision
        if n >= 4:
            ended = b"%d/%d" % (writer, n - 4)
            del acknowledged[ended]  # from here on the write may be present or not
            await store.delete(Delete(key=ended))
        if n % 12 == 11:
            await outcome(store.compact((await store.status()).revision - 2 * WRITERS * (writer + 1)))


@pytest.mark.parametrize("seed", range(3))
async def test_acknowledged_writes_survive_power_loss(tmp_path, seed):
    acknowledged, random = {}, source("power", seed)
    directory = tmp_path / "data"
    disk = LossyDisk(directory, random, acknowledged)
    store = await DurableStore.open(directory, clock=SteppedClock(), disk=disk, segment_bytes=8_000)
    await asyncio.gather(*(write(store, writer, acknowledged) for writer in range(WRITERS)))
    await store.close()
    assert segment_paths(directory)[0].stem > "00000001"
    assert len(disk.losses) > 100
    for number, loss in enumerate(disk.losses):
        recovered = tmp_path / str(number)
        recovered.mkdir()
        loss.restore(recovered)
        remove_unfinished(recovered)
        recovery = Recovery(recovered)
        recovery.run()
        assert {
            key: kv and kv.mod_revision for key in loss.acknowledged for kv in [recovery.core.get(key)]
        } == loss.acknowledged
    assert any(snapshot_paths(tmp_path / str(number)) for number in range(len(disk.losses)))
