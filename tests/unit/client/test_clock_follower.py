"""The clock of a process that follows that of the API server."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.status import Forbidden, NotFound
from mockube.client.clock_follower import RETRY_SECONDS, STREAM_SECONDS, UNSERVED_SECONDS, ClockFollower
from mockube.client.wire import Unreachable
from mockube.component_base.clock import ClusterClock, SteppedClock
from tests.support.event_loop import until, yield_to_loop

START = datetime(2030, 1, 1, tzinfo=UTC)


class FakeServer:
    """A client of a server whose streams are the given ones, and the last of them stays open."""

    def __init__(self, *streams):
        self.streams = list(streams)
        self.requests = 0

    @asynccontextmanager
    async def download(self, path, *, timeout_seconds):
        assert (path, timeout_seconds) == ("/mockube/clock", STREAM_SECONDS)
        self.requests += 1
        stream = self.streams.pop(0) if self.streams else []
        if isinstance(stream, Exception):
            raise stream
        yield Stream(stream, is_last=not self.streams)


class Stream:
    status = 200

    def __init__(self, chunks, *, is_last):
        self._chunks = chunks
        self._is_last = is_last

    async def chunks(self):
        for chunk in self._chunks:
            yield chunk
        if self._is_last:
            await asyncio.Event().wait()


def reading(time, at, rate):
    return f'{{"time":"{time:%Y-%m-%dT%H:%M:%S.%fZ}","at":"{at:%Y-%m-%dT%H:%M:%S.%fZ}","rate":{rate}}}\n'.encode()


@pytest.fixture
def real():
    return SteppedClock(START)


@pytest.fixture
def clock(real):
    return ClusterClock(real)


@asynccontextmanager
async def following(clock, server):
    follower = ClockFollower(server, clock)
    task = asyncio.create_task(follower.run())
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_clock_shows_the_time_of_the_server(clock, real):
    hour = timedelta(hours=1)
    server = FakeServer([reading(START + hour, START, 10.0)])
    async with following(clock, server) as follower:
        await follower.wait_known()
        assert clock.now() == START + hour
        real.advance(2)
        assert clock.now() == START + hour + timedelta(seconds=20)


async def test_newest_reading_of_a_chunk_counts(clock):
    lines = reading(START, START, 0.0) + reading(START, START, 5.0)
    async with following(clock, FakeServer([lines[:20], lines[20:]])) as follower:
        await follower.wait_known()
        assert clock.rate == 5.0


async def test_server_without_a_clock_has_real_time(clock, real):
    clock.advance(60)
    clock.pause()
    server = FakeServer(NotFound("no page"), [reading(START, START, 0.0)])
    async with following(clock, server) as follower:
        await follower.wait_known()
        assert (clock.now(), clock.rate) == (real.now(), 1.0)
        real.advance(UNSERVED_SECONDS - 1)
        await yield_to_loop(5)
        assert server.requests == 1
        real.advance(1)
        await until(lambda: clock.rate == 0.0)


async def test_refused_right_is_tried_again_soon(clock, real):
    clock.pause()
    server = FakeServer(*2 * [Forbidden("no role yet")], [reading(START, START, 10.0)])
    async with following(clock, server) as follower:
        await follower.wait_known()
        assert (clock.now(), clock.rate) == (real.now(), 1.0)
        for requests, seconds in (1, RETRY_SECONDS), (2, 2 * RETRY_SECONDS):
            await until(lambda expected=requests: server.requests == expected and real.next_due() is not None)
            real.advance(seconds)
        await until(lambda: clock.rate == 10.0)


async def test_refused_right_does_not_change_a_known_clock_until_it_is_refused_for_long(clock, real):
    server = FakeServer([reading(START, START, 10.0)], *20 * [Forbidden("no role")])
    async with following(clock, server) as follower:
        await follower.wait_known()
        pauses = []
        while clock.rate == 10.0:
            await until(lambda: real.next_due() is not None)
            pauses.append(real.next_due())
            real.advance(pauses[-1])
            await yield_to_loop(5)
        await until(lambda: real.next_due() is not None)
        # The first is that after the end of the stream.
        assert [RETRY_SECONDS, *pauses[1:]] == [RETRY_SECONDS, 1, 2, 4, 8, 16, 32, 64, 128, 256]
        assert (clock.rate, real.next_due()) == (1.0, UNSERVED_SECONDS)


async def test_lost_connection_keeps_the_rate_and_is_made_again(clock, real):
    first, second = reading(START, START, 10.0), reading(START, START, 0.0)
    server = FakeServer([first], Unreachable("the server stopped"), [second])
    async with following(clock, server) as follower:
        await follower.wait_known()
        for requests in 1, 2:
            await until(lambda expected=requests: server.requests == expected and real.next_due() is not None)
            assert clock.rate == 10.0
            real.advance(RETRY_SECONDS)
            await yield_to_loop(3)
        await until(lambda: clock.rate == 0.0)


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON\n",
        b'{"time":"2030-01-01T00:00:00Z"}\n',
        reading(START, START, -1.0),
        reading(START, START, 1e9),
        b'{"time":"2030-01-01T00:00:00","at":"2030-01-01T00:00:00Z","rate":1.0}\n',
        b"[" * 100_000 + b"\n",
    ],
)
async def test_invalid_reading_is_not_followed(clock, real, line):
    server = FakeServer([line], [reading(START, START, 0.0)])
    async with following(clock, server):
        await until(lambda: real.next_due() is not None)
        assert clock.rate == 1.0
        real.advance(RETRY_SECONDS)
        await until(lambda: clock.rate == 0.0)
