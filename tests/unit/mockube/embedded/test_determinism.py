"""What runs the calls of a cluster with a seed: its event loop, its threads, and when its time passes."""

import asyncio
import threading
from concurrent.futures import Future
from contextlib import closing
from datetime import timedelta

import pytest

from mockube.component_base.clock import ClusterClock
from mockube.embedded.determinism import START, SeededLoop, SteppedWork
from mockube.objects.caller import call_in_caller, run_blocking
from tests.support.event_loop import yield_to_loop


def run(scenario):
    """Run a scenario in a loop with a clock that stands still."""

    async def run_scenario():
        clock = ClusterClock(start=START)
        return await scenario(clock, SteppedWork(clock, lambda: False))

    with closing(SeededLoop()) as loop:
        return loop.run_until_complete(run_scenario())


def test_time_passes_as_far_as_a_call_waits():
    async def scenario(clock, stepped):
        await stepped.run(clock.sleep(3600))
        return clock.now() - START

    assert run(scenario) == timedelta(hours=1)


def test_time_stands_still_for_a_call_that_does_not_wait():
    async def scenario(clock, stepped):
        async def work():
            await yield_to_loop(100)
            return "done"

        clock.call_later(1, lambda: None)
        return await stepped.run(work()), clock.now() - START

    assert run(scenario) == ("done", timedelta())


def test_call_begins_and_ends_when_nothing_is_left_to_do():
    async def scenario(_, stepped):
        done = []

        async def background(name):
            await yield_to_loop(50)
            done.append(name)

        async def work():
            assert done == ["before"]
            tasks.append(asyncio.create_task(background("after")))

        tasks = [asyncio.create_task(background("before"))]
        await stepped.run(work())
        return done

    assert run(scenario) == ["before", "after"]


def test_calls_at_the_same_time_share_the_time_that_passes():
    async def scenario(clock, stepped):
        async def wait(seconds):
            await clock.sleep(seconds)
            return clock.monotonic()

        return await asyncio.gather(*(stepped.run(wait(seconds)) for seconds in (20, 10)))

    assert run(scenario) == [20, 10]


def test_advance_runs_while_another_call_waits():
    async def scenario(clock, stepped):
        waiting = asyncio.create_task(stepped.run(clock.sleep(1e6)))
        await stepped.advance(100, lambda: False)
        assert clock.monotonic() >= 100
        waiting.cancel()
        await asyncio.wait([waiting])
        return await stepped.run(asyncio.to_thread(lambda: "next"))

    assert run(scenario) == "next"


def test_error_of_a_call_is_raised_to_its_caller():
    async def scenario(_, stepped):
        async def fail():
            raise ValueError("wrong")

        await stepped.run(fail())

    with pytest.raises(ValueError, match="wrong"):
        run(scenario)


def test_timer_that_is_set_anew_at_once_does_not_stop_time():
    async def scenario(clock, stepped):
        def again():
            clock.call_later(1e-4, again)

        again()
        await stepped.run(clock.sleep(0.05))

    run(scenario)


def test_work_of_threads_runs_inline():
    async def scenario(_, __):
        order = []
        tasks = [
            asyncio.to_thread(lambda name=name: order.append((name, threading.get_ident()))) for name in "abc"
        ]
        await asyncio.gather(*tasks)
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        return order

    assert run(scenario) == [(name, threading.get_ident()) for name in "abc"]


@pytest.mark.timeout(30)
def test_time_stands_still_while_the_function_of_a_caller_runs():
    """The function runs in the thread of the caller, and takes some real time."""
    clock, started = ClusterClock(start=START), Future()

    async def serve():
        ended = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), SteppedWork(clock, lambda: False), ended))
        await ended.wait()

    async def work():
        clock.call_later(1, lambda: None)
        return await call_in_caller(see)

    def see():
        threading.Event().wait(0.05)
        return clock.monotonic()

    with closing(SeededLoop()) as loop:
        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
        thread.start()
        _, stepped, ended = started.result()
        seen = run_blocking(lambda sent: asyncio.run_coroutine_threadsafe(stepped.run(sent), loop), work())
        loop.call_soon_threadsafe(ended.set)
        thread.join()
    assert seen == 0
