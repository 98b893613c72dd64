"""The etcd client when the server refuses, disappears, returns, stops, or sends large responses."""

import asyncio
from pathlib import Path

import pytest

from mockube.apiserver.config.settings import StorageOptions
from mockube.apiserver.store import etcd_context
from mockube.component_base.clock import RealClock
from mockube.etcd.errors import (
    Interrupted,
    NoSpace,
    PermissionDenied,
    Timeout,
    Unavailable,
    Unsupported,
)
from mockube.etcd.kv import Put, Range, Txn, WatchRequest, prefix_end
from mockube.etcd.remote.store import RemoteStore
from mockube.etcd.remote.transport import EtcdCredentials
from tests.support.event_loop import next_item
from tests.support.stores.etcd_accounts import ROOT, USER, require_login
from tests.support.stores.etcd_certificates import ELSEWHERE, Authority
from tests.support.stores.etcd_server import QUICK, EtcdServer, free_port

pytestmark = pytest.mark.etcd

PREFIX = b"p/"
UNDER_PREFIX = {"key": PREFIX, "range_end": prefix_end(PREFIX)}


@pytest.fixture
async def connect():
    """Connects stores, and closes them at the end."""
    opened = []

    async def connect(*endpoints, **options):
        opened.append(await RemoteStore.connect(endpoints, clock=RealClock(), **options))
        return opened[-1]

    yield connect
    for store in opened:
        await store.close()


async def put(store, key, value=b"v"):
    return (await store.put(Put(key=PREFIX + key, value=value))).revision


async def read(store):
    """Every key under the prefix, with its value."""
    return {kv.key: kv.value for kv in (await store.range(Range(**UNDER_PREFIX))).kvs}


async def collect(watch, count):
    """Return the next events, as revisions and keys."""
    events = []
    while len(events) < count:
        events += (await next_item(watch)).events
    return [(event.kv.mod_revision, event.kv.key.removeprefix(PREFIX)) for event in events]


async def restart(server):
    """Restart the server while the client runs, so that the client gets the end of its connections."""
    server.kill()
    server.spawn()
    await asyncio.to_thread(server.wait_ready)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls")).certificates()


@pytest.fixture(scope="module")
def tls_server(certificates):
    with EtcdServer(tls=certificates, options=QUICK) as server:
        yield server


def client_of(certificates):
    return context_of(certificates.ca, certificates.client_cert, certificates.client_key)


def context_of(*paths):
    names = ("etcd_cafile", "etcd_certfile", "etcd_keyfile")
    return etcd_context(StorageOptions(**dict(zip(names, map(Path, paths), strict=False))))


class TestTLS:
    async def test_requests_and_watches_work(self, connect, tls_server, certificates):
        store = await connect(tls_server.url, tls=client_of(certificates))
        watch = await store.watch(WatchRequest(**UNDER_PREFIX))
        revision = await put(store, b"a")
        assert await collect(watch, 1) == [(revision, b"a")]
        await watch.request_progress()
        assert (await next_item(watch)).revision == revision

    async def test_client_without_certificate_is_refused(self, connect, tls_server, certificates):
        with pytest.raises((Unavailable, Interrupted)):
            await connect(tls_server.url, tls=context_of(certificates.ca))

    async def test_server_of_other_ca_is_not_trusted(self, connect, tls_server, tmp_path):
        with pytest.raises(Unavailable, match="certificate signed by unknown authority"):
            await connect(tls_server.url, tls=context_of(Authority(tmp_path).ca))

    async def test_server_with_other_name_is_not_trusted(self, connect, tmp_path):
        certificates = Authority(tmp_path).certificates(server_name=ELSEWHERE)
        with (
            EtcdServer(tls=certificates, options=QUICK) as server,
            pytest.raises(
                Unavailable, match=r"certificate is valid for .*, not 127.0.0.1|doesn't contain any IP SANs"
            ),
        ):
            await connect(server.url, tls=client_of(certificates))


