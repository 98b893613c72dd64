"""A client that has versions of an earlier store gets upstream's errors from a server with a new store."""

import asyncio

import pytest

from mockube.apiserver.config.settings import StorageOptions
from mockube.apiserver.storage.continue_token import ContinueToken, encode
from mockube.apiserver.store import open_store
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until
from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"
OLD = 4_000
"""The last version that the client received from the earlier store."""


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def client(clock):
    async with open_store(StorageOptions(), clock) as kv, apiserver.running(clock=clock, kv=kv) as client:
        yield client


async def current(client):
    return int((await client.get(MAPS)).body["metadata"]["resourceVersion"])


@pytest.mark.parametrize("bookmarks", ["false", "true"])
async def test_watch_from_former_store_is_expired(client, clock, bookmarks):
    begun = int(clock.now().timestamp()) * 1_000_000
    query = f"watch=1&resourceVersion={OLD}&allowWatchBookmarks={bookmarks}"
    async with client.watch(f"{MAPS}?{query}") as events:
        (event,) = [event async for event in events]
    assert event["type"] == "ERROR"
    assert event["object"] == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"too old resource version: {OLD} ({begun})",
        "reason": "Expired",
        "code": 410,
    }


async def test_not_older_than_former_revision_is_served(client):
    for query in (f"resourceVersion={OLD}", f"resourceVersion={OLD}&resourceVersionMatch=NotOlderThan"):
        answer = await client.get(f"{MAPS}?{query}")
        assert answer.status == 200
        assert int(answer.body["metadata"]["resourceVersion"]) > OLD
    query = f"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={OLD}"
    await client.post(MAPS, {"metadata": {"name": "a"}})
    async with client.watch(f"{MAPS}?{query}&allowWatchBookmarks=true") as events:
        assert [(await anext(events))["type"] for _ in range(2)] == ["ADDED", "BOOKMARK"]


async def test_exact_former_revision_is_expired(client):
    answer = await client.get(f"{MAPS}?resourceVersion={OLD}&resourceVersionMatch=Exact")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    assert answer.body["message"] == "The resourceVersion for the provided list is too old."


async def test_former_continue_token_expires_with_inconsistent_token(client):
    for name in ("a", "b"):
        await client.post(MAPS, {"metadata": {"name": name}})
    answer = await client.get(f"{MAPS}?limit=1&continue={encode(ContinueToken(OLD, 'b'))}")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    rest = await client.get(f"{MAPS}?limit=1&continue={answer.body['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest.body["items"]] == ["b"]


@pytest.mark.parametrize("path", [MAPS, "/api/v1/namespaces/default"])
async def test_future_revision_is_awaited_then_refused(client, clock, path):
    future = await current(client) + 1_000
    asked = asyncio.create_task(client.get(f"{path}?resourceVersion={future}"))
    await until(lambda: asked.done() or clock.advance(0.01))
    answer = await asked
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["message"].startswith(f"Timeout: Too large resource version: {future}, current: ")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_watch_from_future_revision_waits(client):
    begun = await current(client)
    async with client.watch(f"{MAPS}?watch=1&resourceVersion={begun + 2}") as events:
        for name in ("first", "second", "third"):
            await client.post(MAPS, {"metadata": {"name": name}})
        assert (await anext(events))["object"]["metadata"]["name"] == "third"


async def test_update_with_former_resource_version_conflicts(client):
    created = (await client.post(MAPS, {"metadata": {"name": "a"}})).body
    created["metadata"]["resourceVersion"] = str(OLD)
    assert (await client.put(f"{MAPS}/a", created)).status == 409
