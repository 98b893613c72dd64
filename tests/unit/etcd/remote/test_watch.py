"""The remote watch, with fake streams and a cluster whose revision the test sets."""

import asyncio

import orjson
import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.errors import Closed, Compacted, Interrupted, PermissionDenied, Unavailable, Unsupported
from mockube.etcd.kv import RangeResult, WatchRequest
from mockube.etcd.remote.requests import PROGRESS, RANGE
from mockube.etcd.remote.responses import MemberStatus
from mockube.etcd.remote.stream import LineStream
from mockube.etcd.remote.watch import BACKLOG, PROGRESS_RETRY_SECONDS, RESUME_RETRY_SECONDS, RemoteWatch
from mockube.etcd.remote.watch_stream import WatchStream
from tests.support.event_loop import next_item, until, yield_to_loop
from tests.support.stores.etcd_fakes import OTHER, FakeGateway, FakeStream, K, watch_message

IN_ORDER, OUT_OF_ORDER = "3.6.0", "3.5.1"


class FakeCluster:
    """A fake Transport that returns the prepared streams in order."""

    def __init__(self, clock, *, version=OUT_OF_ORDER):
        self.head = 1
        self.opened = []
        """The fields that each watch was created with."""
        self.passed_over = []
        self.reads = []
        self._clock = clock
        self._gateway = FakeGateway(MemberStatus(revision=1, version=version, size=0))
        self._streams = asyncio.Queue()

    def add_stream(self, *messages):
        stream = FakeStream(*messages)
        self._streams.put_nowait(stream)
        return stream

    def refuse(self, error):
        self._streams.put_nowait(error)

    async def open_watch(self, create):
        self.opened.append(orjson.loads(create)["create_request"])
        stream = await self._streams.get()
        if isinstance(stream, Exception):
            raise stream
        return WatchStream(self._gateway, stream, clock=self._clock, timeout=5)

    async def call(self, method, body):
        self.reads.append((method, orjson.loads(body)))
        return RangeResult(revision=self.head, kvs=(), count=0)

    def deprioritize(self, gateway):
        self.passed_over.append(gateway)

    def starts(self):
        return [created["start_revision"] for created in self.opened]


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def cluster(clock):
    return FakeCluster(clock)


@pytest.fixture
async def watching(cluster, clock):
    """Return a function that opens watches of `k`; they are closed at the end."""
    opened = []

    async def watch(start=2, **fields):
        request = WatchRequest(key=b"k", start_revision=start, **fields)
        opened.append(await RemoteWatch.open(cluster, request, start, clock))
        return opened[-1]

    yield watch
    for each in opened:
        await each.close()


def revisions(batch):
    return batch.revision, [event.kv.mod_revision for event in batch.events]


async def test_batch_revision_is_that_of_its_events(cluster, watching):
    """etcd splits a long history into several responses, each with the current revision of the member."""
    cluster.add_stream(watch_message(90, (3, K), (7, K)))
    assert revisions(await next_item(await watching())) == (7, [3, 7])


class TestResuming:
    async def test_continues_after_broken_stream(self, cluster, watching):
        broken = cluster.add_stream(watch_message(3, (3, K)), Interrupted("cut"))
        cluster.add_stream(watch_message(4, (4, K)))
        watch = await watching()
        assert [revisions(await next_item(watch)) for _ in range(2)] == [(3, [3]), (4, [4])]
        assert cluster.starts() == [2, 4]
        assert len(cluster.passed_over) == 1
        assert broken.closed

    async def test_continues_after_progress_notification(self, cluster, watching):
        cluster.add_stream(watch_message(3, (3, K)), watch_message(50), Interrupted("cut"))
        cluster.add_stream(watch_message(51, (51, K)))
        watch = await watching()
        assert [revisions(await next_item(watch)) for _ in range(2)] == [(3, [3]), (51, [51])]
        assert cluster.starts() == [2, 51]

    async def test_waits_for_unavailable_cluster(self, cluster, watching, clock):
        cluster.add_stream(Interrupted("cut"))
        for _ in range(3):
            cluster.refuse(Unavailable("still down"))
        cluster.add_stream(watch_message(2, (2, K)))
        watch = await watching()
        for tried in (2, 3, 4):
            await until(lambda tried=tried: len(cluster.opened) == tried and clock.next_due())
            clock.advance(RESUME_RETRY_SECONDS)
        assert revisions(await next_item(watch)) == (2, [2])

    async def test_partial_revision_is_not_delivered(self, cluster, watching):
        cluster.add_stream(watch_message(3, (2, K), fragment=True), Interrupted("cut"))
        cluster.add_stream(watch_message(3, (2, K), (3, K)))
        assert revisions(await next_item(await watching())) == (3, [2, 3])
        assert cluster.starts() == [2, 2]

    async def test_ends_when_permission_is_denied(self, cluster, watching):
        cluster.add_stream(watch_message(2, (2, K)), Interrupted("cut"))
        cluster.refuse(PermissionDenied("no more"))
        watch = await watching()
        await next_item(watch)
        for _ in range(2):
            with pytest.raises(PermissionDenied, match="no more"):
                await next_item(watch)

    async def test_ends_when_history_is_compacted(self, cluster, watching):
        cluster.add_stream(watch_message(3, (3, K)), watch_message(9, canceled=True, compact_revision=8))
        watch = await watching()
        await next_item(watch)
        with pytest.raises(Compacted) as raised:
            await next_item(watch)
        assert (raised.value.requested, raised.value.compact_revision) == (4, 8)


