"""Thousands of hostile requests: the server answers each in time, does not fail, and retains no memory.

MOCKUBE_HOSTILE_REQUESTS is the number of requests, MOCKUBE_HOSTILE_SEED the seed.
"""

import asyncio
import ctypes
import gc
import gzip
import logging
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.config.settings import Auditing
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.hostile.hostile_requests import (
    CREDENTIALS,
    HostileRequest,
    HostileRequests,
    request_with_headers,
)
from tests.support.hostile.hostile_samples import NAMESPACE
from tests.support.server import raw_http
from tests.support.server.apiserver import ADMIN

REFUSED_TOKEN = '"Unable to authenticate the request"'
REQUESTS = int(os.environ.get("MOCKUBE_HOSTILE_REQUESTS", "2000"))
SEED = int(os.environ.get("MOCKUBE_HOSTILE_SEED", "1"))
MAX_CONCURRENT = 16
GROWTH = 256 << 20
"""Limit of the process's growth in bytes, for any number of requests: all caches are bounded."""
LATER_GROWTH = 24 << 20
"""Limit of the growth of what the C library has allocated, in bytes, during the second half of the requests."""
LATER_OBJECTS = 40
"""Limit of the growth in Python's memory blocks for each request of the second half. The store's history takes about 8."""
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

pytestmark = pytest.mark.timeout(120 + REQUESTS / 20)


@dataclass(frozen=True)
class AttackedServer:
    server: ApiServer
    address: tuple[str, int]

    async def send(self, hostile):
        async with asyncio.timeout(WAIT_TIMEOUT):
            return await raw_http.exchange(self.address, hostile.pieces, hangs_up=hostile.hangs_up)

    async def send_request(self, method, path, body=b"", *headers):
        return await self.send(
            HostileRequest((raw_http.request(method, path.encode(), [CREDENTIALS, *headers], body),))
        )

    async def wait_until_closed(self):
        """Wait until the server has closed all connections."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            server = self.server
            while server.handler.watch_handler._streams or server.http.connections:
                await self.server.registry.clock.sleep(0.01)


@pytest.fixture
async def attacked_server(tmp_path):
    clock = RealClock()
    store = MemoryStore(clock=clock)
    config = Config(auditing=Auditing(audit_log_path=tmp_path / "audit.log"))
    environment = ServerEnvironment(trust=Trust(tokens={"admin": ADMIN}), clock=clock, random=SeededRandom())
    async with ApiServer(store, environment, config) as server:
        runner = web.ServerRunner(server.http, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        attacked = AttackedServer(server, runner.addresses[0])
        answer = await attacked.send_request(
            b"POST", "/api/v1/namespaces", b'{"metadata":{"name":"%s"}}' % NAMESPACE.encode()
        )
        assert answer.status == 201
        yield attacked
        await runner.cleanup()
    await store.close()


class UnexpectedErrors(logging.Handler):
    """Keeps the errors of any logger, except for refused tokens, which upstream also logs as errors."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        if not record.getMessage().startswith(REFUSED_TOKEN):
            self.texts.append(self.format(record))


@contextmanager
def unexpected_errors():
    """Yield the text of each. The handlers of pytest would keep every record, in the memory that is measured."""
    root, handler = logging.getLogger(), UnexpectedErrors()
    handlers, root.handlers = root.handlers, [handler]
    try:
        yield handler.texts
    finally:
        root.handlers = handlers


def problem_of(hostile, answer):
    """Return the problem of a response, or "" if there is none."""
    if answer is None:
        return "no answer" if hostile.well_framed else ""
    if b"Traceback" in answer.body:
        return "a traceback"
    return "a fault of the server" if b"a fault of the server" in answer.body else ""


async def test_hostile_requests_leave_server_working(attacked_server):
    hostiles, complaints = HostileRequests(SEED), []

    async def send_some(numbers):
        for number in numbers:
            hostile = hostiles.next()
            try:
                problem = problem_of(hostile, await attacked_server.send(hostile))
            except TimeoutError:
                problem = f"no answer within {WAIT_TIMEOUT} s"
            if problem:
                complaints.append(f"{number}: {problem}: {hostile.pieces[0][:600]!r}")

    async def send_all(numbers):
        """Send the requests; return the memory that is allocated when their connections are closed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT):
                group.create_task(send_some(numbers))
        await attacked_server.wait_until_closed()
        gc.collect()
        return AllocatedMemory.now()

    tasks, memory = len(asyncio.all_tasks()), resident()
    with unexpected_errors() as errors:
        early = await send_all(iter(range(REQUESTS // 2)))
        late = await send_all(iter(range(REQUESTS // 2, REQUESTS)))
    problems = complaints + errors
    assert not problems, "\n".join(problems)
    assert len(asyncio.all_tasks()) <= tasks
    assert resident() - memory < GROWTH
    assert late.c_bytes - early.c_bytes < LATER_GROWTH
    assert late.python_blocks - early.python_blocks < LATER_OBJECTS * (REQUESTS // 2)
    assert (await attacked_server.send_request(b"GET", MAPS)).status == 200


class MallocInfo(ctypes.Structure):
    """The result of the C library's mallinfo2()."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


