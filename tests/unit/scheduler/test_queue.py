import asyncio

import pytest

from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.scheduler.queue import MAX_EARLY, MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from mockube.scheduler.requeueing import Action, ClusterEvent
from tests.support.event_loop import yield_to_loop

A, B, C = (Key("default", name) for name in "abc")


class FakeScheduler:
    """A scheduler that takes pods from the queue and finds no node for any."""

    def __init__(self):
        self.clock = SteppedClock()
        self.queue = SchedulingQueue(self.clock, pops_from_backoff=False)
        self.keys = []

    async def run(self):
        while True:
            key = await self.queue.pop()
            self.keys.append(key)
            self.queue.add_unschedulable(key, {"NodeResourcesFit"})
            self.queue.done()

    async def tried_after(self, seconds):
        """Return the pods that were tried in this time."""
        self.keys.clear()
        self.clock.advance(seconds)
        await yield_to_loop()
        await yield_to_loop()
        return [*self.keys]


@pytest.fixture
async def scheduler():
    scheduler = FakeScheduler()
    task = asyncio.create_task(scheduler.run())
    yield scheduler
    task.cancel()


async def test_queue_orders_by_priority_then_arrival(scheduler):
    for key, priority in ((A, 0), (B, 5), (C, 0)):
        scheduler.queue.add(key, priority)
    assert await scheduler.tried_after(0) == [B, A, C]


async def test_unschedulable_pod_waits_for_event(scheduler):
    scheduler.queue.add(A, 0)
    assert await scheduler.tried_after(0) == [A]
    assert await scheduler.tried_after(100) == []
    scheduler.queue.move()
    assert await scheduler.tried_after(0) == [A]


@pytest.mark.parametrize("fail", ["add_unschedulable", "retry"])
async def test_failed_attempt_does_not_count_for_new_pod_of_same_name(fail):
    queue = SchedulingQueue(SteppedClock())
    queue.add(A, 0)
    await queue.pop()
    queue.delete(A)
    queue.add(A, 0)
    getattr(queue, fail)(*((A, {"NodeResourcesFit"}) if fail == "add_unschedulable" else (A,)))
    queue.done()
    assert await queue.pop() == A
    assert queue.pending(0) == {"active": 0, "backoff": 0, "gated": 0, "unschedulable": 0}
    queue.retry(A)
    queue.done()
    queue._clock.advance(1)
    assert not queue.is_idle, "it is the first failure"


async def test_backoff_grows_with_attempts(scheduler):
    scheduler.queue.add(A, 0)
    await scheduler.tried_after(0)
    waits = []
    for _ in range(6):
        scheduler.queue.move()
        waits.append(0)
        while not await scheduler.tried_after(0.5):
            waits[-1] += 0.5
    assert waits == [0.5, 1.5, 3.5, 7.5, 9.5, 9.5]


async def test_unschedulable_pod_is_retried_after_timeout(scheduler):
    scheduler.queue.add(A, 0)
    await scheduler.tried_after(0)
    assert await scheduler.tried_after(MAX_UNSCHEDULABLE_SECONDS - 1) == []
    assert await scheduler.tried_after(1) == [A]


async def test_deleted_pod_is_not_scheduled(scheduler):
    scheduler.queue.add(A, 0)
    scheduler.queue.add(B, 0)
    scheduler.queue.delete(A)
    assert await scheduler.tried_after(0) == [B]
    scheduler.queue.delete(B)
    scheduler.queue.move()
    assert await scheduler.tried_after(MAX_UNSCHEDULABLE_SECONDS) == []
    scheduler.queue.add(A, 0)
    assert await scheduler.tried_after(0) == [A]


async def test_event_during_scheduling_requeues_pod():
    clock = SteppedClock()
    queue = SchedulingQueue(clock, pops_from_backoff=False)
    queue.add(A, 0)
    assert await queue.pop() == A
    assert not queue.is_idle
    queue.move()
    queue.add_unschedulable(A, {"NodeResourcesFit"})
    queue.done()
    assert queue.is_idle
    clock.advance(1)
    assert not queue.is_idle
    assert await queue.pop() == A


