"""A `KV` over etcd, either a single member or a cluster."""

import ssl
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Self, TypeVar
from weakref import WeakSet

from mockube.etcd.errors import Closed, Compacted, FutureRevision, InvalidRequest, PermissionDenied
from mockube.etcd.kv import (
    HEAD,
    NO_LEASE,
    Delete,
    DeleteResult,
    Lease,
    LeaseId,
    Put,
    PutResult,
    Range,
    RangeResult,
    Revision,
    Status,
    Txn,
    TxnResult,
    WatchRequest,
)

from . import requests
from .clock import Clock
from .errors import RevisionCompacted, RevisionInFuture
from .gateway import Gateway, is_endpoint
from .transport import EtcdCredentials, Transport
from .watch import RemoteWatch

T = TypeVar("T")

ANY_KEY = b"\x00"


class RemoteStore:
    """The `KV` of an etcd cluster, for use in one event loop."""

    @classmethod
    async def connect(
        cls,
        endpoints: Sequence[str],
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        credentials: EtcdCredentials | None = None,
        deadline: float = 5.0,
    ) -> Self:
        """Connect to at least one member, or raise the error of a first request.

        `tls` is the context of connections to https URLs. `deadline` is the limit of any call in seconds, including its retries.
        """
        if not endpoints or not all(map(is_endpoint, endpoints)):
            names = ", ".join(endpoints) or "none"
            raise InvalidRequest(f"endpoints must be http or https URLs, at least one, not {names}")
        # Attempts to connect to an unreachable member leave time for all others.
        connect_timeout = deadline / (len(endpoints) + 1)
        gateways = [Gateway(endpoint, tls=tls, connect_timeout=connect_timeout) for endpoint in endpoints]
        transport = Transport(gateways, credentials=credentials, deadline=deadline, clock=clock)
        try:
            await transport.call(requests.PING, requests.EMPTY_REQUEST)
        except BaseException:
            await transport.close()
            raise
        return cls(transport, clock)

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._watches: WeakSet[RemoteWatch] = WeakSet()

    # --- KV

    async def range(self, request: Range) -> RangeResult:
        call = self._transport.call(requests.RANGE, requests.encode_range(request))
        return await self._add_revisions_to_errors([request], call)

    async def put(self, request: Put) -> PutResult:
        return await self._transport.call(requests.PUT, requests.encode_put(request))

    async def delete(self, request: Delete) -> DeleteResult:
        return await self._transport.call(requests.DELETE, requests.encode_delete(request))

    async def txn(self, request: Txn) -> TxnResult:
        operations = (*request.then, *request.otherwise)
        reads = [operation for operation in operations if isinstance(operation, Range)]
        method = requests.READ_TXN if len(reads) == len(operations) else requests.TXN
        return await self._add_revisions_to_errors(
            reads, self._transport.call(method, requests.encode_txn(request))
        )

    async def watch(self, request: WatchRequest) -> RemoteWatch:
        if not request.key:
            raise InvalidRequest("key is empty")
        start = request.start_revision
        if start <= HEAD:
            # The member that serves the watch may be behind, and would send old events first.
            start = 1 + (await self.range(Range(key=request.key, count_only=True))).revision
        watch = await RemoteWatch.open(self._transport, request, start, self._clock)
        self._watches.add(watch)
        return watch

    async def compact(self, revision: Revision) -> None:
        await self._add_revisions_to_errors(
            [Range(key=ANY_KEY, revision=revision)],
            self._transport.call(requests.COMPACT, requests.encode_compaction(revision)),
        )

    async def grant(self, ttl: int, lease: LeaseId = NO_LEASE) -> Lease:
        if ttl <= 0:
            # etcd would grant its shortest TTL instead.
            raise InvalidRequest(f"a lease's TTL must be at least 1 second, not {ttl}")
        return await self._transport.call(requests.GRANT, requests.encode_grant(ttl, lease))

    async def keep_alive(self, lease: LeaseId) -> Lease:
        return await self._transport.call(requests.KEEP_ALIVE, requests.encode_lease(lease))

    async def revoke(self, lease: LeaseId) -> None:
        await self._transport.call(requests.REVOKE, requests.encode_lease(lease))

    async def time_to_live(self, lease: LeaseId, *, keys: bool = False) -> Lease:
        return await self._transport.call(
            requests.TIME_TO_LIVE, requests.encode_time_to_live(lease, keys=keys)
        )

    async def leases(self) -> Sequence[LeaseId]:
        return await self._transport.call(requests.LEASES, requests.EMPTY_REQUEST)

    async def status(self) -> Status:
        """Return the status of the member that responds; its revision may be behind the cluster's."""
        member = await self._transport.call(requests.STATUS, requests.EMPTY_REQUEST)
        return Status(
            backend="etcd",
            version=member.version,
            revision=member.revision,
            compact_revision=0,
            size=member.size,
        )

    async def close(self) -> None:
        for watch in list(self._watches):  # the set is weak: it may shrink while this waits
            await watch.abort(Closed("the store is closed"))
        await self._transport.close()

    # --- revisions that etcd's errors omit

    async def _add_revisions_to_errors(self, reads: Sequence[Range], call: Awaitable[T]) -> T:
        """Await a call; raise an error about a revision with the requested and the current or oldest revision."""
        revisions = [read.revision for read in reads if read.revision > HEAD]
        try:
            return await call
        except RevisionInFuture:
            current = (await self._transport.call(requests.PING, requests.EMPTY_REQUEST)).revision
            raise FutureRevision(max(revisions), current) from None
        except RevisionCompacted:
            raise Compacted(min(revisions), await self._history_start(reads[0].key)) from None

    async def _history_start(self, key: bytes) -> Revision:
        """Return the oldest readable revision, which etcd reports only to a watch that starts too early."""
        create = requests.encode_watch(WatchRequest(key=key), 1)
        with suppress(PermissionDenied):  # without permission to watch, the error has no compact revision
            return await self._transport.history_start(create)
        return 0
