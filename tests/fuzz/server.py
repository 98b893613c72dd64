"""A server in the fuzz's own event loop, without a socket, and the invariants of each response."""

import asyncio
import contextlib
import gc
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import orjson

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.storage.consistency import ConsistencyCheck
from mockube.client.wire import Request
from mockube.component_base.clock import RealClock
from mockube.embedded.direct import DirectTransport
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Range, prefix_end
from tests.fuzz.engine import Fault
from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.server.apiserver import TOKENS

_TESTS = Path(__file__).parent.parent
_NO_REQUEST_INFO = b"failed to create RequestInfo"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    @property
    def tree(self):
        return orjson.loads(self.body)

    @property
    def is_upstreams_own(self):
        """A Status 500 that our code raised on purpose, as kube-apiserver's does; docs/fidelity/protocol.md. An unexpected error
        says that it is a fault of the server. A path that ends with `/watch` is answered in plain text.
        """
        is_path = self.body.startswith(b'Internal Server Error: "/') and _NO_REQUEST_INFO in self.body
        return is_path or (b"Status" in self.body and b"a fault of the server" not in self.body)

    @property
    def outcome(self):
        """The status code and, of a refusal, its message."""
        if self.status < 400:
            return str(self.status)
        try:
            return f"{self.status}: {self.tree.get('message')}"
        except (ValueError, AttributeError):
            return str(self.status)


class _Errors(logging.Handler):
    """Records logged as errors, by any logger."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.records = []

    def emit(self, record):
        self.records.append(record)


class Server:
    def __init__(self, api_server, store, clock):
        self.api_server = api_server
        self.store = store
        self.clock = clock
        self.transport = DirectTransport(api_server.handler.handle, clock)
        self.errors = _Errors()
        self.longest_callback = 0.0
        """Seconds of CPU time of the server's longest callback since the case began."""

    async def send(self, method, target, body=b"", **headers):
        """Send one request; raise `Fault` if its response violates an invariant."""
        wanted = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        wanted |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(method=method, target=target, headers={}, body=body, timeout=60)
        got = await self.transport.send(request, wanted)
        answer = Answer(got.status, got.body)
        self.check_log()
        if answer.status == 500 and not answer.is_upstreams_own:
            raise Fault(answer.outcome)
        return answer

    def check_log(self):
        records, self.errors.records = self.errors.records, []
        for record in records:
            error = record.exc_info[1] if record.exc_info else None
            raise Fault(f"logged: {record.getMessage()}") from error

    async def check_cache(self):
        """Check that the watch cache equals the store."""
        found = {}

        def count(prefix, result):
            if result != "success":
                found[prefix] = result

        checked = ConsistencyCheck(
            self.store, self.api_server.registry.watch_cache, clock=self.clock, count=count
        )
        await checked.turn()
        if found:
            raise Fault(f"the watch cache is not what the store holds: {found}")


def _timed_callbacks(server):
    """Measure the longest callback of the server's tasks; callbacks of the fuzz itself are not counted."""
    original = asyncio.events.Handle._run

    def run(handle):
        begun = time.thread_time()
        original(handle)
        spent = time.thread_time() - begun
        if spent > server.longest_callback and not _is_of_the_fuzz(handle):
            server.longest_callback = spent

    asyncio.events.Handle._run = run
    stack = contextlib.ExitStack()
    stack.callback(setattr, asyncio.events.Handle, "_run", original)
    return stack


def _is_of_the_fuzz(handle):
    task = getattr(handle._callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return False
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and Path(code.co_filename).is_relative_to(_TESTS)


async def _keys(store):
    every = Range(key=b"/", range_end=prefix_end(b"/"), keys_only=True)
    return {kv.key for kv in (await store.range(every)).kvs}


async def _check_nothing_left(server, keys, tasks):
    """When every case has deleted its objects, the server is in its initial state."""
    left = {key for key in await _keys(server.store) - keys if not key.startswith(b"/registry/ranges/")}
    if left:
        raise Fault(f"keys are left when all objects were deleted\n{sorted(left)[:20]}")
    async with asyncio.timeout(WAIT_TIMEOUT):
        while len(asyncio.all_tasks()) > tasks or server.api_server.handler.watch_handler._streams:
            await server.clock.sleep(0.01)


@contextlib.asynccontextmanager
async def session(*, ends_empty=True):
    """A server with a namespace `default`; with `ends_empty`, every case deletes its objects."""
    clock = RealClock()
    store = MemoryStore(clock=clock)
    trust = Trust(tokens=TOKENS)
    async with ApiServer(
        store, ServerEnvironment(trust=trust, clock=clock, random=SeededRandom())
    ) as api_server:
        server = Server(api_server, store, clock)
        loop_times = _timed_callbacks(server)
        root, before = logging.getLogger(), logging.getLogger().handlers[:]
        root.handlers = [server.errors]
        try:
            answer = await server.send("POST", "/api/v1/namespaces", b'{"metadata":{"name":"default"}}')
            assert answer.status == 201
            keys, tasks = await _keys(store), len(asyncio.all_tasks())
            yield server
            if ends_empty:
                await _check_nothing_left(server, keys, tasks)
        finally:
            root.handlers = before
            loop_times.close()
            await server.transport.close()
    await store.close()
    gc.collect()


def path_of(row, *, namespace="default"):
    prefix = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
    return f"{prefix}/namespaces/{quote(namespace)}/{row.name}" if row.namespaced else f"{prefix}/{row.name}"
