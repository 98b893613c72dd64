"""What of a snapshot is put into a store of Kubernetes objects, and from which revision on a new store counts.

A snapshot is a file of `etcd.archive`: all keys below the prefix, at one revision.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from etcd.archive.read import Archive, check
from etcd.archive.restore import Place
from etcd.kv import Revision

OF_PROCESSES: Final = (b"leases/kube-system/",)
"""Which manager leads and which servers there are: true of the processes that run now, whatever a snapshot says."""
BUMP: Final = 1_000_000_000
"""Revisions that the cluster may have told after its snapshot was taken; as many as etcd's own tool is told to leave out."""


def place(root: bytes) -> Place:
    return Place(root=root, spared=OF_PROCESSES)


def first_revision(archive: Archive) -> Revision:
    """For a store that begins with the snapshot: no client can know a later one, and take what comes for what was."""
    return archive.opening.revision + BUMP


@asynccontextmanager
async def opened_snapshot(path: Path) -> AsyncIterator[Archive]:
    """All of it has been looked at: `BadArchive` if any of it is not as it was written."""
    with path.open("rb") as file:
        yield await asyncio.to_thread(check, file, str(path))
