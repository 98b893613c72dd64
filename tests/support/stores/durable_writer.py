"""A program that writes to a durable store until it is killed, and prints the acknowledged writes.

    python tests/support/stores/durable_writer.py DIRECTORY ROUND

Each line on its output is one call: `try` before it is made, `ok` with its revision once it was answered.
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import Delete, Put

WRITERS = 8
SEGMENT_BYTES = 20_000
"""Small enough that segments end and snapshots are taken many times a second."""


def print_event(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def call(name, key, work):
    print_event("try", name, key)
    result = await work
    print_event("ok", name, key, result.revision)


async def write(store, prefix):
    for n in count():
        key = f"{prefix}/{n}"
        await call("put", key, store.put(Put(key=key.encode(), value=key.encode() * 20)))
        if n % 3 == 2:
            await call("delete", key, store.delete(Delete(key=key.encode())))
        if n % 20 == 19:
            lease = await store.grant(3600)
            await call(
                "put",
                f"{key}/leased",
                store.put(Put(key=f"{key}/leased".encode(), value=b"", lease=lease.id)),
            )
            await compact(store)


async def compact(store):
    try:
        await store.compact((await store.status()).revision - 50)
    except Compacted:
        print_event("compacted")  # by another of the writers


async def main(directory, round_number):
    store = await DurableStore.open(Path(directory), clock=RealClock(), segment_bytes=SEGMENT_BYTES)
    async with asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(write(store, f"{round_number}/{writer}"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