async def test_failed_pod_is_retried_after_backoff():
    clock = SteppedClock()
    queue = SchedulingQueue(clock)
    queue.add(A, 0)
    for backoff in (1, 2, 4):
        assert await queue.pop() == A
        queue.retry(A)
        queue.done()
        clock.advance(backoff - 0.1)
        assert queue.is_idle
        clock.advance(0.1)
        assert not queue.is_idle


async def test_only_events_that_may_help_requeue_pod():
    helpful, other = (ClusterEvent(kind, Action.ADD) for kind in ("Node", "Pod"))
    queue = SchedulingQueue(SteppedClock(), is_worth=lambda _, plugins, event: event.kind in plugins)
    queue.add(A, 0)
    for events, is_requeued in ([other], False), ([helpful], True):
        assert await queue.pop() == A
        for event in events:
            queue.move(event)
        queue.add_unschedulable(A, {"Node"})
        queue.done()
        assert queue.is_idle is not is_requeued
        queue.move(other)
        assert queue.is_idle is not is_requeued
        queue.move(helpful)
        assert not queue.is_idle


async def test_pod_in_backoff_is_tried_if_no_pod_is_active():
    queue = SchedulingQueue(SteppedClock())
    for key, priority in ((A, 0), (B, 5)):
        queue.add(key, priority)
        assert await queue.pop() == key
        queue.add_unschedulable(key, {"NodeResourcesFit"})
        queue.done()
    queue.add(C, 0)
    queue.move()
    tried = []
    while not queue.is_idle:
        tried.append(await queue.pop())
        queue.add_unschedulable(tried[-1], {"NodeResourcesFit"})
        queue.done()
    assert tried == [C, B, A]


async def test_many_pods_in_backoff_wait_for_its_end():
    clock = SteppedClock()
    queue = SchedulingQueue(clock)
    for number in range(MAX_EARLY + 1):
        queue.add(Key("default", str(number)), 0)
        queue.add_unschedulable(await queue.pop(), {"NodeResourcesFit"})
        queue.done()
    queue.move()
    assert queue.is_idle
    clock.advance(1)
    assert not queue.is_idle


async def test_blocked_pod_is_queued_after_resume():
    clock, blocked = SteppedClock(), {A}
    queue = SchedulingQueue(clock, blocked.__contains__)
    queue.add(A, 0)
    assert await queue.pop() == A
    queue.add_unschedulable(A, {"NodeResourcesFit"})
    queue.done()
    clock.advance(10)
    queue.move()
    queue.add(A, 0)
    queue.resume(A)
    assert queue.is_idle
    blocked.clear()
    queue.resume(A)
    assert await queue.pop() == A


def counts(queue):
    return {name: count for name, count in queue.pending(0).items() if count}


async def reject(queue, key):
    assert await queue.pop() == key
    queue.add_unschedulable(key, {"NodeResourcesFit"})
    queue.done()


@pytest.mark.parametrize("pops_from_backoff", [True, False])
async def test_timer_of_an_earlier_wait_does_not_queue_the_pod_again(pops_from_backoff):
    """Neither that of the backoff nor that after which a pod is tried without a change."""
    clock = SteppedClock()
    queue = SchedulingQueue(clock, pops_from_backoff=pops_from_backoff)
    queue.add(A, 0)
    await reject(queue, A)
    queue.move()
    clock.advance(0 if pops_from_backoff else 1)
    assert await queue.pop() == A
    clock.advance(MAX_UNSCHEDULABLE_SECONDS)
    assert counts(queue) == {}


async def test_deleted_pod_is_not_queued_by_its_timer():
    clock = SteppedClock()
    queue = SchedulingQueue(clock)
    queue.add(A, 0)
    await reject(queue, A)
    queue.delete(A)
    clock.advance(MAX_UNSCHEDULABLE_SECONDS)
    assert (counts(queue), queue.is_idle) == ({}, True)
    queue.delete(A)


