"""Opens the store that the command line asks for: in memory, on a disk, or an etcd."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from apimachinery.clock import Clock
from apiserver.config.settings import Store
from etcd.embedded.disk import Disk
from etcd.embedded.durable import DurableStore
from etcd.embedded.memory import MemoryStore
from etcd.kv import KV

STORE_FOLDER = "etcd"
"""Below --data-dir, beside the folder of certificates."""


@asynccontextmanager
async def opened(settings: Store, clock: Clock) -> AsyncIterator[KV]:
    kv = await _open(settings, clock)
    try:
        yield kv
    finally:
        await kv.close()


async def _open(settings: Store, clock: Clock) -> KV:
    if settings.etcd_servers:
        return await _connect(settings, clock)
    if settings.data_dir is not None:
        disk = Disk(fsync=settings.fsync)
        return await DurableStore.open(settings.data_dir / STORE_FOLDER, clock=clock, disk=disk)
    return MemoryStore(clock=clock)


async def _connect(settings: Store, clock: Clock) -> KV:
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
