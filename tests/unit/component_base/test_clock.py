import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from mockube.component_base.clock import RealClock, SteppedClock
from tests.support.event_loop import yield_to_loop

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock():
    return SteppedClock(START)


def test_stepped_clock_stands_still_until_advanced(clock):
    assert (clock.now(), clock.monotonic()) == (START, 0)
    clock.advance(1.5)
    assert (clock.now(), clock.monotonic()) == (START + timedelta(seconds=1.5), 1.5)


def test_callback_runs_once_when_due(clock):
    called = []
    clock.call_later(2, lambda: called.append(clock.monotonic()))
    clock.advance(1.9)
    assert called == []
    clock.advance(0.1)
    clock.advance(10)
    assert called == [2]


def test_callbacks_due_in_one_step_run_in_order_at_their_time(clock):
    called = []
    for name, delay in (("late", 3), ("early", 1), ("second early", 1)):
        clock.call_later(delay, lambda name=name: called.append((name, clock.monotonic())))
    clock.advance(5)
    assert called == [("early", 1), ("second early", 1), ("late", 3)]
    assert clock.monotonic() == 5


def test_callback_may_schedule_another_in_same_step(clock):
    called = []

    def call_again():
        called.append(clock.monotonic())
        clock.call_later(2, call_again)

    clock.call_later(2, call_again)
    clock.advance(7)
    assert called == [2, 4, 6]
    assert clock.next_due() == 1


def test_cancelled_callback_does_not_run(clock):
    called = []
    timer = clock.call_later(1, lambda: called.append("never"))
    timer.cancel()
    timer.cancel()
    assert clock.next_due() is None
    clock.advance(2)
    assert called == []


@pytest.mark.parametrize("delay", [0, -3])
def test_zero_delay_waits_for_next_step(clock, delay):
    called = []
    clock.call_later(delay, lambda: called.append(clock.monotonic()))
    assert called == []
    clock.advance(0)
    assert called == [0]


def test_next_due_ignores_cancelled_callbacks(clock):
    assert clock.next_due() is None
    clock.call_later(1, print).cancel()
    clock.call_later(4, print)
    clock.advance(1.5)
    assert clock.next_due() == 2.5


async def test_sleep_ends_when_time_has_passed(clock):
    sleeper = asyncio.create_task(clock.sleep(10))
    await yield_to_loop(2)
    clock.advance(9)
    await yield_to_loop(2)
    assert not sleeper.done()
    clock.advance(1)
    await sleeper


async def test_cancelled_sleep_leaves_no_callback(clock):
    sleeper = asyncio.create_task(clock.sleep(10))
    await yield_to_loop(2)
    assert clock.next_due() == 10
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert clock.next_due() is None


def test_real_clock_returns_current_utc_time():
    before, read_time, after = datetime.now(UTC), RealClock().now(), datetime.now(UTC)  # noqa: TID251 - what it must agree with
    assert before <= read_time <= after
    assert read_time.tzinfo is UTC


def test_real_clock_is_monotonic():
    clock = RealClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)


async def test_real_clock_runs_callback_in_event_loop():
    happened = asyncio.Event()
    RealClock().call_later(0, happened.set)
    assert not happened.is_set()
    await happened.wait()


async def test_cancelled_real_timer_does_not_run():
    called = []
    happened = asyncio.Event()
    clock = RealClock()
    clock.call_later(0, lambda: called.append("never")).cancel()
    clock.call_later(0, happened.set)
    await happened.wait()
    assert called == []


async def test_real_clock_sleep_ends():
    await RealClock().sleep(0)
