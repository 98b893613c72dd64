import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.errors import Compacted, FutureRevision, Interrupted, InvalidRequest, PermissionDenied
from mockube.etcd.kv import Compare, Delete, Put, Range, RangeResult, Target, Txn, TxnResult, WatchRequest
from mockube.etcd.remote.errors import RevisionCompacted, RevisionInFuture
from mockube.etcd.remote.store import RemoteStore
from mockube.etcd.remote.transport import Transport
from tests.support.stores.etcd_fakes import CREATED, FakeGateway, FakeStream, watch_message

PUT = Put(key=b"k", value=b"v")
READ = Range(key=b"k")
COMPARE = Compare(key=b"k", target=Target.MOD, operand=3)


def store_over(*gateways):
    clock = SteppedClock()
    return RemoteStore(Transport(gateways, credentials=None, deadline=5.0, clock=clock), clock)


@pytest.mark.parametrize(
    ("call", "again"),
    [
        pytest.param(lambda store: store.range(READ), True, id="range"),
        pytest.param(lambda store: store.put(PUT), False, id="put"),
        pytest.param(lambda store: store.delete(Delete(key=b"k")), False, id="delete"),
        pytest.param(lambda store: store.txn(Txn(compare=[COMPARE], then=[PUT])), False, id="set if"),
        pytest.param(lambda store: store.txn(Txn(then=[READ], otherwise=[PUT])), False, id="set unless"),
        pytest.param(lambda store: store.txn(Txn(compare=[COMPARE], then=[READ])), True, id="read if"),
        pytest.param(lambda store: store.compact(3), False, id="compact"),
        pytest.param(lambda store: store.grant(5), False, id="grant"),
        pytest.param(lambda store: store.keep_alive(7), True, id="keep alive"),
        pytest.param(lambda store: store.revoke(7), False, id="revoke"),
        pytest.param(lambda store: store.time_to_live(7), True, id="time to live"),
        pytest.param(lambda store: store.leases(), True, id="leases"),
    ],
)
async def test_idempotent_request_is_repeated_after_unknown_outcome(call, again):
    broken, up = FakeGateway(Interrupted("cut")), FakeGateway("answer")
    store = store_over(broken, up)
    if again:
        assert await call(store) == "answer"
    else:
        with pytest.raises(Interrupted):
            await call(store)
        assert up.requests == []


PONG = TxnResult(revision=40, succeeded=True)


@pytest.mark.parametrize(
    ("call", "requested"),
    [
        pytest.param(lambda store: store.range(Range(key=b"k", revision=50)), 50, id="range"),
        pytest.param(lambda store: store.compact(50), 50, id="compact"),
        pytest.param(
            lambda store: store.txn(Txn(then=[READ, Range(key=b"k", revision=50)])), 50, id="transaction"
        ),
    ],
)
async def test_future_revision_error_has_current_revision(call, requested):
    with pytest.raises(FutureRevision) as raised:
        await call(store_over(FakeGateway(RevisionInFuture(""), PONG)))
    assert (raised.value.requested, raised.value.current) == (requested, 40)


async def test_compact_revision_is_found_by_watch():
    cancelled = watch_message(40, canceled=True, compact_revision=30)
    member = FakeGateway(RevisionCompacted(""), streams=[stream := FakeStream(CREATED, cancelled)])
    with pytest.raises(Compacted) as raised:
        await store_over(member).range(Range(key=b"k", revision=20))
    assert (raised.value.requested, raised.value.compact_revision) == (20, 30)
    assert stream.closed


async def test_compact_revision_is_0_without_watch_permission():
    denied = watch_message(40, created=True, canceled=True, cancel_reason="etcdserver: permission denied")
    member = FakeGateway(RevisionCompacted(""), streams=[FakeStream(denied)])
    with pytest.raises(Compacted) as raised:
        await store_over(member).compact(20)
    assert (raised.value.requested, raised.value.compact_revision) == (20, 0)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.watch(WatchRequest(key=b"")), id="a watch of no key"),
        pytest.param(lambda store: store.grant(0), id="a lease of no time"),
    ],
)
async def test_ambiguous_request_is_refused_before_sending(call):
    member = FakeGateway("answer")
    with pytest.raises(InvalidRequest):
        await call(store_over(member))
    assert member.requests == []


async def test_watch_from_now_starts_after_revision_of_any_member():
    """The member that serves the watch may lag behind, and etcd's "from now on" means the member's revision."""
    member = FakeGateway(RangeResult(revision=41, kvs=(), count=0), streams=[FakeStream(CREATED)])
    store = store_over(member)
    async with await store.watch(WatchRequest(key=b"k")):
        assert b'"start_revision":42' in member.bodies[-1]


async def test_refused_watch_raises_at_creation():
    denied = watch_message(4, created=True, canceled=True, cancel_reason="etcdserver: permission denied")
    with pytest.raises(PermissionDenied):
        await store_over(FakeGateway(streams=[FakeStream(denied)])).watch(
            WatchRequest(key=b"k", start_revision=3)
        )


@pytest.mark.parametrize("endpoints", [[], ["localhost:2379"], ["http://a:2379", "unix://b"]])
async def test_invalid_endpoint_is_refused(endpoints):
    with pytest.raises(InvalidRequest, match="endpoints must be"):
        await RemoteStore.connect(endpoints, clock=SteppedClock())
