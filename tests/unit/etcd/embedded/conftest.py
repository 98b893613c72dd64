"""Fixtures of stores in a temporary directory, with a clock that the test steps."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.durable import DurableStore
from tests.support.stores.disks import HeldDisk


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def open_durable(tmp_path, clock):
    """Return a function that opens stores in one directory; stores still open are closed after the test."""
    stores = []

    async def open_durable(path=tmp_path, **options):
        store = await DurableStore.open(path, clock=clock, **options)
        stores.append((store, options.get("disk")))
        return store

    yield open_durable
    for store, disk in stores:
        if isinstance(disk, HeldDisk):
            disk.release()
        await store.close()
