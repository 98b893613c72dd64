"""The KV contract: etcd v3's model, bytes in and revisions out.

The store has one revision, an integer that increases by one with every transaction that changes something. Every
implementation of `KV` guarantees, and `tests/contract` tests for each:

* KV operations are strictly serializable, and revisions are their order: what returned before a call began is seen
  by it. Nothing that could still be lost is ever returned.
* A watch delivers events in the order of revisions, each once, without a gap, a revision never split over two
  batches; it can be resumed from any revision seen. `WatchBatch.revision` R means every event ≤ R was delivered.
* A call that fails changed nothing, unless its error has `outcome_unknown`.

A backend raises `mockube.etcd.errors.Unsupported` for an operation that it does not support.
"""

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Protocol, Self, TypeAlias, runtime_checkable

from msgspec import Struct

Revision: TypeAlias = int
LeaseId: TypeAlias = int

NO_LEASE: LeaseId = 0
FIRST_REVISION: Revision = 1
"""The revision of an empty store: the first change makes revision 2."""
HEAD: Revision = 0
"""The revision of a read at the newest revision."""

FROM_KEY = b"\x00"
"""The `range_end` for every key from `key` on."""


def prefix_end(prefix: bytes) -> bytes:
    """Return the `range_end` of all keys with this prefix."""
    end = prefix.rstrip(b"\xff")
    if not end:
        return FROM_KEY
    return end[:-1] + bytes((end[-1] + 1,))


class KeyValue(Struct, frozen=True, kw_only=True, gc=False):
    """A key at one of its versions. `version` counts from 1 at each creation; 0 marks a deletion's record."""

    key: bytes
    value: bytes
    create_revision: Revision
    mod_revision: Revision
    version: int
    lease: LeaseId = NO_LEASE


class EventKind(Enum):
    PUT = "PUT"
    DELETE = "DELETE"


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """One change. The `kv` of a DELETE has key and mod_revision only; `previous` is the old key and value, if requested."""

    kind: EventKind
    kv: KeyValue
    previous: KeyValue | None = None


# --- requests: operations that may be used alone or in a transaction


class Range(Struct, frozen=True, kw_only=True, gc=False):
    """A read of one key, or of the keys in [key, range_end) in byte order."""

    key: bytes
    range_end: bytes | None = None
    revision: Revision = HEAD
    limit: int = 0
    keys_only: bool = False
    count_only: bool = False


class Put(Struct, frozen=True, kw_only=True, gc=False):
    key: bytes
    value: bytes
    lease: LeaseId = NO_LEASE
    previous: bool = False
    """Return the previous key and value."""


class Delete(Struct, frozen=True, kw_only=True, gc=False):
    key: bytes
    range_end: bytes | None = None
    previous: bool = False


Operation: TypeAlias = Range | Put | Delete


class Target(Enum):
    """The field of a key that a comparison reads. An absent key has version, revisions and lease 0, and no value."""

    VERSION = "VERSION"
    CREATE = "CREATE"
    MOD = "MOD"
    VALUE = "VALUE"
    LEASE = "LEASE"

    __hash__ = object.__hash__
    """The hash of Enum is a function in Python, and every comparison calls it."""


class Relation(Enum):
    EQUAL = "EQUAL"
    NOT_EQUAL = "NOT_EQUAL"
    GREATER = "GREATER"
    LESS = "LESS"

    __hash__ = object.__hash__
    """The hash of Enum is a function in Python, and every comparison calls it."""


class Compare(Struct, frozen=True, kw_only=True, gc=False):
    """A comparison of a key's target with an operand. The VALUE of an absent key never matches."""

    key: bytes
    target: Target
    operand: int | bytes
    relation: Relation = Relation.EQUAL


class Txn(Struct, frozen=True, kw_only=True, gc=False):
    """A transaction: `then` if every comparison holds, else `otherwise`; executed at one revision, or not at all."""

    compare: Sequence[Compare] = ()
    then: Sequence[Operation] = ()
    otherwise: Sequence[Operation] = ()
    note: object = None
    """What a store on a disk keeps beside the revision, such as its author: a value that msgpack encodes. Others ignore it."""


