"""Disturbances of a manager's requests and watches, and a transport that applies one.

The transport calls a disturbance before each write is sent and before its response is returned, when a watch
starts, and for each chunk of a watch. It may return a response in the server's place, raise an error, or wait.
"""

import asyncio
import contextlib
from functools import partial
from itertools import count

from mockube.client.wire import OutcomeUnknown
from tests.support.stores.scripted_transport import problem

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
FORGOTTEN = problem(410, "Expired", "too old resource version")

BROKEN = problem(500, "InternalError", "for a change")


class Disturbance:
    """No disturbance."""

    is_dead = False
    """Whether a new process is to replace the process."""
    transport = None
    """The transport that applies the disturbance, once there is one."""

    def before_read(self, request):
        """Return a response in place of a read, or None to pass the read on."""

    async def before_write(self, request):
        """Return a response in the server's place, or None to pass the write on."""

    async def after_write(self, request):
        """Called after the server has carried out the write."""

    def before_watch(self, request):
        """Return a response in place of a watch, or None to pass it on."""

    async def before_chunk(self, request):
        """Called before a chunk of a watch is delivered."""


class RefuseWrites(Disturbance):
    """Every n-th write returns an error, and is not carried out."""

    def __init__(self, every, status, reason, *, retry_after=None):
        self._every = every
        self._answer = problem(status, reason, "for a change")._replace(retry_after=retry_after)
        self._count = count(1)

    async def before_write(self, _):
        return None if next(self._count) % self._every else self._answer


class FailReads(Disturbance):
    """Every n-th read returns an error, also a watch. It ends, because some work retries a hundred times."""

    def __init__(self, every, *, maximum):
        self._every = every
        self._left = maximum
        self._count = count(1)

    def before_read(self, _):
        if self._left == 0 or next(self._count) % self._every:
            return None
        self._left -= 1
        return BROKEN

    before_watch = before_read


class LoseResponses(Disturbance):
    """Every n-th write is carried out, but its response is lost."""

    def __init__(self, every):
        self._every = every
        self._count = count(1)

    async def after_write(self, request):
        if next(self._count) % self._every == 0:
            raise OutcomeUnknown(f"{request.method} {request.target}: cut")


class LoseRequests(Disturbance):
    """Every n-th write is lost before it arrives."""

    def __init__(self, every):
        self._every = every
        self._count = count(1)

    async def before_write(self, request):
        if next(self._count) % self._every == 0:
            raise OutcomeUnknown(f"{request.method} {request.target}: cut")


class ConflictingWrites(Disturbance):
    """Another client changes an object just before every n-th replacement of one, a limited number of times."""

    def __init__(self, every, server, *, maximum):
        self._every = every
        self._server = server
        self._left = every * maximum
        self._count = count(1)

    async def before_write(self, request):
        if request.method == "PUT" and self._left:
            self._left -= 1
            number = next(self._count)
            if number % self._every == 0:
                note = {"metadata": {"annotations": {"note": str(number)}}}
                await self._server.patch(request.target.removesuffix("/status"), note)


class CutWatches(Disturbance):
    """All watches are cut after every n-th write; with `forgets`, none can resume from its version."""

    def __init__(self, every, *, forgets=False):
        self._every = every
        self._count = count(1)
        self._forgets = forgets
        self._refused = 0

    async def after_write(self, _):
        if next(self._count) % self._every == 0:
            cut = self.transport.cut()
            self._refused = cut if self._forgets else 0

    def before_watch(self, request):
        if self._refused and "resourceVersion=" in request.target:
            self._refused -= 1
            return FORGOTTEN
        return None


class DelayEvents(Disturbance):
    """The events of one resource arrive some seconds later than those of all others."""

    def __init__(self, plural, seconds, clock):
        self._plural = plural
        self._seconds = seconds
        self._clock = clock

    async def before_chunk(self, request):
        if f"/{self._plural}?" in request.target:
            await self._clock.sleep(self._seconds)