class TestLogin:
    @pytest.fixture
    async def server(self, durable_etcd):
        await require_login(durable_etcd.url, PREFIX)
        return durable_etcd

    async def test_user_is_limited_to_granted_keys(self, connect, server):
        store = await connect(server.url, credentials=USER)
        await put(store, b"a")
        assert await read(store) == {PREFIX + b"a": b"v"}
        for refused in (
            store.put(Put(key=b"q", value=b"")),
            store.range(Range(key=b"q")),
            store.watch(WatchRequest(key=b"q", start_revision=1)),
        ):
            with pytest.raises(PermissionDenied):
                await refused

    @pytest.mark.parametrize(
        "credentials",
        [
            pytest.param(EtcdCredentials(user=USER.user, password="guessed"), id="a wrong password"),
            pytest.param(EtcdCredentials(user="nobody", password=""), id="no such user"),
        ],
    )
    async def test_invalid_credentials_are_refused(self, connect, server, credentials):
        with pytest.raises(PermissionDenied):
            await connect(server.url, credentials=credentials)

    async def test_unauthenticated_client_is_refused(self, connect, server):
        store = await connect(server.url)
        with pytest.raises(PermissionDenied):
            await put(store, b"a")

    async def test_invalidated_token_is_replaced(self, connect, server):
        store = await connect(server.url, credentials=ROOT)
        watch = await store.watch(WatchRequest(**UNDER_PREFIX))
        before = await put(store, b"before")
        assert await collect(watch, 1) == [(before, b"before")]
        await restart(server)
        after = await put(store, b"after")
        assert await collect(watch, 1) == [(after, b"after")]

    async def test_progress_is_periodic_and_not_on_request(self, connect, server):
        store = await connect(server.url, credentials=USER)
        watch = await store.watch(WatchRequest(**UNDER_PREFIX, progress=True))
        with pytest.raises(Unsupported):
            await watch.request_progress()
        revision = await put(await connect(server.url, credentials=USER), b"a")
        assert await collect(watch, 1) == [(revision, b"a")]
        notified = await next_item(watch)
        assert (notified.revision, list(notified.events)) == (revision, [])


class TestEndpoints:
    async def test_unreachable_endpoint_is_skipped(self, connect, etcd_url):
        store = await connect(f"http://127.0.0.1:{free_port()}", etcd_url)
        watch = await store.watch(WatchRequest(**UNDER_PREFIX))
        revision = await put(store, b"a")
        assert await collect(watch, 1) == [(revision, b"a")]

    async def test_unreachable_endpoints_make_store_unavailable(self, connect):
        with pytest.raises(Unavailable):
            await connect(f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}", deadline=0.2)


async def test_watch_continues_after_server_restart(connect, durable_etcd):
    store = await connect(durable_etcd.url)
    watch = await store.watch(WatchRequest(**UNDER_PREFIX))
    wanted, seen = [], []
    for life in range(3):
        # Some changes were delivered when the server dies, and some were not.
        wanted += [(await put(store, key), key) for key in (b"%d-%d" % (life, n) for n in range(20))]
        seen += await collect(watch, len(wanted) - len(seen) - 10)
        await restart(durable_etcd)
    seen += await collect(watch, len(wanted) - len(seen))
    assert seen == wanted
    await watch.request_progress()
    last = await next_item(watch)
    assert (last.revision, list(last.events)) == (wanted[-1][0], [])


async def test_stopped_server_leaves_unknown_outcome_of_write(connect, fresh_etcd):
    store = await connect(fresh_etcd.url, deadline=0.5)
    await put(store, b"known")
    fresh_etcd.pause()
    with pytest.raises(Timeout) as write:
        await put(store, b"unknown")
    assert write.value.outcome_unknown
    with pytest.raises(Timeout):
        await read(store)
    fresh_etcd.resume()
    patient = await connect(fresh_etcd.url)
    assert PREFIX + b"known" in await read(patient)


async def test_large_revision_is_delivered_whole(connect, etcd_url):
    """With previous values two changes of 0.7 MB make four values, which etcd sends in fragments of 1.5 MB."""
    store = await connect(etcd_url)
    keys = [PREFIX + b"a", PREFIX + b"b"]
    revisions = []
    for fill in (b"x", b"y", b"z"):
        puts = [Put(key=key, value=fill * 700_000) for key in keys]
        revisions.append((await store.txn(Txn(then=puts))).revision)
    watch = await store.watch(WatchRequest(**UNDER_PREFIX, start_revision=revisions[0], previous=True))
    batches = []
    while not batches or batches[-1].revision < revisions[-1]:
        batches.append(await next_item(watch))
    per_batch = [{event.kv.mod_revision for event in batch.events} for batch in batches]
    assert sum(len(each) for each in per_batch) == len(revisions)
    events = [event for batch in batches for event in batch.events]
    assert [(event.kv.mod_revision, event.kv.key) for event in events] == [
        (revision, key) for revision in revisions for key in keys
    ]
    assert events[-1].previous is not None
    assert events[-1].previous.value == b"y" * 700_000


async def put_without_end(store):
    while True:
        await put(store, b"a", b"x" * 100_000)


async def test_full_server_refuses_writes_and_serves_reads(connect):
    with EtcdServer(options=[*QUICK, "--quota-backend-bytes=1000000"]) as server:
        store = await connect(server.url)
        with pytest.raises(NoSpace):
            await put_without_end(store)
        assert list(await read(store)) == [PREFIX + b"a"]
