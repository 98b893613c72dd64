"""The injected time: the protocol of clocks, the machine's clock, and the clock of a cluster.

Code receives a `Clock` as an argument and reads no other time. This is the only module that may read the wall clock or
sleep. The clock of a cluster can pause, run faster and advance. What belongs to the world outside of the cluster uses
`clock.real`: sockets, TLS, the deadlines of requests, child processes, and the durations of work in metrics.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, NamedTuple, Protocol, Self, TypeVar

from .loop import yield_to_loop
from .timers import TimerHeap

LOG: Final = logging.getLogger(__name__)

MAX_SPEED: Final = 100.0
"""Seconds of a cluster in a second of the machine. A leader's Lease then lasts 0.15 seconds, in which a request must renew it."""
MIN_SPEED: Final = 0.01
"""A clock that is slower than that stands still for whoever waits for it, and the machine's time of a timer has a limit."""
MAX_STEP_SECONDS: Final = 2.0
"""Callbacks that are due within these seconds run in one step, because most of them are independent of each other."""
LANDING_SECONDS: Final = MAX_STEP_SECONDS
"""A leap ends so long before a callback that is not deferrable, which then finds everything renewed."""
MAX_LEAPS: Final = 1000
"""The maximum number of leaps that a clock remembers."""
QUIET_TURNS: Final = 20
"""The number of event loop iterations without a request in progress after which no more effects are expected."""
MAX_HELD_SECONDS: Final = 1.0
"""How long time stands still for a request between two steps: a request that takes longer may wait for a timer."""


class Leap(NamedTuple):
    """A span of time in which only the last of all renewals and routine took place."""

    start: datetime
    end: datetime


class Timer(Protocol):
    """A scheduled callback that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A source of time and timers."""

    @property
    def real(self) -> "Clock":
        """The clock of the machine, whatever this clock does."""

    @property
    def coalescing(self) -> "Clock":
        """The clock of delays that gather work, to spare the machine: it passes in a pause, too."""

    @property
    def leadership(self) -> "Clock":
        """The clock of the renewals on which others depend, such as of a leader's Lease: after a leap they come first."""

    @property
    def renewals(self) -> "Clock":
        """The clock of what others expect at intervals, such as heartbeats: an advance leaps over all but the last of them."""

    @property
    def routine(self) -> "Clock":
        """The clock of what repeats and has no effect while nothing else changes: an advance leaps over all but the last of it."""

    def now(self) -> datetime:
        """Return the current date and time in UTC, for objects and messages."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start, which never decrease, for deadlines and durations."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Schedule a callback in the running event loop after `delay` seconds."""

    async def sleep(self, seconds: float) -> None: ...


class _OnlyClock:
    """A clock that is all clocks: nothing pauses it, and nothing leaps over a part of it."""

    @property
    def real(self) -> Self:
        return self

    @property
    def coalescing(self) -> Self:
        return self

    @property
    def leadership(self) -> Self:
        return self

    @property
    def renewals(self) -> Self:
        return self

    @property
    def routine(self) -> Self:
        return self


