"""Writes of a missing object that another client creates at the same time."""

import pytest

from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.server import apiserver
from tests.support.stores.wrapped import WrappedStore

RANGES = "/api/v1/namespaces/default/limitranges"


def limit_range(**labels):
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "x", "labels": labels}}


class OtherCreatesFirst(WrappedStore):
    """A store in which another client creates a LimitRange just before the first request does."""

    other_create = None

    async def txn(self, request):
        if any(isinstance(each, Put) and each.key.endswith(b"/default/x") for each in request.then):
            other_create, self.other_create = self.other_create, None
            if other_create is not None:
                await other_create()
        return await self.store.txn(request)


@pytest.fixture
async def client():
    store = OtherCreatesFirst(MemoryStore(clock=RealClock()))
    async with apiserver.running(kv=store) as client:

        async def other_create():
            created = await client.post(RANGES, limit_range(other="1"))
            assert created.status == 201

        store.other_create = other_create
        yield client


async def test_apply_merges_into_object_created_meanwhile(client):
    applied = await client.patch(f"{RANGES}/x?fieldManager=a", limit_range(mine="1"), kind="apply-patch+yaml")
    assert (applied.status, applied.body["metadata"]["labels"]) == (200, {"mine": "1", "other": "1"})


async def test_update_replaces_object_created_meanwhile(client):
    updated = await client.put(f"{RANGES}/x", limit_range(mine="1"))
    assert (updated.status, updated.body["metadata"]["labels"]) == (200, {"mine": "1"})


async def test_create_conflicts_with_object_created_meanwhile(client):
    created = await client.post(RANGES, limit_range(mine="1"))
    assert (created.status, created.body["reason"]) == (409, "AlreadyExists")
