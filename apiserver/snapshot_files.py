"""Check snapshot files, and select the keys that are restored into a store of Kubernetes objects.

A snapshot is a file of `mockube.etcd.archive`: all keys below the prefix, at one revision.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from mockube.etcd.archive.lines import Entry, UnreadableLine
from mockube.etcd.archive.read import Archive, check
from mockube.etcd.archive.restore import RestoreTarget

from .kinds.built_in_kinds import GROUPS
from .storage.stored_object import MASTER_LEASES, MAX_REASON, read_value
from .wire.protobuf import envelope

EXCLUDED_PREFIXES: Final = (b"leases/kube-system/", MASTER_LEASES)
"""Prefixes that are not restored: leader election and server leases describe the running processes."""


def restore_target(root: bytes) -> RestoreTarget:
    return RestoreTarget(root=root, excluded_prefixes=EXCLUDED_PREFIXES)


def check_snapshot(file: BinaryIO, name: str) -> Archive:
    """Raise `BadArchive` unless the file is complete and each value is an object of its key's kind."""
    return check(file, name, _check_value)


def _check_value(entry: Entry, root: bytes) -> None:
    key = entry.key.removeprefix(root)
    first = key.find(b"/") + 1
    second = key.find(b"/", first) + 1
    kind = _KINDS.get(key[:second]) or _KINDS.get(key[:first])
    try:
        if kind is None:
            _check_unknown(entry.value)
        else:
            _check_known(entry.value, kind)
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:MAX_REASON]}"
        raise UnreadableLine(
            f"is refused: {entry.key.decode(errors='replace')} cannot be read: {problem}"
        ) from error


def _check_known(value: bytes, kind: bytes) -> None:
    if not read_value(value).startswith(kind):
        raise ValueError(f"it is of another kind: {value[:50]!r}")


def _check_unknown(value: bytes) -> None:
    """Check an object of a custom resource, or internal data of a kube-apiserver, which may have no uid."""
    if not envelope.is_protobuf(value) and not isinstance(orjson.loads(value), dict):
        raise ValueError("it is not an object")


_KINDS: Final = {
    row.folder: b'{"kind":"%b",' % row.kind.encode()
    for group in GROUPS
    for row in group.resources
    if row.folder
}
"""By folder, the first bytes of the objects in it."""


@asynccontextmanager
async def opened_snapshot(path: Path, *, replaces: bool = True) -> AsyncIterator[Archive]:
    """Open and check a snapshot; raise `BadArchive` if it is damaged.

    If it `replaces` objects, each value must be an object of its key's kind too. A new store may contain values that
    cannot be read: only requests for such an object fail.
    """
    with path.open("rb") as file:
        yield await asyncio.to_thread(check_snapshot if replaces else check, file, str(path))
