"""The clock of a cluster: it pauses, runs faster, advances in steps, and follows another one.

The real clock beneath it is stepped, so that nothing here waits.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from mockube.component_base import clock as clocks
from mockube.component_base.clock import (
    ClusterClock,
    Leap,
    QuietTurns,
    RealClock,
    SteppedClock,
    advance_in_steps,
)
from mockube.component_base.timers import MAX_CANCELLED
from tests.support.event_loop import until, yield_to_loop

START = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = 3600.0


@pytest.fixture
def real():
    return SteppedClock(START)


@pytest.fixture
def clock(real):
    return ClusterClock(real)


def seconds_of(clock):
    """Return the two times of a clock, which began with the real one."""
    return clock.monotonic(), (clock.now() - START).total_seconds()


def test_new_clock_shows_real_time(clock, real):
    real.advance(2.5)
    assert seconds_of(clock) == (2.5, 2.5)
    assert clock.real is real


def test_new_clock_without_argument_is_that_of_the_machine():
    clock = ClusterClock()
    before, reading, after = RealClock().monotonic(), clock.monotonic(), RealClock().monotonic()
    assert before <= reading <= after
    assert isinstance(clock.real, RealClock)


def test_date_follows_a_correction_of_the_machines_date(clock, real):
    clock.advance(60)
    real._epoch += timedelta(hours=1)  # as after the suspension of a machine
    assert seconds_of(clock) == (60, HOUR + 60)


def test_paused_clock_stands_still_and_continues_where_it_stood(clock, real):
    real.advance(10)
    clock.pause()
    real.advance(100)
    assert seconds_of(clock) == (10, 10)
    clock.resume()
    real.advance(5)
    assert seconds_of(clock) == (15, 15)


def test_faster_clock_runs_from_the_change_on(clock, real):
    real.advance(10)
    clock.set_speed(10)
    real.advance(3)
    assert seconds_of(clock) == (40, 40)
    clock.set_speed(0.5)
    real.advance(4)
    assert seconds_of(clock) == (42, 42)
    clock.set_speed(1)
    real.advance(1)
    assert seconds_of(clock) == (43, 43)


def test_paused_clock_keeps_its_speed_for_resume(clock, real):
    clock.set_speed(10)
    clock.pause()
    assert (clock.speed, clock.rate) == (10, 0)
    clock.resume()
    real.advance(1)
    assert clock.monotonic() == 10


@pytest.mark.parametrize("speed", [0, -1, 1e-300, float("inf"), float("nan"), clocks.MAX_SPEED + 1])
def test_invalid_speed_is_refused(clock, speed):
    with pytest.raises(ValueError, match=r"the speed of a clock is from 0\.01 to 100"):
        clock.set_speed(speed)
    assert clock.speed == 1


def test_callback_runs_after_real_time_by_the_speed(clock, real):
    called = []
    clock.call_later(30, lambda: called.append(real.monotonic()))
    clock.set_speed(10)
    real.advance(2.9)
    assert called == []
    real.advance(0.1)
    assert called == [3]


def test_paused_clock_runs_no_callback_until_resumed(clock, real):
    called = []
    clock.call_later(5, lambda: called.append("before the pause"))
    clock.pause()
    clock.call_later(1, lambda: called.append("in the pause"))
    real.advance(HOUR)
    assert called == []
    assert real.next_due() is None
    clock.resume()
    real.advance(1)
    assert called == ["in the pause"]
    real.advance(4)
    assert called == ["in the pause", "before the pause"]


def test_earlier_callback_does_not_wait_for_later_one(clock, real):
    called = []
    clock.call_later(5, lambda: called.append("later"))
    clock.call_later(1, lambda: called.append("earlier"))
    real.advance(1)
    assert called == ["earlier"]


def test_callback_whose_real_timer_fires_early_runs(clock, real):
    """The event loop of the processes rounds delays to milliseconds."""
    called = []
    clock.call_later(1.0004, lambda: called.append("due"))
    real.advance(1.0)
    clock._on_timer()
    assert called == ["due"]


def test_advanced_clock_runs_due_callbacks_each_at_its_time(clock, real):
    called = []
    for seconds in (2 * HOUR, HOUR, 3 * HOUR + 1):
        clock.call_later(seconds, lambda: called.append(clock.monotonic()))
    clock.advance(3 * HOUR)
    assert called == [HOUR, 2 * HOUR]
    assert seconds_of(clock) == (3 * HOUR, 3 * HOUR)
    real.advance(1)
    assert called == [HOUR, 2 * HOUR, 3 * HOUR + 1]


def test_paused_clock_can_be_advanced(clock, real):
    clock.pause()
    clock.advance(60)
    real.advance(1)
    assert seconds_of(clock) == (60, 60)


def test_callback_may_pause_the_clock_that_is_advanced(clock, real):
    clock.call_later(1, clock.pause)
    clock.advance(2)
    real.advance(10)
    assert clock.monotonic() == 2


def test_changes_are_reported(clock):
    changes = []
    clock.on_change.append(lambda: changes.append(clock.rate))
    clock.pause()
    clock.resume()
    clock.set_speed(10)
    clock.set_speed(10)
    assert changes == [0, 1, 10]
    clock.advance(1)
    assert changes[3:] == [0, 0, 10]


async def test_failed_callback_is_logged_and_others_run(clock, real, caplog):
    """One timer of the event loop serves all callbacks, so that an error would stop the whole control plane."""
    called = []
    clock.call_later(1, fail)
    clock.call_later(1, lambda: called.append("second"))
    clock.call_later(2, lambda: called.append("third"))
    real.advance(2)
    assert called == ["second", "third"]
    (record,) = caplog.records
    assert "RuntimeError: a fault in the program" in caplog.handler.format(record)


def fail():
    raise RuntimeError("a fault in the program")


def test_failed_callback_fails_the_test_that_steps_the_clock():
    clock = SteppedClock()
    clock.call_later(1, fail)
    with pytest.raises(RuntimeError, match="a fault"):
        clock.advance(1)


def test_cancelled_callbacks_are_dropped(clock):
    for _ in range(3 * MAX_CANCELLED):
        clock.call_later(HOUR, print).cancel()
    assert len(clock._timers) <= MAX_CANCELLED + 1


async def test_clock_over_real_clock_runs_in_real_time():
    clock, called = ClusterClock(), asyncio.Event()
    before = clock.now(), clock.monotonic()
    clock.call_later(0.001, called.set)
    await until(called.is_set)
    await clock.sleep(0.001)
    assert clock.now() > before[0]
    assert clock.monotonic() > before[1]


# advance_in_steps: what `Cluster.advance` does


async def test_steps_run_callbacks_in_order_at_their_time(clock):
    calls = []

    def recording_callback(name, then=None):
        def record():
            calls.append((name, clock.monotonic() / HOUR))
            if then is not None:
                clock.call_later(HOUR, recording_callback(then))

        return record

    clock.call_later(3 * HOUR, recording_callback("third"))
    clock.call_later(1 * HOUR, recording_callback("first", then="second"))
    clock.call_later(1.5 * HOUR, recording_callback("cancelled")).cancel()
    await advance_in_steps(clock, 10 * HOUR, QuietTurns(lambda: False))
    assert calls == [("first", 1), ("second", 2), ("third", 3)]
    assert clock.monotonic() == 10 * HOUR


async def test_tasks_wake_in_the_same_order_at_the_same_times_in_every_run():
    """A task that wakes sleeps again before the time goes on, at most one step late."""

    async def run():
        clock, trace = ClusterClock(SteppedClock(START)), []

        async def renew(name, period):
            while True:
                await clock.sleep(period)
                trace.append((name, clock.monotonic()))

        tasks = [asyncio.create_task(renew("ten", 10.0)), asyncio.create_task(renew("seven", 7.0))]
        await advance_in_steps(clock, HOUR, QuietTurns(lambda: False))
        for task in tasks:
            task.cancel()
        return trace

    trace = await run()
    assert trace == await run()
    assert trace == sorted(trace, key=lambda entry: entry[1])
    for period, name in (10.0, "ten"), (7.0, "seven"):
        times = [0.0, *(time for each, time in trace if each == name)]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert period <= min(pauses) <= max(pauses) < period + clocks.MAX_STEP_SECONDS


async def test_steps_end_when_the_advance_is_over(clock):
    calls = []
    for hours in (1, 2, 3):
        clock.call_later(hours * HOUR, lambda hours=hours: calls.append(hours))
    await advance_in_steps(clock, 10 * HOUR, QuietTurns(lambda: False), is_over=lambda: len(calls) >= 2)
    assert (calls, clock.monotonic()) == ([1, 2], 2 * HOUR)
    await advance_in_steps(clock, 10 * HOUR, QuietTurns(lambda: False), is_over=lambda: True)
    assert clock.monotonic() == 2 * HOUR


async def test_failed_callback_does_not_end_steps(clock, caplog):
    calls = []
    clock.call_later(HOUR, fail)
    clock.call_later(2 * HOUR, lambda: calls.append("second"))
    await advance_in_steps(clock, 3 * HOUR, QuietTurns(lambda: False))
    assert calls == ["second"]
    assert len(caplog.records) == 1


async def test_steps_wait_for_pending_work(clock):
    done = []
    answered = asyncio.get_running_loop().create_future()
    clock.call_later(HOUR, lambda: done.append("asked"))
    clock.call_later(2 * HOUR, lambda: done.append("later"))
    advancing = asyncio.create_task(
        advance_in_steps(clock, 3 * HOUR, QuietTurns(lambda: "asked" in done and not answered.done()))
    )
    await until(lambda: done)
    await yield_to_loop(10)
    assert done == ["asked"]
    answered.set_result(None)
    await advancing
    assert done == ["asked", "later"]


async def test_time_stands_still_between_steps(clock, real):
    seen = []
    advancing = asyncio.create_task(
        advance_in_steps(clock, HOUR, QuietTurns(lambda: real.advance(0.01) or False))
    )
    clock.call_later(60, lambda: seen.append(clock.monotonic()))
    await advancing
    assert seen == [60]
    assert clock.monotonic() == HOUR


async def test_time_goes_on_for_a_request_that_waits_for_the_clock(clock, real):
    """A request between two steps may wait for a timer: it would never end."""
    ended = []
    clock.call_later(5, lambda: ended.append(clock.monotonic()))
    await advance_in_steps(clock, 1, QuietTurns(lambda: real.advance(0.5) or not ended))
    assert ended == [5]


# follow: the clock of another process


def test_follower_shows_what_the_other_clock_shows(clock, real):
    other = ClusterClock(real)
    other.advance(HOUR)
    other.set_speed(10)
    time, at = other.now(), real.now()
    real.advance(2)
    clock.follow(time, at, other.rate)
    assert clock.now() == other.now() == START + timedelta(seconds=HOUR + 20)
    real.advance(3)
    assert clock.now() == other.now()
    assert clock.monotonic() == HOUR + 50


def test_follower_of_unchanged_clock_shows_real_time(clock, real):
    clock.follow(START + timedelta(seconds=1), START + timedelta(seconds=1), 1.0)
    real.advance(7)
    assert seconds_of(clock) == (7, 7)


def test_follower_runs_callbacks_that_are_due_at_its_time(clock):
    called = []
    clock.call_later(30, lambda: called.append((clock.monotonic(), clock.now())))
    clock.follow(START + timedelta(seconds=60), START, 0.0)
    assert called == [(30, START + timedelta(seconds=30))]
    assert seconds_of(clock) == (60, 60)


def test_follower_that_is_ahead_sets_its_date_back_and_keeps_its_timers(clock, real):
    called = []
    real.advance(10)
    clock.call_later(5, lambda: called.append("due"))
    clock.follow(START + timedelta(seconds=8), real.now(), 1.0)
    assert seconds_of(clock) == (10, 8)
    real.advance(5)
    assert called == ["due"]
    assert seconds_of(clock) == (15, 13)


def test_follower_pauses_and_resumes_with_the_other_clock(clock, real):
    clock.follow(START, START, 0.0)
    real.advance(10)
    assert seconds_of(clock) == (0, 0)
    clock.follow(START, real.now(), 10.0)
    real.advance(1)
    assert seconds_of(clock) == (10, 10)


# --- what waits for no time


@pytest.mark.parametrize("seconds", [0, -3])
async def test_wait_of_no_time_ends_in_a_pause(clock, seconds):
    clock.pause()
    called = []
    clock.call_later(seconds, lambda: called.append("due"))
    clock.call_later(1, lambda: called.append("later"))
    assert called == []
    await asyncio.wait_for(clock.sleep(seconds), 10)
    await until(lambda: called)
    assert (called, clock.monotonic()) == (["due"], 0)


async def test_due_callback_runs_when_a_pause_begins_before_it(clock):
    called = []
    clock.call_later(0, lambda: called.append("due"))
    clock.pause()
    await until(lambda: called)


async def test_sleep_of_no_time_ends_between_the_steps_of_a_test():
    await asyncio.wait_for(SteppedClock().sleep(0), 10)


# --- deferrable callbacks, and leaps over a time in which nothing else is due


class Cluster:
    """A heartbeat every 10 seconds, a check every 5 seconds that notes the age of the last heartbeat, and other timers."""

    def __init__(self, clock):
        self.clock, self.beats, self.ages, self.tasks = clock, [0.0], [], []
        self.start(self.beat())
        self.start(self.check())

    def start(self, work):
        self.tasks.append(asyncio.create_task(work))

    async def beat(self):
        while True:
            await self.clock.renewals.sleep(10)
            self.beats.append(self.clock.monotonic())

    async def check(self):
        while True:
            await self.clock.routine.sleep(5)
            self.ages.append(self.clock.monotonic() - self.beats[-1])

    async def advance(self, seconds, *, is_quiet=lambda: True):
        await advance_in_steps(self.clock, seconds, QuietTurns(lambda: False), is_quiet)


@pytest.fixture
async def idle(clock):
    cluster = Cluster(clock)
    await yield_to_loop(2)
    yield cluster
    for task in cluster.tasks:
        task.cancel()


async def test_leap_does_once_what_repeats(idle, clock):
    await idle.advance(24 * HOUR)
    assert clock.monotonic() == 24 * HOUR
    assert idle.beats[1:] == [24 * HOUR]
    assert len(idle.ages) == 1
    assert [(leap.end - leap.start).total_seconds() for leap in clock.leaps] == [24 * HOUR]


async def test_checks_after_a_leap_find_everything_renewed(idle):
    await idle.advance(24 * HOUR)
    assert idle.ages == [0]


async def test_leap_ends_before_any_other_timer(idle, clock):
    seen = []
    clock.call_later(HOUR, lambda: seen.append((clock.monotonic(), idle.beats[-1])))
    await idle.advance(2 * HOUR)
    assert seen == [(HOUR, HOUR - clocks.LANDING_SECONDS)]
    assert idle.beats[-1] >= 2 * HOUR - 10


async def test_timer_that_begins_after_a_leap_is_reached_too(idle, clock):
    seen = []
    clock.call_later(HOUR, lambda: clock.call_later(HOUR, lambda: seen.append(clock.monotonic())))
    await idle.advance(3 * HOUR)
    assert seen == [2 * HOUR]


async def test_time_in_which_the_cluster_is_not_quiet_is_lived(idle, clock):
    await idle.advance(HOUR, is_quiet=lambda: clock.monotonic() >= 100)
    assert len([beat for beat in idle.beats if 0 < beat <= 100]) == 10
    assert max(idle.ages) <= 12
    assert len(clock.leaps) == 1


async def test_clock_that_runs_defers_nothing(idle, clock, real):
    for _ in range(12):
        real.advance(5)
        await yield_to_loop(5)
    assert idle.beats == [0, 10, 20, 30, 40, 50, 60]
    assert not clock.leaps


async def test_failed_advance_resumes_what_was_deferred(idle, clock):
    advancing = asyncio.create_task(idle.advance(HOUR))
    await until(lambda: clock.leaps)
    advancing.cancel()
    await asyncio.wait([advancing])
    clock.advance(10)
    await yield_to_loop(5)
    assert idle.beats[-1] == clock.monotonic()


async def test_cancelled_deferrable_callback_does_not_run_after_a_leap(idle, clock):
    called = []
    clock.routine.call_later(60, lambda: called.append("cancelled")).cancel()
    clock.routine.call_later(60, lambda: called.append("due"))
    await idle.advance(HOUR)
    assert called == ["due"]


def test_postponed_callbacks_run_later_whether_they_are_due_soon_or_later(clock):
    seen = []
    clock.routine.call_later(2, lambda: seen.append(("soon", clock.monotonic())))
    clock.routine.call_later(20, lambda: seen.append(("late", clock.monotonic())))
    clock.call_later(2, lambda: seen.append(("other", clock.monotonic())))
    begin = clock.monotonic()
    clock.routine.postpone(5)
    clock.routine.call_later(1, lambda: seen.append(("new", clock.monotonic())))
    for _ in range(30):
        clock.advance(1)
    assert [(name, round(time - begin, 3)) for name, time in seen] == [
        *(("new", 1), ("other", 2)),
        *(("soon", 7), ("late", 25)),
    ]


def test_deferrable_clocks_show_the_time_of_the_clusters_clock(clock, real):
    real.advance(5)
    for deferrable in clock.renewals, clock.routine, clock.routine.renewals, clock.renewals.routine:
        assert (deferrable.monotonic(), deferrable.now()) == (clock.monotonic(), clock.now())
        assert (deferrable.real, deferrable.coalescing) == (clock.real, clock.coalescing)
    assert clock.coalescing.routine is clock.routine
    assert clock.coalescing.renewals is clock.renewals


def test_clock_remembers_a_limited_number_of_leaps(clock):
    for _ in range(clocks.MAX_LEAPS + 1):
        clock.leap(1)
    assert len(clock.leaps) == clocks.MAX_LEAPS
    assert clock.leaps[-1] == Leap(clock.now() - timedelta(seconds=1), clock.now())


def test_clock_with_a_start_stands_still_until_it_is_advanced(real):
    clock, called = ClusterClock(real, start=START), []
    clock.call_later(5, lambda: called.append(clock.monotonic()))
    real.advance(HOUR)
    assert (clock.monotonic(), clock.now(), called) == (0, START, [])
    clock.advance(60)
    assert (clock.monotonic(), clock.now(), called) == (60, START + timedelta(minutes=1), [5])


# --- coalescing


@pytest.fixture
def coalesced(clock):
    """Return the times at which a callback of 5 seconds ran: that of the cluster's clock, and the real time."""
    times = []
    clock.coalescing.call_later(5, lambda: times.append((clock.monotonic(), clock.real.monotonic())))
    return times


