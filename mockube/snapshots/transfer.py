"""Save and restore snapshots of a running server, of a stopped server's data folder, or of an etcd."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from mockube.apimachinery.status import Conflict, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.config.settings import StorageOptions
from mockube.apiserver.request.snapshot_endpoint import PATH
from mockube.apiserver.snapshot_files import restore_target
from mockube.apiserver.storage.stored_object import Layout
from mockube.apiserver.store import STORE_FOLDER, connect, open_durable
from mockube.client.kubeconfig import Access
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import Clock
from mockube.control_objects import SNAPSHOTS
from mockube.etcd.archive.read import Archive, check
from mockube.etcd.archive.restore import NotEmpty, restore
from mockube.etcd.archive.write import archive
from mockube.etcd.embedded.directory import is_new
from mockube.etcd.embedded.disk import Disk, NewFile
from mockube.etcd.errors import Locked
from mockube.etcd.kv import KV, Revision
from mockube.failure import Failure, Missing

TRANSFER_SECONDS: Final = 600.0
"""The time in which a server must send or receive a whole snapshot."""


UNSUPPORTED_SERVER: Final = (
    "the server is not mockube's and cannot save or restore snapshots: use --etcd-servers for its etcd"
)


class NeedsReplace(Failure):
    """The target contains objects that would be lost."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: use --replace to allow it")


class SnapshotLocation(Protocol):
    """A source and target of snapshots."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a new snapshot's file."""

    async def restore(self, snapshot: Archive, *, replace: bool) -> None:
        """Restore a snapshot; raise NeedsReplace if the target has objects and `replace` is False."""


class ServerLocation(Struct, frozen=True, kw_only=True):
    """A running API server of mockube, with any store."""

    access: Access
    clock: Clock

    async def chunks(self, snapshot: str = "") -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a new snapshot, or of the object of the kind Snapshot with a name."""
        path = f"{PATH}?snapshot={quote(snapshot, safe='')}" if snapshot else PATH
        async with (
            self._connect() as client,
            client.download(path, timeout_seconds=TRANSFER_SECONDS) as stream,
        ):
            async for chunk in stream.chunks():
                yield chunk

    async def restore(self, snapshot: Archive, *, replace: bool) -> None:
        snapshot.file.seek(0)
        query = f"?name={quote(snapshot.name, safe='')}&replace={str(replace).lower()}"
        async with self._connect() as client:
            await client.with_timeout(TRANSFER_SECONDS).raw("PUT", PATH + query, body=snapshot.file.read())

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Client]:
        async with open_client(self.access, self.clock) as client:
            try:
                yield client
            except Conflict as error:
                raise NeedsReplace(error.message) from error
            except NotFound as error:
                is_snapshot = error.details is not None and error.details.kind == SNAPSHOTS.plural
                raise Missing(error.message if is_snapshot else UNSUPPORTED_SERVER) from error


class FolderLocation(Struct, frozen=True, kw_only=True):
    """The --data-dir of an API server that does not run."""

    path: Path
    prefix: str
    clock: Clock

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        if is_new(self.path / STORE_FOLDER):
            raise Missing(f"{self.path} contains no store: name the folder of `mockube up --data-dir`")
        async with self._open() as kv:
            async for chunk in _archive_chunks(kv, self.prefix, self.clock):
                yield chunk

    async def restore(self, snapshot: Archive, *, replace: bool) -> None:
        async with self._open(restored=snapshot.header.revision) as kv:
            await _restore(kv, snapshot, self.prefix, replace=replace)

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


class EtcdLocation(Struct, frozen=True, kw_only=True):
    """An etcd. No API server should use it while a snapshot is restored."""

    settings: StorageOptions
    clock: Clock

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with self._open() as kv:
            async for chunk in _archive_chunks(kv, self.settings.etcd_prefix, self.clock):
                yield chunk

    async def restore(self, snapshot: Archive, *, replace: bool) -> None:
        async with self._open() as kv:
            await _restore(kv, snapshot, self.settings.etcd_prefix, replace=replace)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[KV]:
        kv = await connect(self.settings, self.clock)
        try:
            yield kv
        finally:
            await kv.close()


def _archive_chunks(kv: KV, prefix: str, clock: Clock) -> AsyncGenerator[bytes, None]:
    return archive(kv, Layout(prefix).root, taken_at=format_time(clock.now()))


async def _restore(kv: KV, snapshot: Archive, prefix: str, *, replace: bool) -> None:
    try:
        await restore(kv, snapshot, restore_target(Layout(prefix).root), replace=replace)
    except NotEmpty as error:
        raise NeedsReplace(str(error)) from error


async def write_snapshot(path: Path, chunks: AsyncGenerator[bytes, None]) -> Archive:
    """Write a snapshot to a file, which replaces an existing file of that name when it is complete and checked."""
    file, size = NewFile(Disk(), path), 0
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                file.write(chunk, size)
                size += len(chunk)
        with file.path.open("rb") as file_object:
            snapshot = check(file_object, f"the snapshot for {path}")
        file.publish()
    finally:
        file.discard()
    return snapshot
