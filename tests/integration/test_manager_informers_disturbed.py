"""Informers over a failing connection: the cache matches the server, and handlers receive each change once."""

import asyncio
import contextlib

import orjson
import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Key
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.controllers.informers import RecordedChanges, informers_of
from tests.support.controllers.manager_client import client_of
from tests.support.event_loop import until
from tests.support.instant_clock import InstantClock
from tests.support.processes.relay import running_relay
from tests.support.server.apiserver import running


def config_map(name, **data):
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


@contextlib.asynccontextmanager
async def informer_behind_relay(server):
    """A direct client, the relay, and an informer behind it with short retry delays."""
    async with (
        client_of(server.url) as direct,
        running_relay(server.url) as relay,
        client_of(relay.url) as client,
        informers_of(client, CONFIG_MAPS, clock=InstantClock()) as informers,
    ):
        yield direct, relay, informers.of(CONFIG_MAPS)


async def wait_until_synced(informer, client):
    """Wait until the cache holds what the server has."""
    listed = await client.list(CONFIG_MAPS)
    there = {meta.name(one): meta.resource_version(one) for one in listed.items}
    await until(
        lambda: {meta.name(one): meta.resource_version(one) for one in informer.lister.all()} == there
    )


@pytest.fixture
async def server():
    async with running() as server:
        yield server


async def test_informer_resumes_after_lost_connections(server):
    async with informer_behind_relay(server) as (direct, relay, informer):
        changes = RecordedChanges(informer)
        for name in "abcde":
            relay.cut()
            await direct.create(CONFIG_MAPS, config_map(name))
            await wait_until_synced(informer, direct)
    assert changes.words == ["+a", "+b", "+c", "+d", "+e"]


@pytest.mark.parametrize("count", [1, 700, 5000])
async def test_informer_resumes_after_connection_lost_within_a_line(server, count):
    async with informer_behind_relay(server) as (direct, relay, informer):
        changes = RecordedChanges(informer)
        relay.cut_after(count)
        await direct.create(CONFIG_MAPS, config_map("large", text="x" * 9000))
        await direct.create(CONFIG_MAPS, config_map("small"))
        await wait_until_synced(informer, direct)
    assert changes.words == ["+large", "+small"]


async def test_informer_reads_line_of_megabytes(server):
    async with informer_behind_relay(server) as (direct, _, informer):
        text = "x" * 900_000
        await direct.create(CONFIG_MAPS, config_map("large", text=text))
        await wait_until_synced(informer, direct)
        assert informer.lister.get("default", "large")["data"] == {"text": text}


async def test_informer_resumes_after_server_outage(server):
    async with informer_behind_relay(server) as (direct, relay, informer):
        await direct.create(CONFIG_MAPS, config_map("goes"))
        await direct.create(CONFIG_MAPS, config_map("stays"))
        await wait_until_synced(informer, direct)
        changes = RecordedChanges(informer)
        changes.words.clear()
        relay.refuse()
        await direct.delete(CONFIG_MAPS, Key("default", "goes"))
        await direct.create(CONFIG_MAPS, config_map("comes"))
        await relay.listen()
        await wait_until_synced(informer, direct)
    assert sorted(changes.words) == ["+comes", "-goes"]


async def test_informer_relists_from_server_with_other_history(server):
    """The server's revisions are lower, so the informer must not wait for an earlier revision."""
    async with (
        running() as other,
        client_of(other.url) as elsewhere,
        informer_behind_relay(server) as (direct, relay, informer),
    ):
        for name in ("only here", "there too"):
            created = await direct.create(CONFIG_MAPS, config_map(name.replace(" ", "-")))
        await wait_until_synced(informer, direct)
        before = informer.revision
        waits = informer.wait_for_revision(int(meta.resource_version(created)) + 1000)
        changes = RecordedChanges(informer)
        changes.words.clear()
        relay.refuse()
        await elsewhere.create(CONFIG_MAPS, config_map("there-too"))
        relay.set_target(other.url)
        await relay.listen()
        await wait_until_synced(informer, elsewhere)
        await waits
        assert informer.revision < before
    assert sorted(changes.words) == ["-only-here", "~there-too"]


async def test_informer_relists_after_expired_history():
    """The server is replaced by one with current objects only, and the connection is never refused."""
    store = MemoryStore(clock=RealClock())
    async with running(kv=store) as server, informer_behind_relay(server) as (direct, relay, informer):
        await direct.create(CONFIG_MAPS, config_map("goes"))
        await wait_until_synced(informer, direct)
        changes = RecordedChanges(informer)
        changes.words.clear()
        relay.withhold_answers()
        await direct.delete(CONFIG_MAPS, Key("default", "goes"))
        created = await direct.create(CONFIG_MAPS, config_map("comes"))
        await store.compact(int(meta.resource_version(created)))
        async with running(kv=store) as successor:
            relay.set_target(successor.url)
            relay.cut()
            await wait_until_synced(informer, direct)
            relay.refuse()  # the successor waits for its clients before it ends
    assert sorted(changes.words) == ["+comes", "-goes"]


async def store_with_maps(count):
    """A store that holds this many objects before the server starts."""
    store = MemoryStore(clock=RealClock())
    for number in range(count):
        metadata = {"name": f"before-{number}", "namespace": "default", "uid": f"uid-{number}"}
        tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
        await store.put(
            Put(key=f"/registry/configmaps/default/before-{number}".encode(), value=orjson.dumps(tree))
        )
    return store


@pytest.mark.slow
async def test_informer_follows_many_objects_and_changes():
    """Ten thousand objects, most of them created first, while connections are cut."""
    async with (
        running(kv=await store_with_maps(9_000)) as server,
        informer_behind_relay(server) as (direct, relay, informer),
    ):
        changes = RecordedChanges(informer)
        for turn in range(10):
            await asyncio.gather(
                *(direct.create(CONFIG_MAPS, config_map(f"after-{turn}-{n}")) for n in range(100))
            )
            relay.cut()
        await wait_until_synced(informer, direct)
    assert len(changes.words) == len(set(changes.words)) == 10_000
