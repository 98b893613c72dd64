"""The etcd servers of the test fixtures: empty, restartable, and ended with the test."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from mockube.component_base.clock import RealClock
from mockube.etcd.kv import Put, Range
from mockube.etcd.remote.store import RemoteStore
from tests.support.stores.etcd_server import START_TIMEOUT

pytestmark = pytest.mark.etcd

ROOT = Path(__file__).parents[2]

START_ONE = """
from tests.support.stores.etcd_server import QUICK, EtcdServer
server = EtcdServer(options=QUICK)
server.start()
print(server.pid, flush=True)
input()
"""


async def connect_store(server):
    return await RemoteStore.connect([server.url], clock=RealClock())


async def test_each_etcd_server_starts_empty(etcd_pool):
    for _ in range(2):
        server = etcd_pool.take()
        store = await connect_store(server)
        assert (await store.put(Put(key=b"k", value=b"v"))).revision == 2
        await store.close()
        server.stop()


async def test_killed_etcd_server_keeps_data(durable_etcd):
    store = await connect_store(durable_etcd)
    await store.put(Put(key=b"k", value=b"v"))
    await store.close()
    durable_etcd.kill()
    durable_etcd.start()
    store = await connect_store(durable_etcd)
    assert (await store.range(Range(key=b"k"))).count == 1
    await store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_etcd_server_ends_with_its_parent(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", START_ONE],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        server = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            ended, _, _ = select.select([server], [], [], START_TIMEOUT)
        finally:
            os.close(server)
    assert ended == [server]