async def test_deleted_pod_is_not_tried_before_the_end_of_its_backoff():
    queue = SchedulingQueue(SteppedClock())
    queue.add(A, 0)
    await reject(queue, A)
    queue.move()
    assert not queue.is_idle
    queue.delete(A)
    assert queue.is_idle


async def test_pod_that_changes_during_its_attempt_is_tried_again():
    for change in (lambda queue: queue.add(A, 0), lambda queue: queue.resume(A)):
        queue = SchedulingQueue(SteppedClock(), is_worth=lambda _, __, event: event.kind == "")
        queue.add(A, 0)
        assert await queue.pop() == A
        change(queue)
        queue.add_unschedulable(A, {"NodeResourcesFit"})
        queue.done()
        assert counts(queue) == {"backoff": 1}


async def test_too_many_events_during_an_attempt_count_as_any():
    queue = SchedulingQueue(SteppedClock(), is_worth=lambda _, __, event: event.kind == "")
    queue.add(A, 0)
    assert await queue.pop() == A
    for _ in range(1001):
        queue.move(ClusterEvent("Node", Action.ADD))
    queue.add_unschedulable(A, {"NodeResourcesFit"})
    queue.done()
    assert counts(queue) == {"backoff": 1}


async def test_events_before_the_attempt_do_not_count():
    queue = SchedulingQueue(SteppedClock())
    queue.add(A, 0)
    queue.move()
    await reject(queue, A)
    assert counts(queue) == {"unschedulable": 1}
    queue.move()
    await reject(queue, A)
    assert counts(queue) == {"unschedulable": 1}


async def test_error_ends_the_reasons_of_the_rejection_before():
    """Such a pod is not tried before its backoff ends, and no plugin rejected it."""
    clock = SteppedClock()
    queue = SchedulingQueue(clock)
    queue.add(A, 0)
    await reject(queue, A)
    assert [*queue.rejected()] == [(A, {"NodeResourcesFit"})]
    queue.move()
    assert await queue.pop() == A
    queue.retry(A)
    queue.done()
    assert (counts(queue), [*queue.rejected()], queue.is_idle) == ({"backoff": 1}, [], True)


async def test_rejection_ends_the_errors_before():
    clock = SteppedClock()
    queue = SchedulingQueue(clock, pops_from_backoff=False)
    queue.add(A, 0)
    for fail in (queue.retry, lambda key: queue.add_unschedulable(key, {"NodePorts"}), queue.retry):
        assert await queue.pop() == A
        fail(A)
        queue.done()
        queue.move()
        clock.advance(1)
        assert counts(queue) == {"active": 1}


async def test_attempts_are_counted_from_the_first_one_on():
    clock = SteppedClock()
    queue = SchedulingQueue(clock)
    queue.add(A, 0)
    clock.advance(5)
    began = clock.monotonic()
    await reject(queue, A)
    queue.move()
    clock.advance(20)
    assert await queue.pop() == A
    assert queue.attempts_of(A) == (2, began)


async def test_backoff_is_that_of_the_settings():
    clock = SteppedClock()
    queue = SchedulingQueue(clock, pops_from_backoff=False, backoff=(3, 4))
    queue.add(A, 0)
    for wait in (3, 4):
        await reject(queue, A)
        queue.move()
        clock.advance(wait - 0.5)
        assert queue.is_idle
        clock.advance(0.5)
        assert not queue.is_idle


@pytest.mark.parametrize(("seconds", "order"), [(0.25, [B, A]), (1, [A, B])])
async def test_pods_in_backoff_are_tried_by_the_second_of_its_end_and_then_by_priority(seconds, order):
    clock = SteppedClock()
    clock.advance(1 - clock.monotonic() % 1)
    queue = SchedulingQueue(clock, backoff=(5, 10))
    for key, priority in ((A, 0), (B, 5)):
        queue.add(key, priority)
        await reject(queue, key)
        clock.advance(seconds)
    queue.move()
    assert [await queue.pop() for _ in order] == order
