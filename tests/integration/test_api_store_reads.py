"""The number of store reads per request; each is a round trip with etcd."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.server import apiserver

ROLES = "/apis/rbac.authorization.k8s.io/v1"


class CountingStore(MemoryStore):
    """Counts reads of the store's revision."""

    reads = 0

    async def status(self):
        self.reads += 1
        return await super().status()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/namespaces/default/configmaps", {}),
        (f"{ROLES}/namespaces/default/roles", {"rules": []}),
        (f"{ROLES}/clusterroles", {"rules": []}),
    ],
)
async def test_create_reads_store_revision_once(path, body):
    clock = SteppedClock()
    store = CountingStore(clock=clock)
    async with apiserver.running(clock=clock, kv=store) as client:
        before = store.reads
        created = await client.post(path, {"metadata": {"name": "x"}, **body}, Authorization="Bearer alice")
        assert (created.status, store.reads - before) == (201, 1)
