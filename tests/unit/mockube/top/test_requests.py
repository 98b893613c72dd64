"""The requests of the last minute, as they are followed."""

import asyncio
from datetime import UTC, datetime

import pytest

from mockube.apimachinery.status import Expired, Forbidden, TooManyRequests
from mockube.apimachinery.timestamps import format_micro_time
from mockube.top import requests
from mockube.top.requests import LAST, REMEMBERED, RETRY_SECONDS, WINDOW_SECONDS, RequestFollower
from tests.support.event_loop import until, yield_to_loop


def request(seconds_since_1970, took=0.0):
    time = format_micro_time(datetime.fromtimestamp(seconds_since_1970, UTC))
    spec = {"time": time, "verb": "get", "user": "bob"}
    return {"spec": spec, "status": {"code": 200, "seconds": took}}


class Remembering:
    """A client whose server remembers some requests."""

    def __init__(self, *items, paused=None):
        self.items, self.paused = items, paused

    async def list(self, _):
        return self

    async def get(self, *_):
        if self.paused is None:
            raise Forbidden("no")
        return {"spec": {"paused": self.paused}}


@pytest.fixture
async def follow(clock, monkeypatch):
    """Follow watches that give these items, or raise these errors, one after another; later ones give nothing."""
    tasks = []

    def start(*watches):
        left = list(watches)
        follower = RequestFollower(None, clock)
        follower.opened = 0

        async def watch(_client, _selector):
            follower.opened += 1
            for item in left.pop(0) if left else ():
                if isinstance(item, Exception):
                    raise item
                yield item

        monkeypatch.setattr(requests, "watch_requests", watch)
        tasks.append(asyncio.create_task(follower.follow()))
        return follower

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_remembered_requests_are_as_old_as_before_the_newest(clock):
    remembered = RequestFollower(Remembering(request(1000), request(1050), request(990, took=60)), clock)
    await remembered.read_remembered()
    assert len(remembered.recent()) == 3
    clock.advance(11)
    assert [each.time for each in remembered.recent()] == [1050, 990]


@pytest.mark.parametrize(("paused", "span"), [(None, LAST), (False, LAST), (True, REMEMBERED)])
async def test_remembered_requests_of_a_paused_clock_are_not_called_those_of_a_minute(clock, paused, span):
    follower = RequestFollower(Remembering(request(1000), request(1000), paused=paused), clock)
    await follower.read_remembered()
    assert (follower.span, len(follower.recent())) == (span, 2)
    clock.advance(WINDOW_SECONDS + 1)
    assert (follower.span, len(follower.recent())) == (LAST, 0)


async def test_time_of_the_cluster_that_goes_back_does_not_matter(clock, follow):
    follower = follow([request(9000), request(100)])
    await until(lambda: len(follower.recent()) == 2)
    clock.advance(WINDOW_SECONDS - 1)
    assert len(follower.recent()) == 2
    clock.advance(2)
    assert not follower.recent()


async def test_server_that_is_busy_is_asked_again(clock, follow):
    follower = follow([TooManyRequests("later")], [request(5)])
    await until(lambda: follower.problem is not None)
    clock.advance(RETRY_SECONDS)
    await until(lambda: len(follower.recent()) == 1)
    assert follower.problem is None


async def test_server_that_refuses_is_not_asked_again(clock, follow):
    follower = follow([Forbidden("no")], [request(5)])
    await until(lambda: follower.problem is not None)
    clock.advance(RETRY_SECONDS)
    await yield_to_loop(20)
    assert (follower.opened, follower.problem.reason) == (1, "no")


async def test_watch_that_ends_at_once_is_opened_again_after_a_pause(clock, follow):
    follower = follow()
    await until(lambda: follower.opened == 1)
    await yield_to_loop(20)
    assert follower.opened == 1
    clock.advance(RETRY_SECONDS)
    await until(lambda: follower.opened == 2)


async def test_watch_that_expires_is_opened_again_after_a_pause(clock, follow):
    follower = follow([Expired("too old")], [request(5)])
    await until(lambda: follower.opened == 1)
    await yield_to_loop(20)
    assert follower.opened == 1
    clock.advance(RETRY_SECONDS)
    await until(lambda: len(follower.recent()) == 1)
    assert follower.problem is None
