"""Work queue: waiting and cancelled workers, and close; a property test covers the rest."""

import asyncio

import pytest

from mockube.client.metrics.queues import QueueStats
from mockube.client.queue.workqueue import Debouncer, DelayingQueue, KeyBackoff, RateLimiter, WorkQueue
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from tests.support.event_loop import yield_to_loop


@pytest.fixture
def queue():
    return WorkQueue(QueueStats("things", SteppedClock(), MetricsRegistry()))


async def test_keys_are_taken_in_order_of_addition(queue):
    for key in "abacb":
        queue.add(key)
    assert [await queue.take() for _ in range(len(queue))] == ["a", "b", "c"]


async def test_key_added_while_processed_is_requeued_when_done(queue):
    queue.add("a")
    await queue.take()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.take() == "a"


async def test_waiting_worker_takes_next_key(queue):
    taking = asyncio.create_task(queue.take())
    await yield_to_loop(2)
    queue.add("a")
    assert await taking == "a"


async def test_cancelled_worker_loses_no_key(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await yield_to_loop(2)
    queue.add("a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await second == "a"


async def test_cancelled_waiting_worker_is_removed(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await yield_to_loop(2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    queue.add("a")
    assert await second == "a"


async def test_closed_queue_is_empty_and_refuses_keys(queue):
    waiting = asyncio.create_task(queue.take())
    await yield_to_loop(2)
    queue.close()
    assert await waiting is None
    queue.add("a")
    assert len(queue) == 0
    assert await queue.take() is None


async def test_closed_queue_returns_no_pending_keys(queue):
    queue.add("a")
    queue.close()
    assert await queue.take() is None


async def test_key_can_be_done_after_close(queue):
    queue.add("a")
    key = await queue.take()
    queue.add("a")
    queue.close()
    queue.done(key)
    assert len(queue) == 0


@pytest.fixture
def delaying_queue(clock, added_keys):
    return DelayingQueue(lambda key: added_keys.append((clock.monotonic(), key)), clock)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([("a", 2.0), ("b", 1.0)], [(1.0, "b"), (2.0, "a")], id="each at its time"),
        pytest.param([("a", 2.0), ("a", 1.0)], [(1.0, "a")], id="earlier than before"),
        pytest.param([("a", 1.0), ("a", 2.0)], [(1.0, "a")], id="later than before"),
        pytest.param([("a", 3.0), ("a", 1.0), ("a", 2.0)], [(1.0, "a")], id="the earliest of three"),
        pytest.param([("a", 0.0), ("b", -1.0)], [(0.0, "a"), (0.0, "b")], id="at once"),
        pytest.param([("a", 0.1), ("b", 0.1)], [(0.1, "a"), (0.1, "b")], id="two at one time"),
    ],
)
def test_keys_are_added_when_due(delaying_queue, clock, added_keys, asked, expected):
    for key, seconds in asked:
        delaying_queue.add_after(key, seconds)
    clock.advance(10)
    assert added_keys == expected
    assert len(delaying_queue) == 0
    assert clock.next_due() is None


def test_key_can_be_delayed_again(delaying_queue, clock, added_keys):
    delaying_queue.add_after("a", 1)
    clock.advance(1)
    delaying_queue.add_after("a", 1)
    clock.advance(1)
    assert added_keys == [(1.0, "a"), (2.0, "a")]


def test_closed_delaying_queue_drops_keys(delaying_queue, clock, added_keys):
    delaying_queue.add_after("a", 1)
    delaying_queue.close()
    delaying_queue.add_after("b", 0)
    delaying_queue.add_after("c", 1)
    clock.advance(10)
    assert added_keys == []
    assert clock.next_due() is None


def test_fractional_delay_falls_due(delaying_queue, clock, added_keys):
    clock.advance(1e9 + 0.1)
    delaying_queue.add_after("a", 0.005)
    clock.advance(1)
    assert [key for _, key in added_keys] == ["a"]


@pytest.fixture
def debouncer(clock, added_keys):
    return Debouncer(lambda key: added_keys.append((clock.monotonic(), key)), clock)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([(0, "a")], [(2, "a")], id="one change"),
        pytest.param([(0, "a"), (1, "a")], [(3, "a")], id="second change restarts the delay"),
        pytest.param([(0, "a"), (2, "a")], [(2, "a"), (4, "a")], id="second change after the delay"),
        pytest.param([(at, "a") for at in range(7)], [(5, "a"), (8, "a")], id="continuous changes"),
        pytest.param([(0, "a"), (1, "b"), (2, "b")], [(2, "a"), (4, "b")], id="separate keys"),
    ],
)
def test_debounced_key_is_added_after_delay_or_maximum_delay(debouncer, clock, added_keys, changes, expected):
    for at, key in changes:
        clock.advance(at - clock.monotonic())
        debouncer.add_after_quiet(key, quiet=2, max_delay=5)
    clock.advance(10)
    assert added_keys == expected
    assert clock.next_due() is None


def test_closed_debouncer_adds_nothing(debouncer, clock, added_keys):
    debouncer.add_after_quiet("a", quiet=2, max_delay=5)
    debouncer.close()
    clock.advance(10)
    assert added_keys == []
    assert clock.next_due() is None


def test_each_failure_doubles_backoff_to_maximum():
    backoff = KeyBackoff()
    waits = [backoff.fail("a") for _ in range(100)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[17] == pytest.approx(655.36)
    assert waits[18:] == [1000.0] * 82
    assert backoff.fail("b") == 0.005


def test_forget_resets_backoff():
    backoff = KeyBackoff()
    backoff.fail("a")
    backoff.forget("a")
    assert backoff.fail("a") == 0.005


def test_many_keys_share_token_bucket():
    clock = SteppedClock()
    limiter = RateLimiter(clock)
    waits = [limiter.when(number) for number in range(103)]
    assert waits[:100] == [0.005] * 100
    assert waits[100:] == pytest.approx([0.1, 0.2, 0.3])
    clock.advance(0.3)
    assert limiter.when("later") == pytest.approx(0.1)


def test_longer_of_both_delays_applies():
    limiter = RateLimiter(SteppedClock())
    assert [limiter.when("a") for _ in range(10)][-1] == pytest.approx(2.56)
