import pytest

from mockube.etcd.errors import Interrupted, InvalidRequest, LeaseNotFound, PermissionDenied
from mockube.etcd.kv import (
    DeleteResult,
    Event,
    EventKind,
    KeyValue,
    Lease,
    PutResult,
    RangeResult,
    TxnResult,
)
from mockube.etcd.remote import responses
from mockube.etcd.remote.responses import MemberStatus, WatchResponse

HEADER = b'"header":{"cluster_id":"771749639456167407","member_id":"790","revision":"%d","raft_term":"2"}'


def answer_text(revision, rest=b""):
    return b"{" + HEADER % revision + rest + b"}"


def watch_result(revision, rest=b""):
    return b'{"result":' + answer_text(revision, rest) + b"}"


A = b'{"key":"YQ==","create_revision":"2","mod_revision":"4","version":"3","value":"eA==","lease":"7"}'
KV_A = KeyValue(key=b"a", value=b"x", create_revision=2, mod_revision=4, version=3, lease=7)
EMPTY = b'{"key":"Yg==","create_revision":"5","mod_revision":"5","version":"1"}'
KV_EMPTY = KeyValue(key=b"b", value=b"", create_revision=5, mod_revision=5, version=1)


@pytest.mark.parametrize(
    ("decoded", "expected"),
    [
        pytest.param(
            responses.decode_range(
                answer_text(9, b',"kvs":[' + A + b"," + EMPTY + b'],"more":true,"count":"12"')
            ),
            RangeResult(revision=9, kvs=[KV_A, KV_EMPTY], count=12, more=True),
            id="range",
        ),
        pytest.param(
            responses.decode_range(answer_text(9)), RangeResult(revision=9, kvs=[], count=0), id="empty range"
        ),
        pytest.param(responses.decode_put(answer_text(2)), PutResult(revision=2), id="put"),
        pytest.param(
            responses.decode_put(answer_text(5, b',"prev_kv":' + A)),
            PutResult(revision=5, previous=KV_A),
            id="put over an existing key",
        ),
        pytest.param(
            responses.decode_delete(answer_text(6, b',"deleted":"1","prev_kvs":[' + A + b"]")),
            DeleteResult(revision=6, deleted=1, previous=[KV_A]),
            id="delete",
        ),
        pytest.param(
            responses.decode_delete(answer_text(6)),
            DeleteResult(revision=6, deleted=0, previous=[]),
            id="empty",
        ),
        pytest.param(responses.decode_leases(answer_text(1)), [], id="no leases"),
        pytest.param(
            responses.decode_leases(answer_text(1, b',"leases":[{"ID":"9"},{"ID":"7587872436291289099"}]')),
            [9, 7587872436291289099],
            id="leases",
        ),
        pytest.param(
            responses.decode_grant(answer_text(1, b',"ID":"7","TTL":"5"')),
            Lease(id=7, ttl=5, remaining=5),
            id="grant",
        ),
        pytest.param(
            responses.decode_keep_alive(watch_result(1, b',"ID":"7","TTL":"5"')),
            Lease(id=7, ttl=5, remaining=5),
            id="keep alive",
        ),
        pytest.param(
            responses.decode_time_to_live(
                answer_text(1, b',"ID":"7","TTL":"4","grantedTTL":"5","keys":["YQ=="]')
            ),
            Lease(id=7, ttl=5, remaining=4, keys=[b"a"]),
            id="time to live",
        ),
        pytest.param(
            responses.decode_status(
                answer_text(4, b',"version":"3.5.1","dbSize":"28672","leader":"18446744073709551615"')
            ),
            MemberStatus(revision=4, version="3.5.1", size=28672),
            id="status",
        ),
    ],
)
def test_answers_are_decoded(decoded, expected):
    assert decoded == expected


def test_txn_results_have_revisions_of_their_operations():
    body = answer_text(
        5,
        b',"succeeded":true,"responses":['
        b'{"response_range":{"header":{"revision":"4"},"kvs":[' + A + b'],"count":"1"}},'
        b'{"response_put":{"header":{"revision":"5"}}},'
        b'{"response_delete_range":{"header":{"revision":"5"},"deleted":"2"}}]',
    )
    assert responses.decode_txn(body) == TxnResult(
        revision=5,
        succeeded=True,
        results=[
            RangeResult(revision=4, kvs=[KV_A], count=1),
            PutResult(revision=5),
            DeleteResult(revision=5, deleted=2, previous=[]),
        ],
    )


def test_failed_txn_without_responses_is_decoded():
    assert responses.decode_txn(answer_text(5)) == TxnResult(revision=5, succeeded=False, results=[])


@pytest.mark.parametrize(
    "decoded",
    [
        pytest.param(lambda: responses.decode_keep_alive(watch_result(1, b',"ID":"8"')), id="keep alive"),
        pytest.param(
            lambda: responses.decode_time_to_live(answer_text(1, b',"ID":"8","TTL":"-1"')), id="time to live"
        ),
    ],
)
def test_missing_lease_is_decoded(decoded):
    with pytest.raises(LeaseNotFound, match="lease 8"):
        decoded()


def test_events_are_decoded():
    tombstone = b'{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"8"},"prev_kv":' + A + b"}"
    decoded = responses.decode_watch(watch_result(8, b',"events":[{"kv":' + EMPTY + b"}," + tombstone + b"]"))
    deleted = KeyValue(key=b"a", value=b"", create_revision=0, mod_revision=8, version=0)
    assert decoded.events == [
        Event(kind=EventKind.PUT, kv=KV_EMPTY),
        Event(kind=EventKind.DELETE, kv=deleted, previous=KV_A),
    ]


def watch_answer(revision, **fields):
    nothing = {
        "created": False,
        "on_demand": False,
        "fragment": False,
        "compact_revision": 0,
        "events": [],
    }
    return WatchResponse(revision=revision, **{**nothing, **fields})


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        pytest.param(b',"created":true', watch_answer(4, created=True), id="created"),
        pytest.param(b"", watch_answer(4), id="a notification from etcd"),
        pytest.param(b',"watch_id":"-1"', watch_answer(4, on_demand=True), id="a notification on demand"),
        pytest.param(b',"fragment":true', watch_answer(4, fragment=True), id="a fragment"),
        pytest.param(
            b',"canceled":true,"compact_revision":"3"', watch_answer(4, compact_revision=3), id="compacted"
        ),
    ],
)
def test_watch_response_is_decoded(rest, expected):
    assert responses.decode_watch(watch_result(4, rest)) == expected


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param(
            watch_result(
                4, b',"created":true,"canceled":true,"cancel_reason":"mvcc: watcher range is empty"'
            ),
            InvalidRequest,
            id="invalid watch",
        ),
        pytest.param(
            watch_result(
                4,
                b',"created":true,"canceled":true,"cancel_reason":'
                b'"rpc error: code = PermissionDenied desc = etcdserver: permission denied"',
            ),
            PermissionDenied,
            id="forbidden watch",
        ),
        pytest.param(watch_result(4, b',"canceled":true'), Interrupted, id="watch cancelled by etcd"),
        pytest.param(
            b'{"error":{"grpc_code":14,"http_code":503,"message":"transport is closing"}}',
            Interrupted,
            id="broken stream",
        ),
    ],
)
def test_cancelled_watch_response_is_an_error(message, error):
    with pytest.raises(error):
        responses.decode_watch(message)
