"""The contents of the log and of snapshots as bytes: msgpack arrays that begin with the number of their type.

The log contains the result of each request, not the request, so that a replay only applies results. New fields may be
added at the end of a record, with a default; a change of meaning needs a new number here or a new format of the file.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from mockube.etcd.kv import Event, EventKind, LeaseId, Revision

from .mvcc import Change


class Commit(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Everything that one revision changed, in order."""

    revision: Revision
    changes: Sequence[Change]
    note: Any = None
    """What the writer notes beside the revision."""


class Grant(Struct, frozen=True, array_like=True, gc=False, tag=2):
    lease: LeaseId
    ttl: int


class Revocation(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """The end of a lease; a commit before it deletes the keys."""

    lease: LeaseId


class Compaction(Struct, frozen=True, array_like=True, gc=False, tag=4):
    revision: Revision


Entry: TypeAlias = Commit | Grant | Revocation | Compaction

_encoder = msgspec.msgpack.Encoder()
_entries = msgspec.msgpack.Decoder(list[Entry])

encode = _encoder.encode


def commit(revision: Revision, events: Sequence[Event], note: object = None) -> Commit:
    return Commit(revision, _changes(events), note)


def _changes(events: Sequence[Event]) -> Sequence[Change]:
    return [(e.kv.key, e.kv.value if e.kind is EventKind.PUT else None, e.kv.lease) for e in events]


def encode_changes(events: Sequence[Event]) -> Sequence[bytes]:
    """Return each change as its own payload, for `join_commit`."""
    return list(map(_encoder.encode, _changes(events)))


def join_commit(revision: Revision, changes: Sequence[bytes], note: object = None) -> bytes:
    """Return what `encode(commit(...))` returns for these changes: an array of the tag, the revision, the changes and the note."""
    return b"\x94\x01" + _encoder.encode(revision) + join(changes) + _encoder.encode(note)


def join(entries: Sequence[bytes]) -> bytes:
    """Return one payload of entries that were encoded separately: an array of them, as msgpack writes it."""
    return b"\xdd" + len(entries).to_bytes(4, "big") + b"".join(entries)


def decode_entries(payload: memoryview) -> Sequence[Entry]:
    return _entries.decode(payload)