async def test_repeated_events_are_delivered_once(cluster, watching):
    """A member that was restored from a snapshot sends events again."""
    cluster.add_stream(
        watch_message(3, (2, K), (3, K)), watch_message(4, (2, K), (3, K), (4, K)), watch_message(5, (5, K))
    )
    watch = await watching()
    assert [revisions(await next_item(watch)) for _ in range(3)] == [(3, [2, 3]), (4, [4]), (5, [5])]


async def test_slow_reader_blocks_stream(cluster, watching):
    stream = cluster.add_stream()
    watch = await watching()
    stream.say(*(watch_message(at, (at, K)) for at in range(2, BACKLOG + 12)))
    await until(lambda: stream.waiting == 10 - 1)
    await yield_to_loop(5)
    assert stream.waiting == 10 - 1
    assert [revisions(await next_item(watch)) for _ in range(BACKLOG + 10)] == [
        (at, [at]) for at in range(2, BACKLOG + 12)
    ]


class TestProgressInOrder:
    @pytest.fixture
    def cluster(self, clock):
        return FakeCluster(clock, version=IN_ORDER)

    async def test_response_is_the_progress(self, cluster, watching):
        stream = cluster.add_stream()
        watch = await watching()
        cluster.head = 9
        await watch.request_progress()
        assert cluster.reads == [(RANGE, {"key": K, "count_only": True})]
        assert stream.sent == [PROGRESS]
        stream.say(watch_message(5, (5, K)), watch_message(9, watch_id="-1"))
        assert [revisions(await next_item(watch)) for _ in range(2)] == [(5, [5]), (9, [])]

    async def test_progress_request_is_repeated_without_sufficient_response(self, cluster, watching, clock):
        stream = cluster.add_stream()
        watch = await watching()
        cluster.head = 9
        await watch.request_progress()
        stream.say(watch_message(8, watch_id="-1"))
        for asked in (2, 3):
            await until(lambda: clock.next_due() == PROGRESS_RETRY_SECONDS)
            clock.advance(PROGRESS_RETRY_SECONDS)
            await until(lambda asked=asked: len(stream.sent) == asked)
        stream.say(watch_message(9, watch_id="-1"))
        assert revisions(await next_item(watch)) == (9, [])

    async def test_progress_is_requested_on_new_stream(self, cluster, watching, clock):
        cluster.add_stream(Interrupted("cut"))
        cluster.head = 9
        following = cluster.add_stream()
        watch = await watching()
        await watch.request_progress()
        while not following.sent:
            await yield_to_loop(5)
            clock.advance(PROGRESS_RETRY_SECONDS)
        following.say(watch_message(9, watch_id="-1"))
        assert revisions(await next_item(watch)) == (9, [])

    async def test_progress_without_possible_events_needs_no_request(self, cluster, watching):
        cluster.add_stream()
        watch = await watching(start=100)
        cluster.head = 9
        await watch.request_progress()
        assert revisions(await next_item(watch)) == (9, [])


