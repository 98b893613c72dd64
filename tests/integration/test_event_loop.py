"""No request blocks the event loop: expensive requests run while every callback is measured.

CPU time of the loop's thread is measured, so that other load does not matter; `make hostile` also measures
the latency for another client. Bodies have the size that a server accepts only if MOCKUBE_FULL_SIZE is set.
"""

import asyncio
import contextlib
import gc
import http.client
import inspect
import os

import orjson
import pytest
from aiohttp import web

from benchmarks.hostile_requests import MAPS, Request, objects_before, table
from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.component_base import interpreter_memory
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put
from tests.support.hostile.loop_time import measuring_callbacks
from tests.support.hostile.machine_speed import allowed
from tests.support.server.apiserver import ADMIN
from tests.support.stores.archives import TAKEN_AT, saved

FULL_SIZE = bool(os.environ.get("MOCKUBE_FULL_SIZE"))
SIZE = (3 << 20) - 4096 if FULL_SIZE else 128 << 10
OBJECTS, KINDS = 1_000, 30
RESTORED = 100_000 if FULL_SIZE else 40_000
"""Objects of a snapshot."""
BOUND = 0.15
"""Seconds of CPU time that one callback may take."""
MAX_GAP = 0.3 if FULL_SIZE else BOUND
"""Seconds of CPU time of the process, which contains the client, between two beats of the loop."""
WAIT_TIMEOUT = 60.0
QUIET = 0.5
"""Seconds without a byte after which a stream has sent what it had to."""

REQUESTS = table(SIZE)


def send(address, request):
    """Any response is accepted except a server error."""
    connection = http.client.HTTPConnection(*address, timeout=WAIT_TIMEOUT)
    headers = {
        "Authorization": "Bearer admin",
        "Content-Type": request.content_type,
        "Accept": request.accept,
        **request.headers,
    }
    with contextlib.closing(connection):
        connection.request(request.method, request.path, request.body or None, headers)
        if not request.watch:
            answer = connection.getresponse()
            return answer.status, answer.read()
        assert connection.sock is not None
        connection.sock.settimeout(QUIET)
        with contextlib.suppress(OSError):
            answer = connection.getresponse()
            left = request.watch
            while left > 0 and (data := answer.read1(1 << 16)):
                left -= len(data)
        return 200, b""


def fill(address):
    connection = http.client.HTTPConnection(*address, timeout=WAIT_TIMEOUT)
    with contextlib.closing(connection):
        for path, body in objects_before(OBJECTS, SIZE, KINDS):
            connection.request("POST", path, body, {"Authorization": "Bearer admin"})
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status in (201, 409), data


async def snapshot():
    """Return a store file with many objects."""
    store = MemoryStore(clock=RealClock())
    for number in range(RESTORED):
        name = f"restored-{number}"
        tree = {
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "default", "uid": f"u{number}", "creationTimestamp": TAKEN_AT},
            "data": {"a": "b" * 300},
        }  # fmt: skip
        await store.put(Put(key=f"/registry/configmaps/default/{name}".encode(), value=orjson.dumps(tree)))
    data = await saved(store)
    await store.close()
    return data


@pytest.fixture(scope="module")
def measure_request():
    """A function that sends a request to a server with many objects; returns the status and the longest callback."""
    with serving(lambda clock: MemoryStore(clock=clock)) as measure:
        yield measure


@contextlib.contextmanager
def serving(open_store):
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()  # as a server does, so that objects of the tests are not collected
    gc.set_threshold(*interpreter_memory.THRESHOLD)
    with asyncio.Runner() as runner, measuring_callbacks() as slices:
        stack = contextlib.AsyncExitStack()

        async def start():
            clock = RealClock()
            store = open_store(clock)
            if inspect.isawaitable(store):
                store = await store
            stack.push_async_callback(store.close)
            server = await stack.enter_async_context(
                ApiServer(
                    store,
                    ServerEnvironment(
                        trust=Trust(tokens={"admin": ADMIN}), clock=clock, random=SeededRandom()
                    ),
                )
            )
            serving = web.ServerRunner(server.http, access_log=None)
            await serving.setup()
            stack.push_async_callback(serving.cleanup)
            await web.TCPSite(serving, "127.0.0.1", 0).start()
            address = serving.addresses[0][:2]
            await asyncio.to_thread(fill, address)
            return address

        address = runner.run(start())
        slices.beat(runner.get_loop())

        def measure(request):
            slices.reset()
            status, data = runner.run(asyncio.to_thread(send, address, request))
            return status, data, slices

        yield measure
        runner.run(stack.aclose())
    gc.set_threshold(*thresholds)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", REQUESTS)
def test_no_callback_blocks_event_loop(measure_request, name, monkeypatch):
    monkeypatch.setattr(http.client, "_MAXHEADERS", 10_000)
    status, data, slices = measure_request(REQUESTS[name])
    assert b"a fault of the server" not in data
    assert status != 504, "the request took too long"
    assert slices.max_seconds < allowed(BOUND), f"{slices.max_seconds * 1000:.0f} ms in {slices.name}"
    assert slices.max_gap < allowed(MAX_GAP), f"{slices.max_gap * 1000:.0f} ms between two beats"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("backend", ["memory", "durable"])
def test_no_callback_of_restore_blocks_event_loop(backend, tmp_path):
    with asyncio.Runner() as runner:
        data = runner.run(snapshot())

    def open_store(clock):
        if backend == "memory":
            return MemoryStore(clock=clock)
        return DurableStore.open(tmp_path / "data", clock=clock, disk=Disk(fsync=False))

    with serving(open_store) as measure:
        request = Request("PUT", "/mockube/snapshot?replace=true", data, "application/gzip")
        status, answer, slices = measure(request)
        assert (status, orjson.loads(answer)["objects"]) == (200, RESTORED)
        assert slices.max_seconds < allowed(BOUND), f"{slices.max_seconds * 1000:.0f} ms in {slices.name}"


def test_long_callback_is_measured():
    with asyncio.Runner() as runner, measuring_callbacks() as slices:

        async def count():
            sum(range(1_000_000))

        runner.run(count())
    assert slices.max_seconds > 0.002


def test_long_call_in_other_thread_is_measured():
    """The call does not release the interpreter's lock."""
    with asyncio.Runner() as runner, measuring_callbacks() as slices:
        slices.beat(runner.get_loop())
        runner.run(asyncio.to_thread(b"".join, [b"a"] * 5_000_000))
    assert slices.max_seconds < slices.max_gap > 0.01


def test_table_covers_every_verb():
    methods = {request.method for request in REQUESTS.values()}
    assert methods == {"GET", "POST", "PUT", "PATCH", "DELETE"}
    assert Request("DELETE", MAPS) in REQUESTS.values()
