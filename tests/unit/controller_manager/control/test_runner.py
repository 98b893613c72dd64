"""Reconcile workers: keys, retries with backoff, delayed requeues, and a clean shutdown."""

import asyncio
import logging
from datetime import timedelta

import pytest

from mockube.apimachinery.status import Conflict, Details, Forbidden, NotFound
from mockube.client.kinds import PODS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.client.wire import Unreachable
from mockube.component_base.clock import ClusterClock, SteppedClock
from mockube.controller_manager.control.controller import Watch
from mockube.controller_manager.control.runner import delay_of
from tests.support.event_loop import until, yield_to_loop
from tests.support.metric_samples import sample_value

A, B, C = Key("default", "a"), Key("default", "b"), Key("default", "c")


class Work:
    """A scripted reconcile function that fails, returns a result, or waits for the gate."""

    def __init__(self):
        self.began = []
        self.ended = []
        self.answers = {}
        """For each key, the next results to return or errors to raise."""
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key):
        self.began.append(key)
        await self.gate.wait()
        self.ended.append(key)
        answers = self.answers.get(key)
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def work():
    return Work()


@pytest.fixture
async def loop(clock, metrics, work):
    runs = metrics.reconciles.of("things-controller", 2)
    loop = ReconcileLoop("things", work, workers=2, clock=clock, metrics=metrics, observer=runs)
    running = asyncio.create_task(loop.run())
    yield loop
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def sample(metrics, name, /, **labels):
    return sample_value(metrics.registry, name, labels)


async def test_added_key_is_reconciled(loop, work):
    loop.add(A)
    await until(lambda: work.ended == [A])


def numbers(metrics, name, **labels):
    return sample(metrics, f"controller_runtime_{name}", controller="things-controller", **labels)


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("why"),
        Unreachable("why"),
        NotFound("why", Details(name="a-claim")),
        NotFound("why"),
    ],
)
async def test_api_error_is_logged_in_one_line(loop, work, clock, caplog, error):
    work.answers[A] = [error]
    with caplog.at_level(logging.WARNING):
        loop.add(A)
        await until(lambda: clock.next_due() is not None)
    (record,) = caplog.records
    assert record.getMessage() == "things: default/a: why"
    assert not record.exc_info


@pytest.mark.parametrize("error", [Conflict("changed"), NotFound("deleted", Details(name=A.name))])
async def test_object_that_another_client_changed_or_deleted_is_no_warning(loop, work, clock, caplog, error):
    work.answers[A] = [error]
    with caplog.at_level(logging.INFO):
        loop.add(A)
        await until(lambda: clock.next_due() is not None)
    assert not caplog.records


async def test_failed_key_is_retried_with_backoff(loop, work, clock, metrics):
    work.answers[A] = [Conflict("old"), ValueError("why")]
    loop.add(A)
    await until(lambda: clock.next_due() == pytest.approx(0.005))
    clock.advance(0.005)
    await until(lambda: clock.next_due() == pytest.approx(0.01))
    clock.advance(0.01)
    await until(lambda: len(work.ended) == 3)
    await yield_to_loop(5)
    assert clock.next_due() is None
    assert sample(metrics, "workqueue_retries_total", name="things") == 2
    counted = {name: numbers(metrics, name) for name in ("reconcile_errors_total", "reconcile_panics_total")}
    assert counted == {"reconcile_errors_total": 2, "reconcile_panics_total": 1}


async def test_success_resets_backoff(loop, work, clock):
    work.answers[A] = [ValueError("why"), None, ValueError("again")]
    loop.add(A)
    await until(clock.next_due)
    clock.advance(1)
    await until(lambda: len(work.ended) == 2)
    loop.add(A)
    await until(lambda: clock.next_due() == pytest.approx(0.005))


async def test_changing_key_is_reconciled_after_debounce_delay(loop, work, clock):
    loop.add_debounced(A, quiet=timedelta(seconds=2), max_delay=timedelta(seconds=5))
    clock.advance(1)
    loop.add_debounced(A, quiet=timedelta(seconds=2), max_delay=timedelta(seconds=5))
    clock.advance(1.5)
    await yield_to_loop(5)
    assert not work.began
    clock.advance(0.5)
    await until(lambda: work.ended == [A])


async def test_key_is_requeued_after_requested_time(loop, work, clock):
    work.answers[A] = [timedelta(seconds=30)]
    loop.add(A)
    await until(lambda: clock.next_due() == 30)
    clock.advance(30)
    await until(lambda: work.ended == [A, A])


