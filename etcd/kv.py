"""The KV contract: etcd v3's model, bytes in and revisions out.

The store has one revision, an integer that rises by one with every transaction that changes something. Every backend
behind `KV` promises, and `tests/contract` proves of each:

* KV operations are strictly serializable, and revisions are their order: what returned before a call began is seen
  by it. Nothing that could still be lost is ever returned.
* A watch delivers events in the order of revisions, each once, without a gap, a revision never split over two
  batches; it can be resumed from any revision seen. `WatchBatch.revision` R means every event ≤ R was delivered.
* A call that fails changed nothing, unless its error has `outcome_unknown`.

What a backend cannot do it refuses with `mockube.etcd.errors.Unsupported`.
"""

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Protocol, Self, TypeAlias, runtime_checkable

from msgspec import Struct

Revision: TypeAlias = int
LeaseId: TypeAlias = int

NO_LEASE: LeaseId = 0
HEAD: Revision = 0
"""As a revision to read at: the newest."""

FROM_KEY = b"\x00"
"""As a `range_end`: every key from `key` on."""


def prefix_end(prefix: bytes) -> bytes:
    """The `range_end` that makes [prefix, end) all keys with this prefix."""
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
    """One change. A DELETE's `kv` has key and mod_revision only; `previous` is what the key held before, if requested."""

    kind: EventKind
    kv: KeyValue
    previous: KeyValue | None = None


# --- requests: operations that may stand alone or in a transaction


class Range(Struct, frozen=True, kw_only=True, gc=False):
    """Read one key, or the keys of [key, range_end) in byte order."""

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
    """Answer with what the key held before."""


class Delete(Struct, frozen=True, kw_only=True, gc=False):
    key: bytes
    range_end: bytes | None = None
    previous: bool = False


Operation: TypeAlias = Range | Put | Delete


class Target(Enum):
    """What of a key a comparison looks at. A key that is absent has version, revisions and lease 0, and no value."""

    VERSION = "VERSION"
    CREATE = "CREATE"
    MOD = "MOD"
    VALUE = "VALUE"
    LEASE = "LEASE"


class Relation(Enum):
    EQUAL = "EQUAL"
    NOT_EQUAL = "NOT_EQUAL"
    GREATER = "GREATER"
    LESS = "LESS"


class Compare(Struct, frozen=True, kw_only=True, gc=False):
    """True if `key`'s target stands in the relation to the operand. A VALUE comparison with an absent key is false."""

    key: bytes
    target: Target
    operand: int | bytes
    relation: Relation = Relation.EQUAL


class Txn(Struct, frozen=True, kw_only=True, gc=False):
    """If every comparison holds do `then`, else `otherwise`: all of it at one revision, or nothing."""

    compare: Sequence[Compare] = ()
    then: Sequence[Operation] = ()
    otherwise: Sequence[Operation] = ()


class WatchRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Follow one key, or [key, range_end), from `start_revision` on; HEAD means from the next change on."""

    key: bytes
    range_end: bytes | None = None
    start_revision: Revision = HEAD
    previous: bool = False
    """Carry what each key held before in `Event.previous`."""
    progress: bool = False
    """Deliver an empty batch now and then while nothing matches, so that the watcher learns the current revision."""


# --- answers


class RangeResult(Struct, frozen=True, kw_only=True, gc=False):
    """`count` is of all keys in the range, whatever the limit; `revision` is what the read saw as the store's newest."""

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
    """`ttl` is what was granted, `remaining` what is left of it, in seconds; `keys` only if they were requested."""

    id: LeaseId
    ttl: int
    remaining: float
    keys: Sequence[bytes] = ()


class Status(Struct, frozen=True, kw_only=True, gc=False):
    backend: str
    """For people: "memory", "durable" or "etcd"."""
    version: str
    revision: Revision
    compact_revision: Revision
    """The oldest revision that can be read; 0 if the backend does not report it."""
    size: int
    """Bytes held, as the backend counts them."""


@runtime_checkable
class Watch(Protocol):
    """A running watch: an async iterator of batches that must be closed, best by `async with`.

    Iteration ends with `Compacted` if the start is older than history, `WatcherTooSlow` if the reader fell too far
    behind, `Closed` if the store is closed, and plainly once `close` was called.
    """

    def __aiter__(self) -> AsyncIterator[WatchBatch]: ...

    async def __anext__(self) -> WatchBatch: ...

    async def request_progress(self) -> None:
        """Have a progress notification delivered, at no less than the store's revision at this call."""

    def take_pending(self, most: int) -> WatchBatch | None:
        """Return the next batch if it is there already and has at most so many events; None otherwise."""

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


@runtime_checkable
class KV(Protocol):
    """A store. Every method may raise `mockube.etcd.errors.KVError`, and nothing else of a backend's own."""

    async def range(self, request: Range) -> RangeResult: ...

    async def put(self, request: Put) -> PutResult: ...

    async def delete(self, request: Delete) -> DeleteResult: ...

    async def txn(self, request: Txn) -> TxnResult: ...

    async def watch(self, request: WatchRequest) -> Watch:
        """Start to watch; on return the start revision is fixed, so no later change can be missed."""

    async def compact(self, revision: Revision) -> None:
        """Forget history before `revision`, which itself stays readable."""

    async def grant(self, ttl: int, lease: LeaseId = NO_LEASE) -> Lease:
        """Grant a lease of `ttl` seconds, of a chosen id or a fresh one."""

    async def keep_alive(self, lease: LeaseId) -> Lease: ...

    async def revoke(self, lease: LeaseId) -> None:
        """End a lease now; its keys are deleted in one revision."""

    async def time_to_live(self, lease: LeaseId, *, keys: bool = False) -> Lease: ...

    async def leases(self) -> Sequence[LeaseId]: ...

    async def status(self) -> Status: ...

    async def close(self) -> None: ...
