"""Opens the store that the command line asks for: in memory, on a disk, or an etcd."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from apimachinery.clock import Clock
from apiserver.config.settings import Store
from apiserver.storage.keys import Layout
from apiserver.storage.snapshots import first_revision, opened_snapshot, place
from etcd.archive.mark import refuse_half_restored
from etcd.archive.restore import NotEmpty, restore
from etcd.embedded.directory import begin_after, is_new
from etcd.embedded.disk import Disk
from etcd.embedded.durable import DurableStore
from etcd.embedded.memory import MemoryStore
from etcd.embedded.mvcc import Mvcc
from etcd.embedded.store import EmbeddedStore
from etcd.kv import KV, Revision

LOG = logging.getLogger(__name__)

STORE_FOLDER = "etcd"
"""Below --data-dir, beside the folder of certificates."""


@asynccontextmanager
async def opened(settings: Store, clock: Clock) -> AsyncIterator[KV]:
    kv = await _open(settings, clock)
    try:
        await refuse_half_restored(kv, Layout(settings.etcd_prefix).root)
        yield kv
    finally:
        await kv.close()


async def _open(settings: Store, clock: Clock) -> KV:
    if settings.etcd_servers:
        return await connect(settings, clock)
    if settings.snapshot is None:
        return await _embedded(settings, clock)
    async with opened_snapshot(settings.snapshot) as archive:
        kv = await _embedded(settings, clock, after=first_revision(archive))
        try:
            await restore(kv, archive, place(Layout(settings.etcd_prefix).root), replace=False)
        except NotEmpty as error:  # as after a restart, with a store on disk
            LOG.warning("%s is not used, for the store is not new: %s", settings.snapshot, error)
        except BaseException:
            await kv.close()
            raise
    return kv


async def _embedded(settings: Store, clock: Clock, *, after: Revision | None = None) -> EmbeddedStore:
    if settings.data_dir is not None:
        return await open_durable(settings.data_dir, clock, disk=Disk(fsync=settings.fsync), after=after)
    if after is None:
        return MemoryStore(clock=clock)
    core = Mvcc()
    core.load(after, (), ())
    return MemoryStore(clock=clock, core=core)


async def open_durable(
    data_dir: Path, clock: Clock, *, disk: Disk, after: Revision | None = None
) -> DurableStore:
    """The store below a --data-dir; one that is new counts on from the revision, if one is given."""
    folder = data_dir / STORE_FOLDER
    if after is not None and is_new(folder):
        await asyncio.to_thread(begin_after, folder, after, disk)
    return await DurableStore.open(folder, clock=clock, disk=disk)


async def connect(settings: Store, clock: Clock) -> KV:
    """The etcd that the flags lead to."""
    # A sixth of the whole start is the import of etcd's client, so only those pay for it who have an etcd.
    from etcd.remote.gateway import TLS  # noqa: PLC0415 - see above
    from etcd.remote.store import RemoteStore  # noqa: PLC0415 - see above

    tls = None
    if settings.etcd_cafile is not None:
        certificate, key = _text(settings.etcd_certfile), _text(settings.etcd_keyfile)
        tls = TLS(ca=str(settings.etcd_cafile), cert=certificate, key=key)
    return await RemoteStore.connect(settings.etcd_servers, clock=clock, tls=tls)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