class RealClock(_OnlyClock):
    """The machine's clock and the event loop's timers."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


C = TypeVar("C", bound=Clock)


class _ClockView(Generic[C]):
    """A clock with the time of another one, and timers of its own: all its other clocks are those of that one."""

    _clock: C

    @property
    def real(self) -> Clock:
        return self._clock.real

    @property
    def coalescing(self) -> Clock:
        return self._clock.coalescing

    @property
    def leadership(self) -> Clock:
        return self._clock.leadership

    @property
    def renewals(self) -> Clock:
        return self._clock.renewals

    @property
    def routine(self) -> Clock:
        return self._clock.routine

    def now(self) -> datetime:
        return self._clock.now()


class DatedClock(_ClockView[Clock]):
    """A clock that runs as another one and always shows one date, such as that of a past moment."""

    def __init__(self, clock: Clock, date: datetime) -> None:
        self._clock = clock
        self._date = date
        self.monotonic, self.call_later, self.sleep = clock.monotonic, clock.call_later, clock.sleep

    def now(self) -> datetime:
        return self._date


class _DrivenClock:
    """A clock that another one drives. Callbacks run in the order in which they are due; one timer of the other clock waits for the first."""

    def __init__(self) -> None:
        self._timers = TimerHeap()
        self._timer: Timer | None = None
        self._timer_due = 0.0

    def monotonic(self) -> float:
        raise NotImplementedError

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        scheduled = self._timers.add(self.monotonic() + max(delay, 0.0), callback)
        if self._timer is None or scheduled.due < self._timer_due:
            self._set_timer()
        return scheduled

    async def sleep(self, seconds: float) -> None:
        elapsed = asyncio.Event()
        timer = self.call_later(seconds, elapsed.set)
        try:
            await elapsed.wait()
        finally:
            timer.cancel()

    def _start_timer(self, remaining: float) -> Timer | None:
        """Let the other clock call `_on_timer` when so many seconds of this one are over; None if it stands still."""
        raise NotImplementedError

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        first = self._timers.peek()
        if first is not None:
            self._timer_due = first.due
            self._timer = self._start_timer(max(first.due - self.monotonic(), 0.0))

    def _on_timer(self) -> None:
        self._timer = None
        try:
            self._run_due(max(self.monotonic(), self._timer_due))  # an event loop may round a delay down
        finally:
            self._set_timer()

    def _run_due(self, until: float) -> None:
        while (scheduled := self._timers.pop_due(until)) is not None:
            self._reach(scheduled.due)
            try:
                scheduled.run()
            except Exception as error:  # noqa: BLE001 - as an event loop: the callbacks of others still run
                self._fail(error)

    def _reach(self, due: float) -> None:
        """Show the time at which a callback is due, if no other clock does that."""

    def _fail(self, error: Exception) -> None:
        """Log the error of a callback, as the event loop does, so that the others run."""
        LOG.error("A timer of the cluster's clock failed; the others continue", exc_info=error)


class ClusterClock(_DrivenClock):
    """The clock of a cluster in one event loop: it runs at a speed, stands still while it is paused, and can be advanced."""

    def __init__(self, real: Clock | None = None, *, start: datetime | None = None) -> None:
        """Create a clock that shows the real time until it is changed, or that stands still at `start` and can only be advanced.

        `real` is the machine's clock.
        """
        super().__init__()
        self._real: Clock = RealClock() if real is None else real
        self._real_monotonic = self._real.monotonic
        self._speed = 1.0
        self._is_paused = False
        self._holds = 0
        # monotonic() is a straight line over the real time.
        self._rate = 1.0
        self._offset = 0.0
        # At the rate 1 now() follows the machine's date, which may be corrected, and which counts the time of a suspended machine.
        self._ahead = timedelta()
        self._epoch: datetime | None = None
        """The date at which monotonic() is 0, at other rates."""
        self._coalescing = CoalescingClock(self)
        self._leadership = DeferrableClock(self)
        self._renewals = DeferrableClock(self)
        self._routine = DeferrableClock(self)
        self.leaps: deque[Leap] = deque(maxlen=MAX_LEAPS)
        """The newest spans of time over which an advance has leaped."""
        if start is not None:
            self._holds, self._rate, self._epoch = 1, 0.0, start
        self.on_change: list[Callable[[], None]] = []
        """Called after each pause, change of speed and advance."""

    @property
    def real(self) -> Clock:
        return self._real

    @property
    def coalescing(self) -> Clock:
        return self._coalescing

    @property
    def leadership(self) -> Clock:
        return self._leadership

    @property
    def renewals(self) -> Clock:
        return self._renewals

    @property
    def routine(self) -> Clock:
        return self._routine

    @property
    def is_paused(self) -> bool:
        """Whether the clock stands still until `resume`, and no block advances it."""
        return self._is_paused and not self._holds

    @property
    def speed(self) -> float:
        """The seconds of the cluster in a second of the machine, also while the clock is paused."""
        return self._speed

    @property
    def rate(self) -> float:
        """The seconds of the cluster in a second of the machine now: 0 while the clock stands still."""
        return self._rate

    def now(self) -> datetime:
        if self._epoch is None:
            return self._real.now() + self._ahead
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return self._real_monotonic() * self._rate + self._offset

    def next_due(self) -> float | None:
        """Return the seconds until the next callback is due, or None if there is none."""
        scheduled = self._timers.peek()
        return None if scheduled is None else scheduled.due - self.monotonic()

    @property
    def pending_count(self) -> int:
        """The number of callbacks that wait for their time."""
        return self._timers.waiting_count

    def pause(self) -> None:
        """Let time stand still until `resume`; it can still be advanced."""
        self._is_paused = True
        self._change_rate()

    def resume(self) -> None:
        self._is_paused = False
        self._change_rate()

    def set_speed(self, speed: float) -> None:
        """Let so many seconds pass in a second of the machine; a paused clock does so after `resume`."""
        if not MIN_SPEED <= speed <= MAX_SPEED:
            raise ValueError(f"the speed of a clock is from {MIN_SPEED:g} to {MAX_SPEED:g}, not {speed:g}")
        self._speed = speed
        self._change_rate()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let time pass within the block by `advance` only."""
        self._holds += 1
        self._change_rate()
        try:
            yield
        finally:
            self._holds -= 1
            self._change_rate()

    def advance(self, seconds: float) -> None:
        """Advance the clock and run the due callbacks, each at its time. Sleeping tasks resume in the next iteration of the loop."""
        with self.standing_still():
            until = self._offset + seconds
            self._run_due(until)
            self._offset = max(until, self._offset)
            self._report_change()

    @property
    def deferrables(self) -> "Sequence[DeferrableClock]":
        """The clocks whose callbacks run once after a leap, in this order: checks find everything renewed."""
        return self._leadership, self._renewals, self._routine

    def leap(self, seconds: float) -> float:
        """Advance to shortly before the next callback, at most so many seconds; return how many, 0 if a callback is due too soon."""
        due = self.next_due()
        span = seconds if due is None or due > seconds else due - LANDING_SECONDS
        if span <= 0:
            return 0.0
        start = self.now()
        self.advance(span)
        self.leaps.append(Leap(start, self.now()))
        return span

    def reading(self) -> tuple[datetime, datetime, float]:
        """Return what another clock needs to follow this one: its date, that of the machine at this moment, and the rate."""
        at = self._real.now()
        return (at + self._ahead if self._epoch is None else self.now()), at, self._rate

    def follow(self, time: datetime, at: datetime, rate: float) -> None:
        """Run at the rate of another clock, which showed `time` when the date of the machine was `at`.

        If this clock is ahead, its date is set back, but no callback waits longer for that.
        """
        with self.standing_still():
            self.advance(max((_date(time, at, rate, self._real) - self.now()).total_seconds(), 0.0))
            self._epoch = _date(time, at, rate, self._real) - timedelta(seconds=self._offset)
            self._is_paused, self._speed = rate == 0.0, rate or self._speed
        if self._epoch is None:
            self._ahead = time - at

    def _change_rate(self) -> None:
        rate = 0.0 if self._is_paused or self._holds else self._speed
        if rate != self._rate:
            date, elapsed = self.now(), self.monotonic()
            if not rate:
                # Dates have microseconds: a part of one could round up in one date and down in the next.
                elapsed = math.ceil(elapsed * 1e6) / 1e6
            self._rate = rate
            self._offset = elapsed - self._real_monotonic() * rate
            if rate == 1.0:
                self._epoch, self._ahead = None, date - self._real.now()
            elif self._epoch is None:
                self._epoch = date - timedelta(seconds=elapsed)
            self._set_timer()
            self._report_change()
        self._coalescing.follow_pause()

    def _report_change(self) -> None:
        for changed in self.on_change:
            changed()

    def _start_timer(self, remaining: float) -> Timer | None:
        # What is due has no time to wait for, so that it runs in the next iteration of the loop also while the clock stands still.
        if not remaining or self._rate:
            return self._real.call_later(remaining and remaining / self._rate, self._on_timer)
        return None

    def _reach(self, due: float) -> None:
        if not self._rate:
            self._offset = max(self._offset, due)