class TestProgressOutOfOrder:
    async def test_progress_is_proved_by_reading_second_stream(self, cluster, watching):
        """The progress is 9 while earlier events of the watch are unsent: a second stream delivers them."""
        stream = cluster.add_stream(watch_message(9, watch_id="-1"))
        everything = cluster.add_stream(watch_message(8, (4, OTHER), (5, K)), watch_message(10, (10, OTHER)))
        cluster.head = 9
        watch = await watching(previous=True)
        await watch.request_progress()
        assert [revisions(await next_item(watch)) for _ in range(2)] == [(5, [5]), (10, [])]
        stream.say(watch_message(5, (5, K)), watch_message(11, (11, K)))
        assert revisions(await next_item(watch)) == (11, [11])
        assert cluster.opened[1] == {
            "key": "AA==",
            "range_end": "AA==",
            "start_revision": 2,
            "prev_kv": True,
            "progress_notify": True,
            "fragment": True,
        }
        assert everything.closed

    async def test_watch_ends_if_progress_cannot_be_proved(self, cluster, watching):
        cluster.add_stream(watch_message(9, watch_id="-1"))
        cluster.add_stream(watch_message(9, canceled=True, compact_revision=8))
        cluster.head = 9
        watch = await watching()
        await watch.request_progress()
        with pytest.raises(Compacted):
            await next_item(watch)

    async def test_unrequested_progress_response_is_ignored(self, cluster, watching):
        stream = cluster.add_stream(watch_message(9, watch_id="-1"), watch_message(5, (5, K)))
        assert revisions(await next_item(await watching())) == (5, [5])
        assert cluster.starts() == [2]
        assert not stream.closed


class TestTheEnd:
    async def test_close_unblocks_waiting_reader(self, cluster, watching):
        stream = cluster.add_stream()
        watch = await watching()
        reading = asyncio.create_task(anext(watch, "the end"))
        await yield_to_loop(5)
        await watch.close()
        assert await reading == "the end"
        assert stream.closed

    async def test_close_drops_unread_events(self, cluster, watching):
        cluster.add_stream(watch_message(2, (2, K)))
        watch = await watching()
        await yield_to_loop(20)
        await watch.close()
        assert [batch async for batch in watch] == []

    async def test_delivered_events_are_read_before_store_closes(self, cluster, watching):
        cluster.add_stream(watch_message(2, (2, K)))
        watch = await watching()
        await yield_to_loop(20)
        await watch.abort(Closed("the store is closed"))
        assert revisions(await next_item(watch)) == (2, [2])
        with pytest.raises(Closed, match="the store is closed"):
            await next_item(watch)

    async def test_progress_of_ended_watch_is_refused(self, cluster, watching):
        cluster.add_stream()
        watch = await watching()
        await watch.close()
        with pytest.raises(Closed):
            await watch.request_progress()

    async def test_error_of_progress_request_reaches_reader(self, cluster, watching, clock):
        """Without the error, the reader would wait for progress that is no longer requested."""
        stream = cluster.add_stream()
        cluster.head = 9
        watch = await watching()
        await watch.request_progress()

        async def fail(message):
            raise RuntimeError("a fault in the program")

        stream.send = fail
        reading = asyncio.create_task(next_item(watch))
        while not reading.done():
            await yield_to_loop(5)
            clock.advance(PROGRESS_RETRY_SECONDS)
        with pytest.raises(RuntimeError, match="a fault in the program"):
            await reading

    async def test_error_of_read_task_reaches_reader_and_closes_stream(self, cluster, watching):
        stream = cluster.add_stream(watch_message(2, (2, K)))

        async def fail():
            raise RuntimeError("a fault in the program")

        watch = await watching()
        assert revisions(await next_item(watch)) == (2, [2])
        watch._stream.receive = fail
        stream.say(watch_message(3, (3, K)))
        assert revisions(await next_item(watch)) == (3, [3])
        with pytest.raises(RuntimeError, match="a fault in the program"):
            await next_item(watch)
        await watch.close()
        assert stream.closed

    async def test_cancelled_read_loses_nothing(self, cluster, watching):
        stream = cluster.add_stream()
        watch = await watching()
        waiting = asyncio.create_task(anext(watch))
        await yield_to_loop(5)
        stream.say(watch_message(2, (2, K)))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert revisions(await next_item(watch)) == (2, [2])


async def test_progress_over_stream_with_token_is_refused(clock):
    class FakeLines(FakeStream):
        send = LineStream.send

    cluster = FakeCluster(clock)
    cluster._streams.put_nowait(FakeLines(watch_message(3, (3, K)), watch_message(9)))
    async with await RemoteWatch.open(cluster, WatchRequest(key=b"k"), 2, clock) as watch:
        cluster.head = 99
        with pytest.raises(Unsupported):
            await watch.request_progress()
        assert revisions(await next_item(watch)) == (3, [3])
