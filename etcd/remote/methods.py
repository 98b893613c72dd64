"""The methods of etcd's gateway that we call: where each is, what its answer means, and whether it may be sent twice."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct

from mockube.etcd.kv import DeleteResult, Lease, LeaseId, PutResult, RangeResult, TxnResult
from mockube.etcd.remote import answers
from mockube.etcd.remote.answers import MemberStatus

T = TypeVar("T")


class Method(Struct, Generic[T], frozen=True):
    path: str
    decode: Callable[[bytes], T]
    repeatable: bool
    """Whether to send it again, when it is unknown if it was carried out, does no harm and gives a true answer.

    A transaction that compares and sets is not: the second time it would meet its own change, and say that it failed.
    """


RANGE: Final[Method[RangeResult]] = Method("/kv/range", answers.decode_range, repeatable=True)
PUT: Final[Method[PutResult]] = Method("/kv/put", answers.decode_put, repeatable=False)
DELETE: Final[Method[DeleteResult]] = Method("/kv/deleterange", answers.decode_delete, repeatable=False)
TXN: Final[Method[TxnResult]] = Method("/kv/txn", answers.decode_txn, repeatable=False)
READ_TXN: Final[Method[TxnResult]] = Method("/kv/txn", answers.decode_txn, repeatable=True)
PING: Final[Method[TxnResult]] = Method("/kv/txn", answers.decode_txn, repeatable=True)
"""With `requests.NOTHING`: a transaction of nothing, which any member that has a leader answers to any user."""
COMPACT: Final[Method[None]] = Method("/kv/compaction", answers.decode_done, repeatable=False)
GRANT: Final[Method[Lease]] = Method("/lease/grant", answers.decode_grant, repeatable=False)
KEEP_ALIVE: Final[Method[Lease]] = Method("/lease/keepalive", answers.decode_keep_alive, repeatable=True)
REVOKE: Final[Method[None]] = Method("/lease/revoke", answers.decode_done, repeatable=False)
TIME_TO_LIVE: Final[Method[Lease]] = Method("/lease/timetolive", answers.decode_time_to_live, repeatable=True)
LEASES: Final[Method[list[LeaseId]]] = Method("/lease/leases", answers.decode_leases, repeatable=True)
STATUS: Final[Method[MemberStatus]] = Method("/maintenance/status", answers.decode_status, repeatable=True)
LOGIN: Final[Method[str]] = Method("/auth/authenticate", answers.decode_token, repeatable=True)

WATCH: Final = "/watch"
"""Not a call but a stream; to open one again does no harm."""
