"""Open the store that the flags select: in memory, on disk, or an etcd."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import client_context
from mockube.component_base.clock import Clock, RealClock
from mockube.etcd.archive.lines import check_restore_complete
from mockube.etcd.archive.restore import NotEmpty, restore
from mockube.etcd.embedded.directory import create_after, is_new
from mockube.etcd.embedded.disk import Disk
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.lock import check_private
from mockube.etcd.embedded.mvcc import Mvcc
from mockube.etcd.embedded.store import UNLIMITED, EmbeddedStore, HistoryLimits, MemoryStore
from mockube.etcd.kv import KV, Revision

from .config.history import limits_of_store
from .config.settings import StorageOptions
from .snapshot_files import opened_snapshot, restore_target
from .storage.stored_object import Layout

LOG = logging.getLogger(__name__)

STORE_FOLDER = "etcd"
"""The folder of the store below --data-dir."""


@asynccontextmanager
async def open_store(settings: StorageOptions, clock: Clock) -> AsyncIterator[KV]:
    kv = await _open(settings, clock)
    try:
        await check_restore_complete(kv, Layout(settings.etcd_prefix).root)
        yield kv
    finally:
        await kv.close()


async def _open(settings: StorageOptions, clock: Clock) -> KV:
    if settings.etcd_servers:
        return await connect(settings, clock)
    if settings.snapshot is None:
        return await _open_embedded(settings, clock)
    async with opened_snapshot(settings.snapshot, replaces=False) as archive:
        kv = await _open_embedded(settings, clock, restored=archive.header.revision)
        try:
            await restore(kv, archive, restore_target(Layout(settings.etcd_prefix).root), replace=False)
        except NotEmpty as error:  # for example after a restart with a store on disk
            LOG.warning(
                "%s is ignored, because the store already contains objects: %s", settings.snapshot, error
            )
        except BaseException:
            await kv.close()
            raise
    return kv


async def _open_embedded(settings: StorageOptions, clock: Clock, *, restored: Revision = 0) -> EmbeddedStore:
    limits = limits_of_store(settings.history)
    if settings.data_dir is not None:
        disk = Disk(fsync=settings.fsync)
        return await open_durable(settings.data_dir, clock, disk=disk, restored=restored, history=limits)
    core = Mvcc()
    core.load(initial_revision(clock.now(), restored=restored), (), ())
    return MemoryStore(clock=clock, core=core, history=limits)


async def open_durable(
    data_dir: Path,
    clock: Clock,
    *,
    disk: Disk,
    restored: Revision = 0,
    history: HistoryLimits = UNLIMITED,
) -> DurableStore:
    """Open the store below a --data-dir. A new one begins at `initial_revision`, after a `restored` snapshot."""
    folder = data_dir / STORE_FOLDER
    _refuse_unsafe(data_dir)
    if is_new(folder):
        after = initial_revision(clock.now(), restored=restored)
        await asyncio.to_thread(create_after, folder, after, disk)
    return await DurableStore.open(folder, clock=clock, disk=disk, history=history)


def _refuse_unsafe(data_dir: Path) -> None:
    if data_dir.is_dir():
        check_private(data_dir)


async def connect(settings: StorageOptions, clock: Clock) -> KV:
    """Connect to the etcd that the flags name."""
    # The import of the etcd client takes a sixth of the start-up time, so it is imported only if there is an etcd.
    from mockube.etcd.remote.store import RemoteStore  # noqa: PLC0415 - see above

    has_tls = any(url.startswith("https:") for url in settings.etcd_servers)
    tls = etcd_context(settings) if has_tls else None
    return await RemoteStore.connect(settings.etcd_servers, clock=clock.real, tls=tls)


def etcd_context(settings: StorageOptions) -> ssl.SSLContext:
    """Return the TLS context of connections to etcd."""
    authority = b"" if settings.etcd_cafile is None else settings.etcd_cafile.read_bytes()
    context = client_context(trusted_pool(authority), RealClock().now)
    if settings.etcd_certfile is not None:
        context.load_cert_chain(settings.etcd_certfile, settings.etcd_keyfile)
    return context


_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
REVISION_BUMP: Final = 1_000_000_000
"""The distance of a store's first revision from a snapshot that is ahead of the clock; etcdutl's --bump-revision."""


def initial_revision(now: datetime, *, restored: Revision = 0) -> Revision:
    """Return the first revision of a new store: the microseconds since 1970, or a revision after the restored snapshot.

    It is higher than all revisions of an earlier store at the same address. Clients keep the last resourceVersion and
    resume their watches from it: a new store that started at 1 would accept such a watch as one in the future, and send
    nothing. With a higher first revision it returns 410, and the client lists.

    No store writes a million times a second, so the revisions of one that began earlier lie below, unless the clock was
    set back by more than that store had run. The number is exact as a JSON double (below 2**53) until the year 2255.
    """
    by_clock = max((now - _UNIX_EPOCH) // _MICROSECOND, 1)
    return by_clock if by_clock > restored else restored + REVISION_BUMP