@dataclass(frozen=True)
class AllocatedMemory:
    """What this process has allocated. Unlike its resident memory, it does not depend on the fragments of earlier tests."""

    c_bytes: int
    """0 where the C library does not report it."""
    python_blocks: int

    @classmethod
    def now(cls):
        function = getattr(ctypes.CDLL(None), "mallinfo2", None)
        if function is None:
            return cls(0, sys.getallocatedblocks())
        function.restype = MallocInfo
        info = function()
        return cls(info.uordblks + info.hblkhd, sys.getallocatedblocks())


def resident():
    """Return the resident memory of this process in bytes; 0 where the system does not report it.

    The C library first returns its free memory to the system: the process does not use it, and the result varies less.
    """
    file = Path("/proc/self/statm")
    if not file.exists():
        return 0
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(file.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _post(body, *headers):
    return request_with_headers("POST", MAPS, body, *headers)


_TABLE = (b"Accept", b"application/json;as=Table;v=v1;g=meta.k8s.io")
_APPLY = (b"Content-Type", b"application/apply-patch+yaml")
_MERGE = (b"Content-Type", b"application/merge-patch+json")
_SOCKET = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))


@pytest.mark.parametrize(
    ("hostile", "status"),
    [
        pytest.param(_post(b"[" * 500_000, (b"Content-Type", b"application/yaml")), 400, id="yaml deeper than a stack"),
        pytest.param(_post(b"[" * 500_000), 400, id="json deeper than a stack"),
        pytest.param(_post(b'{"kind":{}}'), 400, id="a kind that is no text"),
        pytest.param(_post(b'{"apiVersion":[]}'), 400, id="a version that is no text"),
        pytest.param(request_with_headers("DELETE", f"{MAPS}/none", b'{"metadata":"x"}'), 404, id="options with metadata"),
        pytest.param(_post(b'{"data":{"a":%s}}' % (b"9" * 5000)), 400, id="a number of thousands of digits"),
        pytest.param(_post(gzip.compress(b"{}"), (b"Content-Encoding", b"gzip")), 400, id="a compressed body"),
        pytest.param(_post(b"{}", (b"User-Agent", b"\xff")), 422, id="a user agent that is no utf-8"),
        pytest.param(_post(b"{}", (b"Content-Type", b"\xff")), 415, id="a content type that is no utf-8"),
        pytest.param(request_with_headers("GET", MAPS, b"", (b"Authorization", b"Bearer \xff")), 401, id="a token that is no utf-8"),
        pytest.param(
            request_with_headers("PATCH", f"{MAPS}/a?fieldManager=m", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}', _APPLY),
            500,
            id="metadata that are a list",
        ),
        pytest.param(
            request_with_headers("PATCH", "/api/v1/namespaces/default", rb'{"apiVersion":{},"\ud800":1}', _MERGE),
            422,
            id="half a surrogate pair in the name of a field",
        ),
        pytest.param(
            _post(b'{"metadata":{"name":"a","finalizers":[%s]}}' % b",".join(b'"example.com/%d"' % n for n in range(100_000))),
            413,
            id="more than the store takes",
        ),
        pytest.param(request_with_headers("POST", f"{MAPS}?dryRun=All", b'{"metadata":{"name":"a"}}', _TABLE), 201, id="a table of a try"),
        pytest.param(request_with_headers("GET", f"{MAPS}?watch=1", b"", *_SOCKET), 400, id="a socket without a key"),
        pytest.param(request_with_headers("GET", f"{MAPS}?watch=1", b"", _SOCKET[0]), 200, id="a socket in half"),
        pytest.param(request_with_headers("GET", f"{MAPS}?limit={'9' * 5000}", b""), 400, id="a limit of thousands of digits"),
        pytest.param(request_with_headers("GET", f"{MAPS}?resourceVersion={'9' * 5000}", b""), 400, id="a version of thousands of digits"),
    ],
)  # fmt: skip
async def test_known_hostile_request_is_handled(attacked_server, hostile, status):
    with unexpected_errors() as errors:
        answer = await attacked_server.send(hostile)
    assert (answer.status, errors) == (status, [])


async def test_unfinished_headers_do_not_block_others(attacked_server):
    """Open a hundred incomplete requests, and send one complete request."""
    begun = [await asyncio.open_connection(*attacked_server.address) for _ in range(100)]
    for _, writer in begun:
        writer.write(b"GET / HTTP/1.1\r\nHost:")
        await writer.drain()
    assert (await attacked_server.send_request(b"GET", MAPS)).status == 200
    for _, writer in begun:
        writer.transport.abort()
    await attacked_server.wait_until_closed()


async def test_object_with_unusual_texts_can_be_read(attacked_server):
    assert (await attacked_server.send_request(b"POST", MAPS, b'{"metadata":{"name":"odd"}}')).status == 201
    patch = (
        rb'{"metadata":{"generateName":"\u0000\"\\","annotations":{"a":"\u0000"}},"data":{"a":"\u0000\"}"}}'
    )
    kind = (b"Content-Type", b"application/merge-patch+json")
    await attacked_server.send(request_with_headers("PATCH", f"{MAPS}/odd", patch, kind))
    assert (await attacked_server.send_request(b"GET", f"{MAPS}/odd")).status == 200
    assert (await attacked_server.send_request(b"GET", MAPS)).status == 200