def test_coalescing_delay_follows_the_clock_that_runs(clock, real, coalesced):
    clock.set_speed(10)
    real.advance(0.4)
    assert coalesced == []
    real.advance(0.1)
    assert coalesced == [(5, 0.5)]


def test_coalescing_delay_ends_at_its_time_within_an_advance(clock, coalesced):
    clock.call_later(6, lambda: coalesced.append("later"))
    clock.advance(60)
    assert coalesced == [(5, 0), "later"]


def test_coalescing_delay_ends_by_real_time_in_a_pause(clock, real, coalesced):
    real.advance(1)
    clock.pause()
    real.advance(3)
    assert coalesced == []
    real.advance(1)
    assert coalesced == [(1, 5)]


def test_coalescing_delay_continues_after_a_pause(clock, real, coalesced):
    clock.pause()
    real.advance(3)
    clock.resume()
    clock.set_speed(10)
    real.advance(0.1)
    assert coalesced == []
    real.advance(0.1)
    assert coalesced == [(pytest.approx(2), pytest.approx(3.2))]
    assert clock.coalescing.monotonic() == pytest.approx(5)


def test_coalescing_delay_ends_within_the_advance_of_a_paused_clock(clock, real, coalesced):
    clock.pause()
    clock.advance(4)
    real.advance(0.5)
    assert coalesced == []
    real.advance(0.5)
    assert coalesced == [(4, 1)]
    clock.coalescing.call_later(5, lambda: coalesced.append("advanced"))
    clock.advance(5)
    assert coalesced[1:] == ["advanced"]