class CoalescingClock(_ClockView[ClusterClock], _DrivenClock):
    """The time of delays that gather work to spare the machine: that of a cluster's clock, and the machine's time while that one is paused."""

    def __init__(self, clock: ClusterClock) -> None:
        super().__init__()
        self._clock = clock
        self._paused_seconds = 0.0
        """The duration of all pauses that have ended."""
        self._is_paused = False
        self._paused_at = 0.0

    @property
    def coalescing(self) -> Self:
        return self

    def monotonic(self) -> float:
        pause = self._clock.real.monotonic() - self._paused_at if self._is_paused else 0.0
        return self._clock.monotonic() + self._paused_seconds + pause

    def follow_pause(self) -> None:
        """Continue by the machine's time if a pause of the cluster's clock has begun, and by that clock if it has ended."""
        if self._clock.is_paused == self._is_paused:
            return
        now = self._clock.real.monotonic()
        if self._is_paused:
            self._paused_seconds += now - self._paused_at
        self._is_paused, self._paused_at = self._clock.is_paused, now
        self._set_timer()

    def _start_timer(self, remaining: float) -> Timer:
        clock = self._clock.real if self._is_paused else self._clock
        return clock.call_later(remaining, self._on_timer)


class DeferrableClock(_ClockView[ClusterClock], _DrivenClock):
    """The time of a cluster's clock, for callbacks that may be late when the clock is advanced over a time in which nothing happens."""

    def __init__(self, clock: ClusterClock) -> None:
        super().__init__()
        self._clock = clock
        self._is_deferring = False
        self._late_seconds = 0.0
        """How long this clock stood still in `postpone`."""

    def monotonic(self) -> float:
        return self._clock.monotonic() - self._late_seconds

    def postpone(self, seconds: float) -> None:
        """Stand still for some seconds, so that every callback is so much later, also those that are not due yet."""
        self._late_seconds += seconds
        self._set_timer()

    def defer(self) -> None:
        """Run no callback until `resume`."""
        self._is_deferring = True
        self._set_timer()

    def resume(self) -> None:
        """Run callbacks again: those that are due next time the cluster's clock is advanced, or in the next iteration of the loop."""
        if self._is_deferring:
            self._is_deferring = False
            self._set_timer()

    def _start_timer(self, remaining: float) -> Timer | None:
        return None if self._is_deferring else self._clock.call_later(remaining, self._on_timer)


