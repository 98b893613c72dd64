"""How often a request reads the store, which is a round trip where that is etcd."""

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.etcd.embedded.memory import MemoryStore
from tests.support.server import apiserver

ROLES = "/apis/rbac.authorization.k8s.io/v1"


class CountingStore(MemoryStore):
    """Counts how often its revision is read."""

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
