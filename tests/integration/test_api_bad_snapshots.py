"""A snapshot is validated as a whole before it replaces the store; an invalid one is refused with the reason."""

import gzip
import hashlib

import aiohttp
import orjson
import pytest

from mockube.apiserver.request.snapshot_endpoint import PATH
from mockube.component_base.clock import SteppedClock
from mockube.etcd.archive import write
from mockube.etcd.archive.lines import entry_line, header_line, trailer_line
from mockube.etcd.embedded.store import MemoryStore, RequestLimits
from mockube.etcd.errors import Unavailable
from mockube.etcd.kv import KeyValue
from tests.support.server.apiserver import running
from tests.support.server.foreign_values import VALUES, text
from tests.support.stores.archives import entries

MAPS = "/api/v1/namespaces/default/configmaps"
BAD = b"/registry/configmaps/default/bad"


@pytest.fixture
async def client():
    async with running() as client:
        await client.post(MAPS, {"metadata": {"name": "stays"}})
        yield client


def line(key, value, ttl=0):
    kv = KeyValue(key=key, value=value, create_revision=1, mod_revision=1, version=1, lease=0)
    return entry_line(kv, ttl)


def archive_of(*entries, prefix=b"/registry/", revision=7, count=None, digest=None):
    header = header_line(prefix, revision, "2030-01-01T00:00:00Z")
    found = hashlib.sha256(b"".join([header, *entries])).hexdigest()
    trailer = trailer_line(len(entries) if count is None else count, digest or found)
    return gzip.compress(b"".join([header, *entries, trailer]))


async def refusal(client, data):
    """Return why the snapshot was refused; the store must be unchanged."""
    before = entries((await client.get(PATH)).data)
    answer = await client.put(f"{PATH}?replace=true&name=x.gz", data)
    assert answer.status == 400, answer.body
    assert entries((await client.get(PATH)).data) == before
    assert (await client.get(f"{MAPS}/stays")).status == 200
    return answer.body["message"]


GOOD = line(b"/registry/configmaps/default/a", text({"name": "a"}))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_unreadable_value_refuses_whole_snapshot(client, value):
    message = await refusal(client, archive_of(GOOD, line(BAD, value)))
    assert message.startswith("x.gz is refused: /registry/configmaps/default/bad cannot be read: ")
    assert len(message) < 600


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(archive_of(GOOD, digest="0" * 64), "is damaged", id="another checksum"),
        pytest.param(archive_of(GOOD, count=2), "is damaged", id="another count"),
        pytest.param(archive_of(GOOD, GOOD), "its keys are out of order", id="duplicate key"),
        pytest.param(
            archive_of(line(b"/other/a", text())), "out of order or outside its prefix", id="another prefix"
        ),
        pytest.param(archive_of(GOOD, prefix=b""), "it has no key prefix", id="no prefix"),
        pytest.param(archive_of(GOOD, revision=-1), "revision -1 is invalid", id="a revision below 0"),
        pytest.param(
            archive_of(GOOD, revision=1 << 63), "is damaged: revision", id="a revision beyond 63 bits"
        ),
        pytest.param(
            archive_of(line(BAD, text(data={"a": "x" * RequestLimits().request_bytes}))),
            "bytes",
            id="a value too large",
        ),
        pytest.param(archive_of(line(BAD, text(), ttl=-5)), "has a TTL of -5 seconds", id="a time below 0"),
        pytest.param(
            archive_of(line(BAD, text(), ttl=1 << 40)), "has a TTL of", id="a time beyond all leases"
        ),
        pytest.param(archive_of(GOOD)[:-20], "is truncated", id="cut off"),
        pytest.param(
            archive_of(line(b"/registry/example.com/widgets/default/a", b"[1]")),
            "it is not an object",
            id="a custom list",
        ),
    ],
)
async def test_invalid_snapshot_is_refused_with_reason(client, data, reason):
    assert reason in await refusal(client, data)


async def test_internal_allocation_objects_need_no_uid(client):
    kept = line(b"/registry/ranges/serviceips", orjson.dumps({"kind": "RangeAllocation", "apiVersion": "v1"}))
    assert (await client.put(f"{PATH}?replace=true", archive_of(GOOD, kept))).status == 200
    assert (await client.get(f"{MAPS}/a")).status == 200


class BreakingStore(MemoryStore):
    """A store that cannot be read at an earlier revision, as when it is no longer reachable."""

    async def range(self, request):
        if request.revision:
            raise Unavailable("the store is not reachable")
        return await super().range(request)


async def test_snapshot_that_cannot_be_completed_does_not_look_complete(monkeypatch):
    monkeypatch.setattr(write, "PAGE", 1)
    async with running(clock=SteppedClock(), kv=BreakingStore(clock=SteppedClock())) as client:
        await client.post(MAPS, {"metadata": {"name": "second"}})
        with pytest.raises(aiohttp.ClientPayloadError):
            await client.get(PATH)
