"""Invalid requests are refused with a specific error, and change nothing."""

import pytest

from mockube.etcd.errors import InvalidRequest, TooLarge
from mockube.etcd.kv import Compare, Delete, Put, Range, Target, Txn
from tests.support.stores.calls import head, keys_of, put, read_all

ABSENT = Compare(key=b"a", target=Target.VERSION, operand=0)


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda store: store.range(Range(key=b"")), id="range"),
        pytest.param(lambda store: store.range(Range(key=b"", range_end=b"z")), id="range to a key"),
        pytest.param(lambda store: store.put(Put(key=b"", value=b"1")), id="put"),
        pytest.param(lambda store: store.delete(Delete(key=b"")), id="delete"),
        pytest.param(
            lambda store: store.txn(Txn(then=[Put(key=b"", value=b"1")])), id="put in a transaction"
        ),
        pytest.param(
            lambda store: store.txn(Txn(otherwise=[Range(key=b"")])), id="range in the other branch"
        ),
        pytest.param(
            lambda store: store.txn(Txn(compare=[Compare(key=b"", target=Target.MOD, operand=0)])),
            id="comparison",
        ),
    ],
)
async def test_empty_key_is_refused(store, request_of):
    revision = await put(store, b"a")
    with pytest.raises(InvalidRequest):
        await request_of(store)
    assert await head(store) == revision


@pytest.mark.parametrize("part", ["compare", "then", "otherwise"])
async def test_txn_with_too_many_operations_is_refused(store, backend, part):
    def parts(count):
        return {
            "compare": [ABSENT] * count,
            "then": [Put(key=b"%d" % number, value=b"") for number in range(count)],
            "otherwise": [Range(key=b"a")] * count,
        }[part]

    with pytest.raises(TooLarge):
        await store.txn(Txn(**{part: parts(129)}))
    assert await head(store) == backend.base
    assert (await store.txn(Txn(**{part: parts(128)}))).succeeded


async def test_request_with_too_many_bytes_is_refused(store, backend):
    value = bytes(2 * 1024 * 1024)
    for request in (
        store.put(Put(key=b"a", value=value)),
        store.txn(Txn(then=[Put(key=b"%d" % number, value=value[: 1024 * 1024]) for number in range(2)])),
    ):
        with pytest.raises(TooLarge):
            await request
    assert keys_of(await read_all(store)) == []
    assert await head(store) == backend.base


async def test_store_works_after_refused_request(store):
    with pytest.raises(InvalidRequest):
        await store.put(Put(key=b"", value=b""))
    await put(store, b"a")
    assert keys_of(await read_all(store)) == [b"a"]