def test_coalescing_delay_that_is_cancelled_does_not_end(clock, real):
    called = []
    clock.coalescing.call_later(1, lambda: called.append("cancelled")).cancel()
    clock.coalescing.call_later(2, lambda: called.append("other"))
    clock.pause()
    real.advance(2)
    assert called == ["other"]


def test_stepped_and_real_clocks_coalesce_by_themselves():
    for clock in SteppedClock(), RealClock():
        assert clock.coalescing is clock


async def test_coalescing_sleep_ends_in_a_pause(clock, real):
    clock.pause()
    sleeper = asyncio.create_task(clock.coalescing.sleep(1))
    await until(lambda: real.next_due() is not None)
    real.advance(1)
    await sleeper
    assert clock.monotonic() == 0


async def test_leaders_renew_before_others_after_a_leap(clock):
    """What others renew needs a leader whose Lease is valid."""
    renewed_at, ages = [0.0], []

    async def lead():
        while True:
            await clock.leadership.sleep(2)
            await yield_to_loop(3)  # the request takes some iterations
            renewed_at.append(clock.monotonic())

    async def renew():
        while True:
            await clock.renewals.sleep(2)
            ages.append(clock.monotonic() - renewed_at[-1])

    tasks = [asyncio.create_task(lead()), asyncio.create_task(renew())]
    await yield_to_loop(2)
    await advance_in_steps(clock, HOUR, QuietTurns(lambda: False), lambda: True)
    assert (len(ages), ages[-1]) == (1, 0.0)
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("nanoseconds", [500, 1500, 499, 501])
def test_date_of_a_paused_clock_advances_by_the_span_when_the_machine_has_nanoseconds(
    clock, real, nanoseconds
):
    real.advance(nanoseconds / 1e9)
    clock.pause()
    for span in (timedelta(microseconds=1500), timedelta(microseconds=1), timedelta(seconds=7)):
        before = clock.now()
        clock.advance(span.total_seconds())
        assert clock.now() == before + span
