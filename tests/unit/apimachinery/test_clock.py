import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.clock import RealClock, SteppedClock
from tests.support.turns import turns

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock():
    return SteppedClock(START)


def test_stands_still_until_advanced(clock):
    assert (clock.now(), clock.monotonic()) == (START, 0)
    clock.advance(1.5)
    assert (clock.now(), clock.monotonic()) == (START + timedelta(seconds=1.5), 1.5)


def test_calls_back_when_due_and_once(clock):
    called = []
    clock.call_later(2, lambda: called.append(clock.monotonic()))
    clock.advance(1.9)
    assert called == []
    clock.advance(0.1)
    clock.advance(10)
    assert called == [2]


def test_what_falls_due_in_one_step_happens_in_order_each_at_its_own_time(clock):
    called = []
    for name, delay in (("late", 3), ("early", 1), ("second early", 1)):
        clock.call_later(delay, lambda name=name: called.append((name, clock.monotonic())))
    clock.advance(5)
    assert called == [("early", 1), ("second early", 1), ("late", 3)]
    assert clock.monotonic() == 5


def test_a_callback_may_set_another_that_falls_due_in_the_same_step(clock):
    called = []

    def again():
        called.append(clock.monotonic())
        clock.call_later(2, again)

    clock.call_later(2, again)
    clock.advance(7)
    assert called == [2, 4, 6]
    assert clock.next_due() == 1


def test_a_cancelled_callback_never_happens(clock):
    called = []
    timer = clock.call_later(1, lambda: called.append("never"))
    timer.cancel()
    timer.cancel()
    assert clock.next_due() is None
    clock.advance(2)
    assert called == []


@pytest.mark.parametrize("delay", [0, -3])
def test_a_delay_that_is_over_waits_for_the_next_step_all_the_same(clock, delay):
    called = []
    clock.call_later(delay, lambda: called.append(clock.monotonic()))
    assert called == []
    clock.advance(0)
    assert called == [0]


def test_next_due_looks_past_what_was_cancelled(clock):
    assert clock.next_due() is None
    clock.call_later(1, print).cancel()
    clock.call_later(4, print)
    clock.advance(1.5)
    assert clock.next_due() == 2.5


async def test_a_sleeper_wakes_when_its_time_is_over(clock):
    sleeper = asyncio.create_task(clock.sleep(10))
    await turns(2)
    clock.advance(9)
    await turns(2)
    assert not sleeper.done()
    clock.advance(1)
    await sleeper


async def test_a_cancelled_sleeper_leaves_nothing_behind(clock):
    sleeper = asyncio.create_task(clock.sleep(10))
    await turns(2)
    assert clock.next_due() == 10
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert clock.next_due() is None


def test_the_real_clock_tells_the_time_of_day_in_utc():
    before, told, after = datetime.now(UTC), RealClock().now(), datetime.now(UTC)  # noqa: TID251 - what it must agree with
    assert before <= told <= after
    assert told.tzinfo is UTC


def test_the_real_clock_never_goes_back():
    clock = RealClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)


async def test_the_real_clock_calls_back_in_the_event_loop():
    happened = asyncio.Event()
    RealClock().call_later(0, happened.set)
    assert not happened.is_set()
    await happened.wait()


async def test_a_cancelled_timer_of_the_real_clock_never_calls_back():
    called = []
    happened = asyncio.Event()
    clock = RealClock()
    clock.call_later(0, lambda: called.append("never")).cancel()
    clock.call_later(0, happened.set)
    await happened.wait()
    assert called == []


async def test_the_real_clock_wakes_a_sleeper():
    await RealClock().sleep(0)
