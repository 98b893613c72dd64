"""A snapshot's file: it is known by its name only when it is whole, and looked at as a whole before it is used."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from mockube.etcd.archive.read import Archive, check
from mockube.etcd.embedded.disk import Disk, NewFile


async def write(path: Path, pieces: AsyncGenerator[bytes, None]) -> Archive:
    """Give the name to what came, if all of it came; what had the name before is replaced then and not earlier."""
    file, size = NewFile(Disk(), path), 0
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                file.write(piece, size)
                size += len(piece)
        with file.path.open("rb") as written:
            found = check(written, f"what came for {path}")
        file.publish()
    finally:
        file.discard()
    return found
