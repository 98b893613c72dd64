import base64

import orjson
import pytest

from mockube.etcd.kv import FROM_KEY, Compare, Delete, Put, Range, Relation, Target, Txn, WatchRequest
from mockube.etcd.remote import requests


def b64(data):
    return base64.b64encode(data).decode()


K, V = b64(b"k\xff"), b64(b"v\x00")


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        pytest.param(requests.encode_range(Range(key=b"k\xff")), {"key": K}, id="one key"),
        pytest.param(
            requests.encode_range(Range(key=b"k\xff", range_end=FROM_KEY, revision=2**62, limit=3)),
            {"key": K, "range_end": "AA==", "revision": 2**62, "limit": 3},
            id="an interval at a revision, with a limit",
        ),
        pytest.param(
            requests.encode_range(Range(key=b"k\xff", keys_only=True, count_only=True)),
            {"key": K, "keys_only": True, "count_only": True},
            id="keys, count",
        ),
        pytest.param(
            requests.encode_put(Put(key=b"k\xff", value=b"v\x00")), {"key": K, "value": V}, id="put"
        ),
        pytest.param(
            requests.encode_put(Put(key=b"k\xff", value=b"", lease=7, previous=True)),
            {"key": K, "value": "", "lease": 7, "prev_kv": True},
            id="put an empty value with a lease",
        ),
        pytest.param(
            requests.encode_delete(Delete(key=b"k\xff", range_end=b"z", previous=True)),
            {"key": K, "range_end": "eg==", "prev_kv": True},
            id="delete an interval",
        ),
        pytest.param(
            requests.encode_watch(WatchRequest(key=b"k\xff", previous=True), 9),
            {
                "create_request": {
                    "key": K,
                    "range_end": "",
                    "start_revision": 9,
                    "prev_kv": True,
                    "progress_notify": True,
                    "fragment": True,
                }
            },
            id="watch",
        ),
        pytest.param(requests.encode_grant(5, 0), {"TTL": 5, "ID": 0}, id="grant"),
    ],
)
def test_requests_are_encoded(encoded, expected):
    assert orjson.loads(encoded) == expected


def test_txn_operations_are_encoded():
    txn = Txn(
        compare=[Compare(key=b"k\xff", target=Target.MOD, operand=4)],
        then=[Put(key=b"k\xff", value=b"v\x00"), Delete(key=b"k\xff")],
        otherwise=[Range(key=b"k\xff")],
    )
    assert orjson.loads(requests.encode_txn(txn)) == {
        "compare": [{"key": K, "target": "MOD", "result": "EQUAL", "mod_revision": 4}],
        "success": [
            {"request_put": {"key": K, "value": V}},
            {"request_delete_range": {"key": K, "prev_kv": False}},
        ],
        "failure": [{"request_range": {"key": K}}],
    }


@pytest.mark.parametrize(
    ("target", "operand", "field"),
    [
        (Target.VERSION, 1, {"version": 1}),
        (Target.CREATE, 2, {"create_revision": 2}),
        (Target.MOD, 3, {"mod_revision": 3}),
        (Target.VALUE, b"v\x00", {"value": V}),
        (Target.LEASE, 5, {"lease": 5}),
    ],
)
@pytest.mark.parametrize("relation", Relation)
def test_comparisons_are_encoded(target, operand, field, relation):
    compare = Compare(key=b"k\xff", target=target, operand=operand, relation=relation)
    [encoded] = orjson.loads(requests.encode_txn(Txn(compare=[compare])))["compare"]
    assert encoded == {"key": K, "target": target.value, "result": relation.value, **field}
