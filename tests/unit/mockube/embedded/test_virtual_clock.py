"""The virtual clock, which a test can advance."""

import asyncio

from mockube.component_base.timers import MAX_CANCELLED
from mockube.embedded import virtual_clock
from mockube.embedded.virtual_clock import VirtualClock
from tests.support.event_loop import until

HOUR = 3600.0


async def test_virtual_clock_runs_in_real_time():
    clock, called = VirtualClock(), asyncio.Event()
    before = clock.now(), clock.monotonic()
    clock.call_later(0.001, called.set)
    await until(called.is_set)
    await clock.sleep(0.001)
    assert clock.now() > before[0]
    assert clock.monotonic() > before[1]


async def test_callbacks_run_in_order_at_their_time():
    clock, calls = VirtualClock(), []
    began = clock.monotonic()

    def recording_callback(name, then=None):
        def record():
            calls.append((name, round((clock.monotonic() - began) / HOUR, 2)))
            if then is not None:
                clock.call_later(HOUR, recording_callback(then))

        return record

    clock.call_later(3 * HOUR, recording_callback("third"))
    clock.call_later(1 * HOUR, recording_callback("first", then="second"))
    clock.call_later(1.5 * HOUR, recording_callback("cancelled")).cancel()
    await virtual_clock.advance_clock(clock, 10 * HOUR, lambda: False)
    assert calls == [("first", 1), ("second", 2), ("third", 3)]
    assert round((clock.monotonic() - began) / HOUR, 2) == 10


def fail():
    raise RuntimeError("a fault in the program")


async def test_failed_callback_is_logged_and_others_run(caplog):
    """One timer of the event loop serves all callbacks, so that an error would stop the whole control plane."""
    clock, called = VirtualClock(), asyncio.Event()
    clock.call_later(0.001, fail)
    clock.call_later(0.002, called.set)
    await until(called.is_set)
    (record,) = caplog.records
    assert "RuntimeError: a fault in the program" in caplog.handler.format(record)


async def test_failed_callback_does_not_end_advance(caplog):
    clock, calls = VirtualClock(), []
    clock.call_later(HOUR, fail)
    clock.call_later(2 * HOUR, lambda: calls.append("second"))
    await virtual_clock.advance_clock(clock, 3 * HOUR, lambda: False)
    assert calls == ["second"]
    assert len(caplog.records) == 1


async def test_advance_waits_for_pending_work():
    clock, done = VirtualClock(), []
    answered = asyncio.get_running_loop().create_future()
    clock.call_later(HOUR, lambda: done.append("asked"))
    clock.call_later(2 * HOUR, lambda: done.append("later"))
    advancing = asyncio.create_task(
        virtual_clock.advance_clock(clock, 3 * HOUR, lambda: "asked" in done and not answered.done())
    )
    await until(lambda: done)
    assert done == ["asked"]
    answered.set_result(None)
    await advancing
    assert done == ["asked", "later"]


async def test_cancelled_callbacks_are_dropped():
    clock = VirtualClock()
    for _ in range(3 * MAX_CANCELLED):
        clock.call_later(HOUR, print).cancel()
    assert len(clock._timers) <= MAX_CANCELLED + 1
