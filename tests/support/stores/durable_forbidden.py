"""A program that loses access to its data directory, as the user nobody if it is started as root.

python tests/support/stores/durable_forbidden.py DIRECTORY
"""

import asyncio
import os
import sys
from pathlib import Path

from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.errors import KVError
from mockube.etcd.kv import Put, Range

NO_USER = 65534
SMALL = 40
"""A segment is full after one put."""


def print_outcome(action, answer):
    kind = f"{type(answer).__name__}: " if isinstance(answer, KVError) else ""
    sys.stdout.write(f"{action}: {kind}{answer}\n")


async def attempt(action, work, show):
    try:
        print_outcome(action, show(await work))
    except KVError as error:
        print_outcome(action, error)


def show_range(found):
    return ", ".join(f"{kv.key.decode()}={kv.value.decode()} at {kv.mod_revision}" for kv in found.kvs)


async def main(directory):
    directory = Path(directory) / "data"
    directory.mkdir(mode=0o500)
    await attempt("open", DurableStore.open(directory, clock=RealClock()), str)
    directory.chmod(0o700)
    store = await DurableStore.open(directory, clock=RealClock(), segment_bytes=SMALL)
    await store.put(Put(key=b"a", value=b"1"))
    directory.chmod(0o500)
    await attempt("put", store.put(Put(key=b"a", value=b"2")), lambda result: result.revision)
    await attempt("range", store.range(Range(key=b"a")), show_range)
    directory.chmod(0o700)
    await attempt("put again", store.put(Put(key=b"a", value=b"2")), lambda result: result.revision)
    await store.close()
    (directory / "00000001.log").chmod(0)
    await attempt("open again", DurableStore.open(directory, clock=RealClock()), str)


if __name__ == "__main__":
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NO_USER)
        os.setuid(NO_USER)
    asyncio.run(main(*sys.argv[1:]))
