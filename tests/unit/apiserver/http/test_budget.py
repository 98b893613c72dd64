"""What a request may take: places in flight, and time."""

import asyncio

import pytest

from apimachinery.clock import SteppedClock
from apimachinery.status import BadRequest, Timeout
from apiserver.http.budget import Budget, InFlight, allotted, is_long_running, within
from apiserver.http.requestinfo import parse
from apiserver.rest.call import User
from tests.support.turns import turns

ANYBODY, MASTER = User(name="a"), User(name="m", groups=("system:masters",))


def test_reads_and_writes_are_counted_apart():
    places = InFlight(Budget(reads=1, writes=1))
    assert [places.enter(verb, ANYBODY) for verb in ("get", "list", "create", "delete")] == [
        True,
        False,
        True,
        False,
    ]
    places.leave("get")
    assert places.enter("list", ANYBODY)


def test_masters_always_get_a_place():
    places = InFlight(Budget(reads=1))
    assert places.enter("get", ANYBODY)
    assert places.enter("get", MASTER)


def test_nothing_is_any_number():
    places = InFlight(Budget(writes=0))
    assert all(places.enter("create", ANYBODY) for _ in range(1000))


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param((), 60.0, id="not asked"),
        pytest.param(("",), 60.0, id="asked for nothing"),
        pytest.param(("5s",), 5.0, id="less"),
        pytest.param(("5m",), 60.0, id="more"),
        pytest.param(("0s",), 60.0, id="no time at all"),
    ],
)
def test_the_time_that_a_request_is_given(asked, seconds):
    assert allotted(asked, 60.0) == seconds


def test_a_time_that_is_none_is_refused():
    with pytest.raises(
        BadRequest, match=r"^invalid timeout specified in the request URL - time: invalid duration"
    ):
        allotted(("x",), 60.0)


@pytest.mark.parametrize(
    ("method", "path", "watch", "long"),
    [
        pytest.param("GET", "/api/v1/pods", True, True, id="watch"),
        pytest.param("GET", "/api/v1/pods", False, False, id="list"),
        pytest.param("GET", "/api/v1/namespaces/n/pods/p/log", False, True, id="log"),
        pytest.param("POST", "/api/v1/namespaces/n/pods/p/exec", False, True, id="exec"),
        pytest.param("GET", "/readyz", False, False, id="health"),
    ],
)
def test_what_runs_as_long_as_it_likes(method, path, watch, long):
    assert is_long_running(parse(method, path, watch=watch)) is long


async def test_work_that_is_done_in_time_is_answered():
    async def work():
        return 1

    clock = SteppedClock()
    assert await within(clock, 5.0, work()) == 1
    assert clock.next_due() is None


async def test_work_that_takes_too_long_is_stopped():
    clock, stopped = SteppedClock(), asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = asyncio.create_task(within(clock, 5.0, work()))
    await turns(2)
    clock.advance(5.0)
    with pytest.raises(Timeout) as late:
        await task
    assert stopped.is_set()
    assert late.value.status()["message"] == "Timeout: request did not complete within the allotted timeout"
    assert late.value.code == 504


async def test_who_is_cancelled_by_others_is_not_late():
    task = asyncio.create_task(within(SteppedClock(), 5.0, asyncio.Event().wait()))
    await turns(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_failures_pass_through():
    async def work():
        raise KeyError("x")

    with pytest.raises(KeyError):
        await within(SteppedClock(), 5.0, work())
