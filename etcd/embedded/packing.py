"""Past versions with compressed values: they are kept for reads of the past, and seldom read."""

import zlib

from mockube.etcd.kv import Event, KeyValue

LEAST, MOST = 16 * 1024, 256 * 1024
"""Bytes of a value that is compressed: a smaller one saves little, a larger one takes too long."""


class PackedKeyValue(KeyValue, frozen=True, kw_only=True, gc=False):
    """A past version whose value is compressed."""

    size: int
    """Bytes of the value itself."""


def pack(kv: KeyValue) -> PackedKeyValue:
    return PackedKeyValue(
        key=kv.key,
        value=zlib.compress(kv.value, level=zlib.Z_BEST_SPEED),
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        lease=kv.lease,
        size=len(kv.value),
    )


def unpack(kv: KeyValue) -> KeyValue:
    """Return a version with its value as it was put."""
    if type(kv) is not PackedKeyValue:
        return kv
    return KeyValue(
        key=kv.key,
        value=zlib.decompress(kv.value),
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        lease=kv.lease,
    )


def is_worth_packing(kv: KeyValue) -> bool:
    return LEAST <= len(kv.value) <= MOST and type(kv) is not PackedKeyValue


def replaces_large(event: Event) -> bool:
    """Return whether a change replaces a value that is worth compression."""
    return event.previous is not None and is_worth_packing(event.previous)


def unpack_event(event: Event) -> Event:
    previous = None if event.previous is None else unpack(event.previous)
    return Event(kind=event.kind, kv=unpack(event.kv), previous=previous)
