"""Stores on a directory of their own, on a clock that stands still."""

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from tests.support.stores.disks import HeldDisk


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def opened(tmp_path, clock):
    """Opens stores on one directory, and closes those that a test left open."""
    stores = []

    async def opened(path=tmp_path, **options):
        store = await DurableStore.open(path, clock=clock, **options)
        stores.append((store, options.get("disk")))
        return store

    yield opened
    for store, disk in stores:
        if isinstance(disk, HeldDisk):
            disk.release()
        await store.close()
