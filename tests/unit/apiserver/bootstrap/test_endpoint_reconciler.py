"""The endpoints of the Service `kubernetes` are exactly the running servers of the store."""

import asyncio

import pytest

from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.bootstrap.cluster import ServerProperties, cluster_objects
from mockube.apiserver.bootstrap.endpoint_reconciler import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    LEASE_SECONDS,
    EndpointReconciler,
)
from mockube.apiserver.bootstrap.ensure import ensure
from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Delete
from tests.support.event_loop import yield_to_loop

FACTS = ServerProperties(
    port=6443, service_ranges=("10.0.0.0/16",), client_ca=b"ca", now="2030-01-01T00:00:00Z"
)
FIRST, SECOND = "192.0.2.7", "192.0.2.8"


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def server(clock):
    store = MemoryStore(clock=clock)
    async with ApiServer(store, ServerEnvironment(trust=Trust(tokens={}), clock=clock)) as server:
        await ensure(server.registry, server.catalog.rows.__getitem__, cluster_objects(FACTS, GROUPS))
        yield server
    await store.close()


@pytest.fixture
def reconciler_of(server):
    return lambda address, port=6443: EndpointReconciler(
        server.registry, server.catalog.rows.__getitem__, address=address, port=port
    )


async def read(server, resource):
    return (await server.registry.get(server.catalog.rows[resource], "default", "kubernetes")).tree()


async def addresses(server):
    """Return the addresses of the Endpoints; those of the EndpointSlice must be equal."""
    subsets = (await read(server, ENDPOINTS)).get("subsets") or []
    found = [address["ip"] for subset in subsets for address in subset["addresses"]]
    endpoints = (await read(server, ENDPOINT_SLICES))["endpoints"] or []
    assert [address for one in endpoints for address in one["addresses"]] == found
    return found


async def test_one_server_writes_endpoints_and_slice(server, reconciler_of):
    await reconciler_of(FIRST).reconcile()
    assert await addresses(server) == [FIRST]
    subset, endpoint_slice = (
        (await read(server, ENDPOINTS))["subsets"][0],
        await read(server, ENDPOINT_SLICES),
    )
    assert subset["ports"] == [{"name": "https", "port": 6443, "protocol": "TCP"}]
    assert (endpoint_slice["addressType"], endpoint_slice["ports"][0]["port"]) == ("IPv4", 6443)


async def test_endpoints_list_all_servers_of_store(server, reconciler_of):
    first, second = reconciler_of(FIRST), reconciler_of(SECOND)
    await first.reconcile()
    await second.reconcile()
    assert await addresses(server) == [FIRST, SECOND]
    written = [await read(server, ENDPOINTS), await read(server, ENDPOINT_SLICES)]
    await first.reconcile()
    await second.reconcile()
    assert [await read(server, ENDPOINTS), await read(server, ENDPOINT_SLICES)] == written


async def test_stopped_server_is_removed_from_endpoints(server, reconciler_of):
    first, second = reconciler_of(FIRST), reconciler_of(SECOND)
    await first.reconcile()
    await second.reconcile()
    await asyncio.gather(first.remove(), first.reconcile())
    assert await addresses(server) == [SECOND]
    await first.reconcile()
    await second.remove()
    assert await addresses(server) == []


async def test_removal_of_a_server_has_an_author(server, reconciler_of, clock):
    reconciler, store = reconciler_of(FIRST), server.registry.kv
    await reconciler.reconcile()
    before = (await store.status()).revision
    await reconciler.remove()
    clock.advance(2 * LEASE_SECONDS)  # the lease, which has no keys any more, expires without a revision
    await yield_to_loop()
    revisions = range(before + 1, (await store.status()).revision + 1)
    authors = [server.registry.journal.author(revision) for revision in revisions]
    assert (authors[0].user, authors[0].verb) == ("system:apiserver", "delete")
    assert None not in authors


async def test_killed_server_is_removed_after_lease_expires(server, reconciler_of, clock):
    first, second = reconciler_of(FIRST), reconciler_of(SECOND)
    await first.reconcile()
    for _ in range(3):
        await second.reconcile()
        clock.advance(LEASE_SECONDS / 2)
        await yield_to_loop()
    await second.reconcile()
    assert await addresses(server) == [SECOND]
    await first.reconcile()
    assert await addresses(server) == [FIRST, SECOND]


@pytest.mark.parametrize("what", ["lease", "key"])
async def test_lost_lease_or_key_is_rewritten(server, reconciler_of, what):
    first, kv = reconciler_of(FIRST), server.registry.kv
    await first.reconcile()
    if what == "lease":
        for lease in await kv.leases():
            await kv.revoke(lease)
    else:
        await kv.delete(Delete(key=b"/registry/masterleases/192.0.2.7"))
    await first.reconcile()
    assert await addresses(server) == [FIRST]


async def test_changed_port_replaces_endpoints(server, reconciler_of):
    await reconciler_of(FIRST).reconcile()
    await reconciler_of(FIRST, 7443).reconcile()
    assert (await read(server, ENDPOINTS))["subsets"][0]["ports"][0]["port"] == 7443


async def test_deleted_or_changed_endpoints_are_restored(server, reconciler_of):
    first = reconciler_of(FIRST)
    await first.reconcile()
    key = b"/registry/services/endpoints/default/kubernetes"
    await server.registry.kv.delete(Delete(key=key))
    await first.reconcile()
    assert await addresses(server) == [FIRST]
