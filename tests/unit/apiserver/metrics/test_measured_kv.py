"""Requests to a store are counted by operation and resource."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.metrics.measured_kv import MeasuredKV
from mockube.apiserver.storage.stored_object import Layout
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.etcd.errors import Unavailable
from mockube.etcd.kv import Compare, Delete, Put, Range, Target, Txn
from tests.support.metric_samples import sample_value

PODS, THINGS = GroupResource("", "pods"), GroupResource("example.com", "things")
ROWS = {
    PODS: SimpleNamespace(folder=b"pods/"),
    THINGS: SimpleNamespace(folder=b"example.com/things/"),
}
POD, THING = b"/registry/pods/default/a", b"/registry/example.com/things/a"


class SlowKV:
    """A store whose requests take two seconds."""

    def __init__(self, clock):
        self._clock = clock
        self.is_broken = False
        nothing = SimpleNamespace
        self.delete = self.watch = self.compact = self.grant = self.keep_alive = self.revoke = nothing
        self.time_to_live = self.leases = self.status = self.close = nothing

    async def put(self, request):
        self._clock.advance(2)
        if self.is_broken:
            raise Unavailable("broken")
        return request

    async def range(self, request):
        return await self.put(request)

    async def txn(self, request):
        return await self.put(request)


@pytest.fixture
def store():
    clock, metrics = SteppedClock(), MetricsRegistry()
    kv = SlowKV(clock)
    measured = MeasuredKV(kv, Layout("/registry"), ROWS, clock.monotonic, metrics)
    return SimpleNamespace(kv=kv, measured=measured, metrics=metrics)


def change(key, revision, *operations):
    return Txn(compare=(Compare(key=key, target=Target.MOD, operand=revision),), then=operations)


@pytest.mark.parametrize(
    ("request_", "operation", "resource"),
    [
        (change(POD, 0, Put(key=POD, value=b"")), "create", PODS),
        (change(POD, 7, Put(key=POD, value=b"")), "update", PODS),
        (change(POD, 7, Delete(key=POD)), "delete", PODS),
        (change(THING, 0, Put(key=THING, value=b"")), "create", THINGS),
        (Txn(then=(Range(key=POD),)), "get", PODS),
        (Txn(then=(Put(key=b"/registry/leases", value=b""),)), "update", GroupResource("", "leases")),
        (Txn(then=(Put(key=b"/registry/\xff", value=b""),)), "update", GroupResource("", "\ufffd")),
    ],
)
async def test_transactions_are_counted_by_their_first_change(store, request_, operation, resource):
    for _ in range(2):
        await store.measured.txn(request_)
    labels = {"operation": operation, "group": resource.group, "resource": resource.resource}
    assert sample_value(store.metrics, "etcd_requests_total", labels) == 2
    assert sample_value(store.metrics, "etcd_request_duration_seconds_sum", labels) == 4


async def test_reads_are_lists_or_gets(store):
    await store.measured.range(Range(key=POD))
    await store.measured.range(Range(key=b"/registry/pods/", range_end=b"/registry/pods0"))
    for operation in ("get", "list"):
        labels = {"operation": operation, "group": "", "resource": "pods"}
        assert sample_value(store.metrics, "etcd_requests_total", labels) == 1


async def test_failed_requests_are_counted_as_errors_too(store):
    store.kv.is_broken = True
    with pytest.raises(Unavailable):
        await store.measured.put(Put(key=POD, value=b""))
    labels = {"operation": "update", "group": "", "resource": "pods"}
    assert sample_value(store.metrics, "etcd_requests_total", labels) == 1
    assert sample_value(store.metrics, "etcd_request_errors_total", labels) == 1