async def test_reconciliations_are_counted_by_result(loop, work, clock, metrics):
    work.answers[A] = [timedelta(seconds=30), Conflict("old"), None]
    loop.add(A)
    for passed in range(3):
        await until(lambda ends=passed + 1: len(work.ended) == ends)
        await yield_to_loop(5)
        clock.advance(30)
    results = {
        result: numbers(metrics, "reconcile_total", result=result)
        for result in ("success", "error", "requeue", "requeue_after")
    }
    assert results == {"success": 1, "error": 1, "requeue": 0, "requeue_after": 1}
    assert numbers(metrics, "reconcile_time_seconds_count") == 3


async def test_workers_run_concurrently_but_never_on_one_key(loop, work, metrics):
    work.gate.clear()
    for key in (A, B, A):
        loop.add(key)
    await until(lambda: len(work.began) == 2)
    assert numbers(metrics, "active_workers") == numbers(metrics, "max_concurrent_reconciles") == 2
    loop.add(A)
    await yield_to_loop(10)
    assert work.began == [A, B]
    work.gate.set()
    await until(lambda: sorted(work.ended) == [A, A, B])
    await yield_to_loop(5)
    assert numbers(metrics, "active_workers") == 0


async def test_cancelled_loop_finishes_current_key_only(clock, metrics, work):
    loop = ReconcileLoop("things", work, workers=1, clock=clock, metrics=metrics)
    work.gate.clear()
    running = asyncio.create_task(loop.run())
    loop.add(A)
    loop.add(B)
    await until(lambda: work.began == [A])
    running.cancel()
    await yield_to_loop(10)
    assert not running.done()
    work.gate.set()
    await asyncio.gather(running, return_exceptions=True)
    assert (work.began, work.ended) == ([A], [A])
    assert running.cancelled()


async def test_second_cancellation_cancels_current_key(clock, metrics, work):
    loop = ReconcileLoop("things", work, workers=1, clock=clock, metrics=metrics)
    work.gate.clear()
    running = asyncio.create_task(loop.run())
    loop.add(A)
    await until(lambda: work.began == [A])
    running.cancel()
    await yield_to_loop(5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert work.ended == []


async def test_late_failure_leaves_no_timer(clock, metrics, work):
    loop = ReconcileLoop("things", work, workers=1, clock=clock, metrics=metrics)
    work.gate.clear()
    work.answers[A] = [ValueError("why")]
    running = asyncio.create_task(loop.run())
    loop.add(A)
    await until(lambda: work.began == [A])
    running.cancel()
    await yield_to_loop(5)
    work.gate.set()
    await asyncio.gather(running, return_exceptions=True)
    assert clock.next_due() is None


@pytest.mark.parametrize(
    ("delay", "pause", "counted", "expected"),
    [(50, 20, 0, 50), (50, 20, 1_000, 50), (50, 20, 10_000, 200), (0, 0, 10_000, 0), (0, 100, 1_000, 100)],
)
def test_changes_wait_longer_for_a_reconciliation_that_looks_at_many_objects(delay, pause, counted, expected):
    watch = Watch(resource=PODS, delay=timedelta(milliseconds=delay), pause=timedelta(microseconds=pause))
    assert delay_of(watch, counted) == timedelta(milliseconds=expected)


async def test_coalesced_keys_are_reconciled_while_the_clock_is_paused(metrics, work):
    real = SteppedClock()
    clock = ClusterClock(real)
    loop = ReconcileLoop("things", work, workers=1, clock=clock, metrics=metrics)
    running = asyncio.create_task(loop.run())
    clock.pause()
    loop.add_coalesced(A, timedelta(seconds=1))
    loop.add_debounced(B, quiet=timedelta(seconds=2), max_delay=timedelta(seconds=5))
    loop.add_after(C, timedelta(seconds=1))
    real.advance(10)
    await until(lambda: work.ended == [A, B])
    clock.advance(1)
    await until(lambda: work.ended == [A, B, C])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_key_that_waits_for_a_time_and_after_a_change_is_reconciled_once(metrics, work):
    clock = ClusterClock(real := SteppedClock())
    loop = ReconcileLoop("things", work, workers=1, clock=clock, metrics=metrics)
    running = asyncio.create_task(loop.run())
    loop.add_after(A, timedelta(seconds=1))
    loop.add_coalesced(A, timedelta(seconds=2))
    loop.add_coalesced(B, timedelta(seconds=1))
    loop.add_after(B, timedelta(seconds=2))
    loop.add_after(C, timedelta(seconds=3))
    real.advance(5)
    await until(lambda: C in work.ended)
    assert work.ended == [A, B, C]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
