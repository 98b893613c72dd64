"""Encode the requests of `KV` as the JSON of etcd's gateway.

Bytes are encoded as base64; zero, empty and false values may be omitted. The functions are pure, and independent of
responses and of HTTP.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from mockube.etcd.kv import (
    NO_LEASE,
    Compare,
    Delete,
    DeleteResult,
    Lease,
    LeaseId,
    Operation,
    Put,
    PutResult,
    Range,
    RangeResult,
    Revision,
    Target,
    Txn,
    TxnResult,
    WatchRequest,
)

from . import responses
from .responses import MemberStatus

Fields: TypeAlias = dict[str, Any]

EMPTY_REQUEST = b"{}"
PROGRESS = b'{"progress_request":{}}'
"""The message that requests a progress notification on a watch stream."""

_encode: Callable[[Fields], bytes] = msgspec.json.Encoder().encode


def encode_range(request: Range) -> bytes:
    return _encode(_range(request))


def encode_put(request: Put) -> bytes:
    return _encode(_put(request))


def encode_delete(request: Delete) -> bytes:
    return _encode(_delete(request))


def encode_txn(request: Txn) -> bytes:
    return _encode(
        {
            "compare": [_compare(compare) for compare in request.compare],
            "success": [_operation(operation) for operation in request.then],
            "failure": [_operation(operation) for operation in request.otherwise],
        }
    )


def encode_watch(request: WatchRequest, start: Revision) -> bytes:
    """Encode a watch. It always has progress notifications, so that an idle watch does not fall behind compaction."""
    create = {
        "key": request.key,
        "range_end": request.range_end or b"",
        "start_revision": start,
        "prev_kv": request.previous,
        "progress_notify": True,
        "fragment": True,
    }
    return _encode({"create_request": create})


def encode_compaction(revision: Revision) -> bytes:
    return _encode({"revision": revision})


def encode_grant(ttl: int, lease: LeaseId) -> bytes:
    return _encode({"TTL": ttl, "ID": lease})


def encode_lease(lease: LeaseId) -> bytes:
    return _encode({"ID": lease})


def encode_time_to_live(lease: LeaseId, *, keys: bool) -> bytes:
    return _encode({"ID": lease, "keys": keys})


def encode_login(user: str, password: str) -> bytes:
    return _encode({"name": user, "password": password})


def _range(request: Range) -> Fields:
    fields: Fields = {"key": request.key}
    if request.range_end is not None:
        fields["range_end"] = request.range_end
    if request.revision > 0:
        fields["revision"] = request.revision
    if request.limit:
        fields["limit"] = request.limit
    if request.keys_only:
        fields["keys_only"] = True
    if request.count_only:
        fields["count_only"] = True
    return fields


def _put(request: Put) -> Fields:
    fields: Fields = {"key": request.key, "value": request.value}
    if request.lease != NO_LEASE:
        fields["lease"] = request.lease
    if request.previous:
        fields["prev_kv"] = True
    return fields


def _delete(request: Delete) -> Fields:
    fields: Fields = {"key": request.key, "prev_kv": request.previous}
    if request.range_end is not None:
        fields["range_end"] = request.range_end
    return fields


_OPERATIONS: Mapping[type[Operation], tuple[str, Callable[[Any], Fields]]] = {
    Range: ("request_range", _range),
    Put: ("request_put", _put),
    Delete: ("request_delete_range", _delete),
}

_OPERANDS: Mapping[Target, str] = {
    Target.VERSION: "version",
    Target.CREATE: "create_revision",
    Target.MOD: "mod_revision",
    Target.VALUE: "value",
    Target.LEASE: "lease",
}


def _operation(operation: Operation) -> Fields:
    name, fields_of = _OPERATIONS[type(operation)]
    return {name: fields_of(operation)}


def _compare(compare: Compare) -> Fields:
    return {
        "key": compare.key,
        "target": compare.target.value,
        "result": compare.relation.value,
        _OPERANDS[compare.target]: compare.operand,
    }


T = TypeVar("T")


class Method(Struct, Generic[T], frozen=True):
    path: str
    decode: Callable[[bytes], T]
    repeatable: bool
    """Whether the request may be repeated when it is unknown if it was executed.

    A compare-and-set transaction may not: the comparison of the second one would fail because of the first one's change.
    """


RANGE: Final[Method[RangeResult]] = Method("/kv/range", responses.decode_range, repeatable=True)
PUT: Final[Method[PutResult]] = Method("/kv/put", responses.decode_put, repeatable=False)
DELETE: Final[Method[DeleteResult]] = Method("/kv/deleterange", responses.decode_delete, repeatable=False)
TXN: Final[Method[TxnResult]] = Method("/kv/txn", responses.decode_txn, repeatable=False)
READ_TXN: Final[Method[TxnResult]] = Method("/kv/txn", responses.decode_txn, repeatable=True)
PING: Final[Method[TxnResult]] = Method("/kv/txn", responses.decode_txn, repeatable=True)
"""With `EMPTY_REQUEST`: an empty transaction, which any member with a leader executes for any user."""
COMPACT: Final[Method[None]] = Method("/kv/compaction", responses.decode_done, repeatable=False)
GRANT: Final[Method[Lease]] = Method("/lease/grant", responses.decode_grant, repeatable=False)
KEEP_ALIVE: Final[Method[Lease]] = Method("/lease/keepalive", responses.decode_keep_alive, repeatable=True)
REVOKE: Final[Method[None]] = Method("/lease/revoke", responses.decode_done, repeatable=False)
TIME_TO_LIVE: Final[Method[Lease]] = Method(
    "/lease/timetolive", responses.decode_time_to_live, repeatable=True
)
LEASES: Final[Method[list[LeaseId]]] = Method("/lease/leases", responses.decode_leases, repeatable=True)
STATUS: Final[Method[MemberStatus]] = Method("/maintenance/status", responses.decode_status, repeatable=True)
LOGIN: Final[Method[str]] = Method("/auth/authenticate", responses.decode_token, repeatable=True)

WATCH: Final = "/watch"
"""The path of watch streams; a stream may be opened again."""
