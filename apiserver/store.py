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
from etcd.remote.gateway import TLS
from etcd.remote.store import RemoteStore

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
        return await RemoteStore.connect(settings.etcd_servers, clock=clock, tls=_tls(settings))
    if settings.data_dir is not None:
        disk = Disk(fsync=settings.fsync)
        return await DurableStore.open(settings.data_dir / STORE_FOLDER, clock=clock, disk=disk)
    return MemoryStore(clock=clock)


def _tls(settings: Store) -> TLS | None:
    if settings.etcd_cafile is None:
        return None
    certificate, key = settings.etcd_certfile, settings.etcd_keyfile
    return TLS(ca=str(settings.etcd_cafile), cert=_text(certificate), key=_text(key))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
