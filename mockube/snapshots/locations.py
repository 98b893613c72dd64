"""Where a snapshot can be taken from and put: a server that runs, a folder that none uses, an etcd."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import Conflict, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.config.settings import Store
from mockube.apiserver.request.snapshots import PATH
from mockube.apiserver.snapshots import restore_target
from mockube.apiserver.storage.keys import Layout
from mockube.apiserver.store import STORE_FOLDER, connect, open_durable
from mockube.connect import open_client
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.kubeconfig import Access
from mockube.etcd.archive.read import Archive, check
from mockube.etcd.archive.restore import NotEmpty, restore
from mockube.etcd.archive.write import archive
from mockube.etcd.embedded.directory import is_new
from mockube.etcd.embedded.disk import Disk, NewFile
from mockube.etcd.errors import Locked
from mockube.etcd.kv import KV, Revision
from mockube.failure import Failure, Missing

SECONDS: Final = 600.0
"""Within which a server must have sent or taken all of a snapshot."""


UNSUPPORTED_SERVER: Final = (
    "the server is not mockube's and has no snapshots: use --etcd-servers for its etcd"
)


class NeedsReplace(Failure):
    """Something is there already."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: use --replace to allow it")


class SnapshotLocation(Protocol):
    def pieces(self) -> AsyncGenerator[bytes, None]:
        """Of the file."""

    async def put(self, snapshot: Archive, *, replace: bool) -> None: ...


class Running(Struct, frozen=True, kw_only=True):
    """An API server of ours, whatever it stores in."""

    access: Access
    clock: Clock

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        async with self._connect() as client, client.download(PATH, within=SECONDS) as stream:
            async for piece in stream.chunks():
                yield piece

    async def put(self, snapshot: Archive, *, replace: bool) -> None:
        snapshot.file.seek(0)
        query = f"?name={quote(snapshot.name, safe='')}&replace={str(replace).lower()}"
        async with self._connect() as client:
            await client.with_timeout(SECONDS).raw("PUT", PATH + query, body=snapshot.file.read())

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Client]:
        async with open_client(self.access, self.clock) as client:
            try:
                yield client
            except Conflict as error:
                raise NeedsReplace(error.message) from error
            except NotFound as error:
                raise Missing(UNSUPPORTED_SERVER) from error


class Folder(Struct, frozen=True, kw_only=True):
    """What an API server was given as --data-dir, while none runs there."""

    path: Path
    prefix: str
    clock: Clock

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        if is_new(self.path / STORE_FOLDER):
            raise Missing(f"{self.path} contains no store: name the folder of `mockube up --data-dir`")
        async with self._open() as kv:
            async for piece in _pieces(kv, self.prefix, self.clock):
                yield piece

    async def put(self, snapshot: Archive, *, replace: bool) -> None:
        async with self._open(restored=snapshot.opening.revision) as kv:
            await _put(kv, snapshot, self.prefix, replace=replace)

    @asynccontextmanager
    async def _open(self, *, restored: Revision = 0) -> AsyncIterator[KV]:
        try:
            kv = await open_durable(self.path, self.clock, disk=Disk(), restored=restored)
        except Locked as error:
            raise Failure(f"{error}: omit --data-dir to use the running cluster") from error
        try:
            yield kv
        finally:
            await kv.close()


class Etcd(Struct, frozen=True, kw_only=True):
    """An etcd, with whatever API servers it has; while something is restored there should be none."""

    settings: Store
    clock: Clock

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        async with self._open() as kv:
            async for piece in _pieces(kv, self.settings.etcd_prefix, self.clock):
                yield piece

    async def put(self, snapshot: Archive, *, replace: bool) -> None:
        async with self._open() as kv:
            await _put(kv, snapshot, self.settings.etcd_prefix, replace=replace)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[KV]:
        kv = await connect(self.settings, self.clock)
        try:
            yield kv
        finally:
            await kv.close()


def _pieces(kv: KV, prefix: str, clock: Clock) -> AsyncGenerator[bytes, None]:
    return archive(kv, Layout(prefix).root, taken_at=format_time(clock.now()))


async def _put(kv: KV, snapshot: Archive, prefix: str, *, replace: bool) -> None:
    try:
        await restore(kv, snapshot, restore_target(Layout(prefix).root), replace=replace)
    except NotEmpty as error:
        raise NeedsReplace(str(error)) from error


async def write(path: Path, pieces: AsyncGenerator[bytes, None]) -> Archive:
    """Write the pieces to a file that gets its name when it is complete; an older file of the name is replaced then."""
    file, size = NewFile(Disk(), path), 0
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                file.write(piece, size)
                size += len(piece)
        with file.path.open("rb") as written:
            snapshot = check(written, f"the snapshot for {path}")
        file.publish()
    finally:
        file.discard()
    return snapshot
