"""Range reads: intervals, past revisions, limits, and keys without values."""

import pytest

from mockube.etcd.errors import FutureRevision
from mockube.etcd.kv import FROM_KEY, Range, RangeResult, prefix_end
from tests.support.stores.calls import delete, get, head, keys_of, put, put_each, read_all, read_prefix

KEYS = (b"a", b"a/1", b"a/2", b"a0", b"b", b"\xff", b"\xff\xff1")


@pytest.mark.parametrize(
    ("key", "range_end", "found"),
    [
        pytest.param(b"a", None, [b"a"], id="one key"),
        pytest.param(b"a/", None, [], id="absent key"),
        pytest.param(b"a/", prefix_end(b"a/"), [b"a/1", b"a/2"], id="a prefix"),
        pytest.param(b"a", prefix_end(b"a"), [b"a", b"a/1", b"a/2", b"a0"], id="a prefix that is a key"),
        pytest.param(
            b"\xff", prefix_end(b"\xff"), [b"\xff", b"\xff\xff1"], id="a prefix of the highest byte"
        ),
        pytest.param(b"a/1", b"b", [b"a/1", b"a/2", b"a0"], id="an interval without its end"),
        pytest.param(b"a0", FROM_KEY, [b"a0", b"b", b"\xff", b"\xff\xff1"], id="from a key on"),
        pytest.param(FROM_KEY, FROM_KEY, list(KEYS), id="everything"),
        pytest.param(b"b", b"a", [], id="interval that ends before its start"),
        pytest.param(b"a", b"a", [], id="empty interval"),
        pytest.param(b"c", b"d", [], id="an interval with no keys"),
    ],
)
async def test_range_returns_keys_of_interval(store, key, range_end, found):
    revision = await put_each(store, *reversed(KEYS))
    result = await store.range(Range(key=key, range_end=range_end))
    assert keys_of(result) == found
    assert (result.count, result.more, result.revision) == (len(found), False, revision)


@pytest.mark.parametrize(
    ("limit", "shown", "more"),
    [(0, 4, False), (1, 1, True), (3, 3, True), (4, 4, False), (5, 4, False)],
)
async def test_range_with_limit_reports_total_count(store, limit, shown, more):
    await put_each(store, b"a/1", b"a/2", b"a/3", b"a/4", b"b")
    result = await read_prefix(store, b"a/", limit=limit)
    assert keys_of(result) == [b"a/1", b"a/2", b"a/3", b"a/4"][:shown]
    assert (result.count, result.more) == (4, more)


async def test_pages_at_one_revision_form_whole_range(store):
    revision = await put_each(store, b"a/1", b"a/2", b"a/3")
    first = await read_prefix(store, b"a/", limit=2)
    await put(store, b"a/15")
    await delete(store, b"a/3")
    rest = Range(
        key=keys_of(first)[-1] + b"\x00", range_end=prefix_end(b"a/"), limit=2, revision=first.revision
    )
    second = await store.range(rest)
    assert first.revision == revision
    assert keys_of(first) + keys_of(second) == [b"a/1", b"a/2", b"a/3"]
    assert (second.count, second.more) == (1, False)


async def test_count_only_returns_no_keys(store):
    revision = await put_each(store, b"a/1", b"a/2", b"a/3", b"b")
    result = await read_prefix(store, b"a/", count_only=True, limit=1)
    assert (list(result.kvs), result.count, result.more, result.revision) == ([], 3, False, revision)


async def test_keys_only_omits_values(store):
    await put(store, b"a", b"1")
    whole = await get(store, b"a")
    (kv,) = (await store.range(Range(key=b"a", keys_only=True))).kvs
    assert (kv.value, kv.mod_revision, kv.version) == (b"", whole.mod_revision, 1)


async def test_range_at_past_revision_returns_past_state(store):
    first = await put(store, b"a", b"1")
    second = await put(store, b"b", b"1")
    third = await put(store, b"a", b"2")
    fourth = await delete(store, b"a")
    seen = {
        revision: {kv.key: kv.value for kv in (await read_all(store, revision=revision)).kvs}
        for revision in (first, second, third, fourth)
    }
    assert seen == {
        first: {b"a": b"1"},
        second: {b"a": b"1", b"b": b"1"},
        third: {b"a": b"2", b"b": b"1"},
        fourth: {b"b": b"1"},
    }


async def test_range_at_past_revision_keeps_versions(store):
    first = await put(store, b"a", b"1")
    before = await get(store, b"a")
    await put(store, b"a", b"2")
    await delete(store, b"a")
    await put(store, b"a", b"3")
    assert await get(store, b"a", first) == before
    assert await get(store, b"a", first + 2) is None


@pytest.mark.parametrize("options", [{"limit": 1}, {"count_only": True}, {"keys_only": True}], ids=str)
async def test_range_at_past_revision_supports_all_options(store, options):
    revision = await put_each(store, b"a/1", b"a/2")
    then = await read_prefix(store, b"a/", **options)
    newest = await put_each(store, b"a/1", b"a/3")
    past = await read_prefix(store, b"a/", revision=revision, **options)
    assert past == RangeResult(revision=newest, kvs=past.kvs, count=2, more=then.more)
    assert list(past.kvs) == list(then.kvs)


async def test_range_at_past_revision_reports_current_revision(store):
    first = await put(store, b"a")
    newest = await put_each(store, b"b", b"c")
    assert (await read_all(store, revision=first)).revision == newest


async def test_range_at_current_revision_is_allowed(store):
    revision = await put_each(store, b"a", b"b")
    assert keys_of(await read_all(store, revision=revision)) == [b"a", b"b"]


async def test_range_at_future_revision_is_refused(store):
    revision = await put(store, b"a")
    with pytest.raises(FutureRevision) as refused:
        await read_all(store, revision=revision + 1)
    assert (refused.value.requested, refused.value.current) == (revision + 1, revision)
    assert await head(store) == revision


async def test_range_does_not_increase_revision(store, backend):
    for _ in range(3):
        await read_all(store)
    assert await head(store) == backend.base