def _date(time: datetime, at: datetime, rate: float, real: Clock) -> datetime:
    """Return what a clock shows now that showed `time` when the date of the machine was `at`."""
    return time + (real.now() - at) * rate


class SteppedClock(_OnlyClock, ClusterClock):
    """A clock that is paused from the start, and the only time of a test: `real` is the clock itself."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        super().__init__()
        self._is_paused, self._rate, self._epoch = True, 0.0, start

    def _set_timer(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return  # a test without an event loop advances the clock
        super()._set_timer()

    def _fail(self, error: Exception) -> None:
        """Raise the error of a callback to the test that advances the clock."""
        raise error


class Idleness(Protocol):
    """Whether a cluster in an event loop has something to do without the passage of time."""

    async def wait(self, clock: ClusterClock) -> None:
        """Wait until there is nothing to do but to wait for timers."""


class QuietTurns:
    """Counts iterations of the event loop without a request in progress; time flows while a request takes long."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy

    async def wait(self, clock: ClusterClock) -> None:
        flows_from, quiet_turns = clock.real.monotonic() + MAX_HELD_SECONDS, 0
        while quiet_turns < QUIET_TURNS:
            await yield_to_loop()
            quiet_turns = 0 if self._is_busy() else quiet_turns + 1
            elapsed = clock.real.monotonic() - flows_from
            if elapsed > 0:
                clock.advance(elapsed * clock.speed)
                flows_from += elapsed


def never() -> bool:
    """Return False: an advance is over at its end only."""
    return False


async def advance_in_steps(
    clock: ClusterClock,
    seconds: float,
    idleness: Idleness,
    is_quiet: Callable[[], bool] = never,
    is_over: Callable[[], bool] = never,
) -> None:
    """Advance a clock step by step, and wait for the effects of each step, so that leases are renewed in time.

    The time stands still between the steps: what happens does not depend on the speed of the machine. While the cluster `is_quiet`,
    the clock leaps to the next callback that is not deferrable. If it `is_over` after a step, the rest is left out.
    """
    with clock.standing_still():
        await idleness.wait(clock)
        while seconds > 0 and not is_over():
            leaped = await _leap(clock, seconds, idleness) if is_quiet() else 0.0
            if leaped:
                seconds -= leaped
                continue
            due = clock.next_due()
            step = seconds if due is None else min(max(due, MAX_STEP_SECONDS), seconds)
            clock.advance(step)
            seconds -= step
            await idleness.wait(clock)


async def _leap(clock: ClusterClock, seconds: float, idleness: Idleness) -> float:
    """Leap over a time in which only deferrable callbacks are due, then run these once; return the seconds of the leap."""
    for deferrable in clock.deferrables:
        deferrable.defer()
    try:
        leaped = clock.leap(seconds)
        for deferrable in clock.deferrables if leaped else ():
            deferrable.resume()
            clock.advance(0.0)
            await idleness.wait(clock)
    finally:
        for deferrable in clock.deferrables:
            deferrable.resume()
    return leaped
