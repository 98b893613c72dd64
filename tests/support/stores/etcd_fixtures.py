"""Fixtures with real etcd servers, for `tests/conftest.py` to import.

* `etcd_url`: a fresh server for this test alone, empty and at revision 1. It costs little, because the next one is
  started while a test runs.
* `shared_etcd_url`: one server for the whole session, for tests that tolerate the writes of others.
* `fresh_etcd`: the server behind `etcd_url`, to pause or stop.
* `durable_etcd`: a fresh server that keeps its data when it is killed, to start it again.
* `etcd_pool`: the pool of servers, for tests that need several.

They notify watches of progress every 100 ms, and their shortest lease is of one second. Use them from tests marked
`etcd`; where there is no etcd they fail.
"""

import pytest

from tests.support.stores.etcd_server import ALONE, QUICK, EtcdPool, EtcdServer

PROGRESS = "--experimental-watch-progress-notify-interval=100ms"
OPTIONS = (*QUICK, PROGRESS)


@pytest.fixture(scope="session")
def etcd_pool():
    pool = EtcdPool(options=OPTIONS)
    yield pool
    pool.close()


@pytest.fixture
def fresh_etcd(etcd_pool):
    server = etcd_pool.take()
    yield server
    server.stop()


@pytest.fixture
def durable_etcd():
    with EtcdServer(options=(*ALONE, PROGRESS)) as server:
        yield server


@pytest.fixture
def etcd_url(fresh_etcd):
    return fresh_etcd.url


@pytest.fixture(scope="session")
def shared_etcd_url():
    with EtcdServer(options=OPTIONS) as server:
        yield server.url
