"""Snapshot files in tests: created, read as lines, and damaged."""

import gzip
import io

from mockube.etcd.archive.read import check
from mockube.etcd.archive.write import archive
from mockube.etcd.kv import Put

ROOT = b"/registry/"
TAKEN_AT = "2030-01-01T00:00:00Z"
NAME = "saved.gz"


async def saved(kv, root=ROOT):
    """Return the file's bytes."""
    return b"".join([piece async for piece in archive(kv, root, taken_at=TAKEN_AT)])


def opened(data):
    return check(io.BytesIO(data), NAME)


def lines(data):
    """Return all of the file's lines."""
    return gzip.decompress(data).splitlines(keepends=True)


def entries(data):
    """Return the parts of the file that do not depend on the store's revision."""
    return lines(data)[1:-1]


async def fill(kv, content):
    """`content` is values by keys, below the root."""
    for key, value in content.items():
        await kv.put(Put(key=ROOT + key, value=value))
