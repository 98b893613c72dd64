"""A snapshot of any store is byte for byte the same after it was restored into any other store."""

import contextlib

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mockube.component_base.clock import SteppedClock
from mockube.etcd.archive.lines import UnreadableLine, read_line
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.archive.restore import RestoreTarget, restore
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.kv import Put, Range, prefix_end
from tests.support.stores.archives import NAME, ROOT, entries, opened, saved

KEYS = st.binary(max_size=6) | st.text(max_size=6).map(str.encode)


class DeepObject(bytes):
    """Written briefly in reports: hypothesis warns of long values, and the warning hides the failure."""

    def __repr__(self):
        return f"<object of {self.count(b'{')} levels>"


DEEP = DeepObject(b'{"a":' * 5_000 + b"1" + b"}" * 5_000)
VALUES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [
            b"{}",
            b'{"a":1}',
            b' {"a":1}',
            b'{"a":\n1}',
            b'{"a":}',
            b'{"\xff":1}',
            b'{"a":1}}',
            b"k8s\x00x",
            DEEP,
        ]
    ),
)
CONTENTS = st.dictionaries(KEYS, st.tuples(VALUES, st.sampled_from([0, 0, 60, 3600])), max_size=8)


async def store_of(content):
    clock = SteppedClock()
    store = MemoryStore(clock=clock)
    for key, (value, ttl) in content.items():
        lease = (await store.grant(ttl)).id if ttl else 0
        await store.put(Put(key=ROOT + key, value=value, lease=lease))
    return store


async def stored_values(kv):
    found = await kv.range(Range(key=ROOT, range_end=prefix_end(ROOT)))
    return {kv.key.removeprefix(ROOT): kv.value for kv in found.kvs}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=CONTENTS)
async def test_restored_archive_is_saved_identically(store, content):
    data = await saved(await store_of(content))
    await restore(store, opened(data), RestoreTarget(root=ROOT), replace=True)
    assert await stored_values(store) == {key: value for key, (value, _) in content.items()}
    assert entries(await saved(store)) == entries(data)


@given(content=CONTENTS, where=st.integers(min_value=0), bits=st.integers(min_value=1, max_value=255))
async def test_archive_with_flipped_byte_is_refused_or_equivalent(content, where, bits):
    data = await saved(await store_of(content))
    where %= len(data)
    harmed = data[:where] + bytes([data[where] ^ bits]) + data[where + 1 :]
    try:
        listed = list(opened(harmed).entries())
    except BadArchive as error:
        assert NAME in str(error)  # noqa: PT017 - both are right: some bytes of gzip's header have no meaning
    else:
        assert listed == list(opened(data).entries())


@given(content=CONTENTS, length=st.integers(min_value=0))
async def test_truncated_archive_is_refused(content, length):
    data = await saved(await store_of(content))
    with pytest.raises(BadArchive, match=NAME):
        opened(data[: length % len(data)])


@given(fields=st.dictionaries(st.sampled_from(["key", "key_base64", "value_base64"]), st.text(max_size=6)))
def test_any_text_in_line_is_read_or_unreadable(fields):
    with contextlib.suppress(UnreadableLine):
        assert read_line(orjson.dumps({"key": "a", "value": {}} | fields)).key


@pytest.mark.parametrize("field", ["key_base64", "value_base64"])
def test_base64_outside_ascii_is_unreadable(field):
    with pytest.raises(UnreadableLine, match="damaged"):
        read_line(orjson.dumps({"key": "a", "value": {}, field: "YQé="}))
