"""Decode the responses of etcd's gateway to the results of `KV`.

In the gateway's JSON, bytes are base64, 64-bit integers are strings, and zero, empty and false values are omitted.
msgspec converts them by type while it parses, three to four times as fast as a general parser with later conversions.
The functions are pure, and independent of requests and of HTTP.
"""

import msgspec
from msgspec import Struct

from mockube.etcd.errors import LeaseNotFound
from mockube.etcd.kv import (
    NO_LEASE,
    DeleteResult,
    Event,
    EventKind,
    KeyValue,
    Lease,
    LeaseId,
    OperationResult,
    PutResult,
    RangeResult,
    Revision,
    TxnResult,
)

from .errors import error_of, error_of_answer

_ON_DEMAND = -1
"""The watch id in a response to a progress request, which concerns all watches of its stream."""


class WatchResponse(Struct, frozen=True, kw_only=True):
    """One message of a watch stream. `revision` is the member's own, which may be ahead of the events."""

    revision: Revision
    created: bool
    on_demand: bool
    """Whether it responds to a progress request."""
    fragment: bool
    """Whether more fragments of the same response follow."""
    compact_revision: Revision
    """If not 0, the watch has ended, because the events from its start to this revision are compacted."""
    events: list[Event]


class MemberStatus(Struct, frozen=True, kw_only=True):
    revision: Revision
    version: str
    size: int


class _Header(Struct):
    revision: Revision = 0


class _KeyValue(Struct, gc=False):
    key: bytes
    value: bytes = b""
    create_revision: Revision = 0
    mod_revision: Revision = 0
    version: int = 0
    lease: LeaseId = NO_LEASE

    def record(self) -> KeyValue:
        return KeyValue(
            key=self.key,
            value=self.value,
            create_revision=self.create_revision,
            mod_revision=self.mod_revision,
            version=self.version,
            lease=self.lease,
        )


def _record(kv: _KeyValue | None) -> KeyValue | None:
    return None if kv is None else kv.record()


class _Range(Struct):
    header: _Header
    kvs: list[_KeyValue] = []
    count: int = 0
    more: bool = False

    def record(self) -> RangeResult:
        kvs = [kv.record() for kv in self.kvs]
        return RangeResult(revision=self.header.revision, kvs=kvs, count=self.count, more=self.more)


class _Put(Struct):
    header: _Header
    prev_kv: _KeyValue | None = None

    def record(self) -> PutResult:
        return PutResult(revision=self.header.revision, previous=_record(self.prev_kv))


class _Delete(Struct):
    header: _Header
    deleted: int = 0
    prev_kvs: list[_KeyValue] = []

    def record(self) -> DeleteResult:
        previous = [kv.record() for kv in self.prev_kvs]
        return DeleteResult(revision=self.header.revision, deleted=self.deleted, previous=previous)


class _Operation(Struct):
    """The result of an operation: one of the three fields."""

    response_range: _Range | None = None
    response_put: _Put | None = None
    response_delete_range: _Delete | None = None

    def record(self) -> OperationResult:
        response = self.response_range or self.response_put or self.response_delete_range
        assert response is not None
        return response.record()


class _Txn(Struct):
    header: _Header
    succeeded: bool = False
    responses: list[_Operation] = []

    def record(self) -> TxnResult:
        results = [response.record() for response in self.responses]
        return TxnResult(revision=self.header.revision, succeeded=self.succeeded, results=results)


class _Event(Struct):
    kv: _KeyValue
    type: EventKind = EventKind.PUT
    prev_kv: _KeyValue | None = None

    def record(self) -> Event:
        return Event(kind=self.type, kv=self.kv.record(), previous=_record(self.prev_kv))


class _Watch(Struct):
    header: _Header
    watch_id: int = 0
    created: bool = False
    canceled: bool = False
    cancel_reason: str = ""
    compact_revision: Revision = 0
    fragment: bool = False
    events: list[_Event] = []

    def record(self) -> WatchResponse:
        return WatchResponse(
            revision=self.header.revision,
            created=self.created,
            on_demand=self.watch_id == _ON_DEMAND,
            fragment=self.fragment,
            compact_revision=self.compact_revision,
            events=[event.record() for event in self.events],
        )


class _Lease(Struct, rename={"id": "ID", "ttl": "TTL", "granted": "grantedTTL"}):
    id: LeaseId
    ttl: int = 0
    granted: int = 0
    keys: list[bytes] = []


class _Leases(Struct):
    leases: list[_Lease] = []


class _Status(Struct, rename={"size": "dbSize"}):
    header: _Header
    version: str
    size: int = 0


class _Token(Struct):
    token: str


class _StreamMessage(Struct):
    """A message of a stream: a result, or an error."""

    result: msgspec.Raw = msgspec.Raw()


# `strict=False` converts the strings to integers.
_range = msgspec.json.Decoder(_Range, strict=False).decode
_put = msgspec.json.Decoder(_Put, strict=False).decode
_delete = msgspec.json.Decoder(_Delete, strict=False).decode
_txn = msgspec.json.Decoder(_Txn, strict=False).decode
_watch = msgspec.json.Decoder(_Watch, strict=False).decode
_lease = msgspec.json.Decoder(_Lease, strict=False).decode
_leases = msgspec.json.Decoder(_Leases, strict=False).decode
_status = msgspec.json.Decoder(_Status, strict=False).decode
_token = msgspec.json.Decoder(_Token).decode
_streamed = msgspec.json.Decoder(_StreamMessage).decode


def decode_range(body: bytes) -> RangeResult:
    return _range(body).record()


def decode_put(body: bytes) -> PutResult:
    return _put(body).record()


def decode_delete(body: bytes) -> DeleteResult:
    return _delete(body).record()


def decode_txn(body: bytes) -> TxnResult:
    return _txn(body).record()


def decode_watch(message: bytes) -> WatchResponse:
    """Return a watch response, or raise the error of the stream or of the watch; the caller handles compaction."""
    watch = _watch(_result(message))
    if watch.canceled and not watch.compact_revision:
        raise error_of(watch.cancel_reason)
    return watch.record()


def decode_grant(body: bytes) -> Lease:
    lease = _lease(body)
    return Lease(id=lease.id, ttl=lease.ttl, remaining=lease.ttl)


def decode_keep_alive(body: bytes) -> Lease:
    lease = _lease(_result(body))
    if not lease.ttl:
        raise LeaseNotFound(f"lease {lease.id} not found")
    return Lease(id=lease.id, ttl=lease.ttl, remaining=lease.ttl)


def decode_time_to_live(body: bytes) -> Lease:
    lease = _lease(body)
    if not lease.granted:
        raise LeaseNotFound(f"lease {lease.id} not found")
    return Lease(id=lease.id, ttl=lease.granted, remaining=lease.ttl, keys=lease.keys)


def decode_leases(body: bytes) -> list[LeaseId]:
    return sorted(lease.id for lease in _leases(body).leases)


def decode_status(body: bytes) -> MemberStatus:
    status = _status(body)
    return MemberStatus(revision=status.header.revision, version=status.version, size=status.size)


def decode_done(body: bytes) -> None:
    """Decode a response without content; raise an error if it is not JSON."""
    _streamed(body)


def decode_token(body: bytes) -> str:
    return _token(body).token


def _result(message: bytes) -> bytes | msgspec.Raw:
    result = _streamed(message).result
    if not bytes(result):
        raise error_of_answer(message, 200)
    return result