class WatchRequest(Struct, frozen=True, kw_only=True, gc=False):
    """A watch of one key, or of [key, range_end), from `start_revision` on; HEAD means from the next change on."""

    key: bytes
    range_end: bytes | None = None
    start_revision: Revision = HEAD
    previous: bool = False
    """Add the previous key and value to each `Event.previous`."""
    progress: bool = False
    """Send an empty batch now and then while nothing matches, so that the watcher gets the current revision."""


# --- answers


class RangeResult(Struct, frozen=True, kw_only=True, gc=False):
    """`count` is the number of all keys in the range, regardless of the limit; `revision` is the store's at the read."""

    revision: Revision
    kvs: Sequence[KeyValue]
    count: int
    more: bool = False


class PutResult(Struct, frozen=True, kw_only=True, gc=False):
    revision: Revision
    previous: KeyValue | None = None


class DeleteResult(Struct, frozen=True, kw_only=True, gc=False):
    revision: Revision
    deleted: int
    previous: Sequence[KeyValue] = ()


OperationResult: TypeAlias = RangeResult | PutResult | DeleteResult


class TxnResult(Struct, frozen=True, kw_only=True, gc=False):
    revision: Revision
    succeeded: bool
    results: Sequence[OperationResult] = ()


class WatchBatch(Struct, frozen=True, kw_only=True, gc=False):
    """Whole revisions, oldest first; without events it is a progress notification."""

    revision: Revision
    events: Sequence[Event] = ()


class Lease(Struct, frozen=True, kw_only=True, gc=False):
    """`ttl` is the granted time and `remaining` the remaining one, in seconds; `keys` only if they were requested."""

    id: LeaseId
    ttl: int
    remaining: float
    keys: Sequence[bytes] = ()


class Status(Struct, frozen=True, kw_only=True, gc=False):
    backend: str
    """For messages: "memory", "durable" or "etcd"."""
    version: str
    revision: Revision
    compact_revision: Revision
    """The oldest revision that can be read; 0 if the backend does not report it."""
    size: int
    """The size of the store in bytes, as the backend measures it."""
    problem: str = ""
    """Why nothing can be written now, such as a full disk; "" if nothing is known to prevent it."""


@runtime_checkable
class Watch(Protocol):
    """A running watch: an async iterator of batches that must be closed, best by `async with`.

    Iteration raises `Compacted` if the start is older than history, `WatcherTooSlow` if the reader is too far behind, and
    `Closed` if the store is closed; it ends after `close`.
    """

    def __aiter__(self) -> AsyncIterator[WatchBatch]: ...

    async def __anext__(self) -> WatchBatch: ...

    async def request_progress(self) -> None:
        """Request a progress notification of at least the store's current revision."""

    def take_pending(self, maximum: int) -> WatchBatch | None:
        """Return the next batch if it is available and has at most `maximum` events; None otherwise."""

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


@runtime_checkable
class KV(Protocol):
    """A store. Its methods raise no errors of a backend's own, only `mockube.etcd.errors.KVError`."""

    async def range(self, request: Range) -> RangeResult: ...

    async def put(self, request: Put) -> PutResult: ...

    async def delete(self, request: Delete) -> DeleteResult: ...

    async def txn(self, request: Txn) -> TxnResult: ...

    async def watch(self, request: WatchRequest) -> Watch:
        """Start a watch. Its start revision is fixed on return, so no later change can be missed."""

    async def compact(self, revision: Revision) -> None:
        """Drop the history before `revision`, which itself stays readable."""

    async def grant(self, ttl: int, lease: LeaseId = NO_LEASE) -> Lease:
        """Grant a lease of `ttl` seconds, with a chosen id or a new one."""

    async def keep_alive(self, lease: LeaseId) -> Lease: ...

    async def revoke(self, lease: LeaseId) -> None:
        """Revoke a lease now; its keys are deleted in one revision."""

    async def time_to_live(self, lease: LeaseId, *, keys: bool = False) -> Lease: ...

    async def leases(self) -> Sequence[LeaseId]: ...

    async def status(self) -> Status: ...

    async def close(self) -> None: ...