class HoldEvents(Disturbance):
    """The events of one resource do not arrive while they are held."""

    def __init__(self, plural):
        self._plural = plural
        self._arrives = asyncio.Event()
        self._arrives.set()

    async def before_chunk(self, request):
        if f"/{self._plural}?" in request.target:
            await self._arrives.wait()

    def hold(self):
        self._arrives.clear()

    def release(self):
        self._arrives.set()


class KillProcess(Disturbance):
    """The process is killed after a number of writes: no later request of it arrives."""

    def __init__(self, after):
        self._left = after
        self.is_dead = False

    async def before_write(self, _):
        if self.is_dead:
            await asyncio.get_running_loop().create_future()

    async def after_write(self, request):
        self._left -= 1
        if self._left == 0:
            self.is_dead = True
        await self.before_write(request)

    def revive(self):
        """Continue as another process, which is not killed."""
        self.is_dead = False


class StealLease(Disturbance):
    """After every n writes another process takes the lease, and does nothing with it.

    It ends: pod eviction from a silent node restarts its timer with each new leader, as upstream's does.
    """

    def __init__(self, every, server, *, maximum):
        self._every = every
        self._server = server
        self._left = maximum
        self._count = count(1)

    async def after_write(self, _):
        if self._left and next(self._count) % self._every == 0:
            self._left -= 1
            spec = {"holderIdentity": "a thief", "leaseDurationSeconds": 15}
            answer = await self._server.patch(LEASE, {"spec": spec})
            assert answer.status == 200, answer.data


class DisturbedTransport:
    """A transport that wraps another, and applies a disturbance."""

    def __init__(self, transport, disturbance):
        self._transport = transport
        self._streams = set()
        self.disturb(disturbance)

    @property
    def host(self):
        return self._transport.host

    async def send(self, request, headers):
        if request.is_read:
            return self._disturbance.before_read(request) or await self._transport.send(request, headers)
        refusal = await self._disturbance.before_write(request)
        if refusal is not None:
            return refusal
        answer = await self._transport.send(request, headers)
        await self._disturbance.after_write(request)
        return answer

    @contextlib.asynccontextmanager
    async def stream(self, request, headers):
        refusal = self._disturbance.before_watch(request)
        if refusal is not None:
            yield _Refusal(refusal)
            return
        async with self._transport.stream(request, headers) as stream:
            followed = _CuttableStream(stream, partial(self._before_chunk, request))
            self._streams.add(followed)
            try:
                yield followed
            finally:
                self._streams.discard(followed)
                await followed.end()

    async def _before_chunk(self, request):
        await self._disturbance.before_chunk(request)

    def disturb(self, disturbance):
        """Use this disturbance from now on."""
        self._disturbance = disturbance
        disturbance.transport = self

    def stop_disturbing(self):
        self.disturb(Disturbance())

    def cut(self):
        """End all watches at any point; return their number."""
        for stream in self._streams:
            stream.cut()
        return len(self._streams)

    async def close(self):
        await self._transport.close()


class _Refusal:
    def __init__(self, answer):
        self.status = answer.status
        self._body = answer.body

    async def read(self):
        return self._body


class _CuttableStream:
    """A stream that can be cut while a reader waits for it."""

    def __init__(self, stream, piece_comes):
        self.status = stream.status
        self.read = stream.read
        self._pieces = asyncio.Queue()
        self.reading = asyncio.create_task(self._read(stream, piece_comes))

    async def _read(self, stream, piece_comes):
        async for piece in stream.chunks():
            await piece_comes()
            self._pieces.put_nowait(piece)
        self._pieces.put_nowait(None)

    def cut(self):
        self.reading.cancel()
        self._pieces.put_nowait(None)

    async def end(self):
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)

    async def chunks(self):
        while (piece := await self._pieces.get()) is not None:
            yield piece
