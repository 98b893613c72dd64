"""A running watch cache of ConfigMaps, and writes of ConfigMaps to its store."""

import asyncio
import contextlib

from mockube.apiserver.storage.stored_object import read_value
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.etcd.kv import Put

FOLDER = b"/registry/configmaps/"


def put(number, size=0):
    text = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%d","uid":"u"},"data":{"a":"%b"}}'
    return Put(key=FOLDER + b"ns/%06d" % number, value=text % (number, b"x" * size))


@contextlib.asynccontextmanager
async def mirroring(store, clock, read=read_value):
    watch_cache = WatchCache(store, b"/registry/", clock=clock, read=read)
    watch_cache.resource_cache(FOLDER)
    running = asyncio.create_task(watch_cache.run())
    await watch_cache.progress.wait_listed()
    try:
        yield watch_cache
    finally:
        running.cancel()
        await asyncio.wait([running])
