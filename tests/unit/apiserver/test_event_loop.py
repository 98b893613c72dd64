"""Work in slices: complete, in order, and with turns for other tasks."""

import asyncio
import threading

import pytest

from mockube.apimachinery.cancellation import Cancelled, cancelled_by, raise_if_cancelled
from mockube.apimachinery.status import BadRequest
from mockube.apiserver.event_loop import (
    LARGE,
    SLICE,
    SLICE_BYTES,
    Worker,
    batches,
    filter_in_slices,
    yield_between_batches,
)
from tests.support.event_loop import yield_to_loop


@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 3 * SLICE])
async def test_items_are_mapped_in_order(count):
    assert await yield_between_batches(str, range(count)) == [str(number) for number in range(count)]


async def test_other_tasks_run_after_each_slice():
    done = []

    async def another():
        done.append("another")

    task = asyncio.create_task(another())
    await yield_between_batches(done.append, range(2 * SLICE))
    await task
    assert done == [*range(SLICE), "another", *range(SLICE, 2 * SLICE)]


async def test_slice_ends_at_byte_limit():
    done = []

    async def another():
        done.append("another")

    task = asyncio.create_task(another())
    await yield_between_batches(done.append, [1, 2, 3, 4], size=lambda _: SLICE_BYTES // 3)
    await task
    assert done == [1, 2, 3, "another", 4]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([1], [[1]], id="one"),
        pytest.param([1, 1, 1, 1, 1, 1, 1], [[1, 1, 1], [1, 1, 1], [1]], id="limit of items"),
        pytest.param([4, 6, 1], [[4, 6], [1]], id="limit of bytes"),
        pytest.param([1, 20, 30, 2], [[1], [20], [30], [2]], id="large items in their own slices"),
    ],
)
def test_batch_is_limited_in_items_and_bytes(sizes, expected):
    assert [*batches(sizes, lambda size: size, count=3, max_bytes=10)] == expected


async def test_large_items_are_mapped_in_thread_in_order():
    sizes = [1, LARGE, 2, LARGE + 1]
    made = await yield_between_batches(
        lambda size: (size, threading.current_thread()), sizes, size=lambda size: size
    )
    here = threading.main_thread()
    assert [size for size, _ in made] == sizes
    assert [thread is here for _, thread in made] == [True, False, True, False]


@pytest.mark.parametrize("cost", [1, 10, 10_000])
async def test_filter_in_slices_keeps_order(cost):
    assert await filter_in_slices(lambda number: number % 2, range(1500), cost=cost) == list(
        range(1, 1500, 2)
    )


# --- the worker


async def test_small_work_runs_at_once():
    assert await Worker().run(LARGE - 1, threading.current_thread) is threading.current_thread()


async def test_error_of_work_is_raised():
    with pytest.raises(ZeroDivisionError):
        await Worker().run(LARGE, lambda: 1 // 0)


async def test_work_runs_one_at_a_time():
    worker, running, maximum = Worker(), 0, 0
    lock = threading.Lock()

    def work():
        nonlocal running, maximum
        with lock:
            running += 1
            maximum = max(maximum, running)
        with lock:
            running -= 1

    await asyncio.gather(*(worker.run(LARGE, work) for _ in range(20)))
    assert maximum == 1


async def test_running_work_continues_after_caller_is_cancelled():
    worker, begun, may_end, done = Worker(), threading.Event(), threading.Event(), []

    def first():
        begun.set()
        may_end.wait()
        done.append("first")

    task = asyncio.create_task(worker.run(LARGE, first))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    following = asyncio.create_task(worker.run(LARGE, done.append, "second"))
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    await following
    assert done == ["first", "second"]


@pytest.mark.parametrize(
    ("error", "is_logged"),
    [
        pytest.param(ZeroDivisionError("a fault"), True, id="a fault"),
        pytest.param(BadRequest("a wrong field"), False, id="an error of the request"),
        pytest.param(Cancelled(), False, id="the cancellation"),
    ],
)
async def test_fault_is_logged_after_caller_is_cancelled(caplog, error, is_logged):
    worker, begun, may_end = Worker(), threading.Event(), threading.Event()

    def failing():
        begun.set()
        may_end.wait()
        raise error

    task = asyncio.create_task(worker.run(LARGE, failing))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    await worker.run(LARGE, lambda: None)
    assert ["a fault" in record.exc_text for record in caplog.records] == [True] * is_logged


async def test_abandoned_work_ends_at_next_check():
    worker, begun, ended = Worker(), threading.Event(), threading.Event()

    def endless():
        try:
            while True:
                begun.set()
                raise_if_cancelled()
        finally:
            ended.set()

    task = asyncio.create_task(worker.run(LARGE, endless))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await worker.run(LARGE, lambda: None)
    assert ended.is_set()


async def test_queued_work_is_dropped_with_its_caller():
    worker, may_end, done = Worker(), threading.Event(), []
    first = asyncio.create_task(worker.run(LARGE, may_end.wait))
    second = asyncio.create_task(worker.run(LARGE, done.append, "second"))
    await yield_to_loop(2)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    may_end.set()
    await first
    await worker.run(LARGE, done.append, "third")
    assert done == ["third"]


def test_cancellation_check_raises_after_cancellation_only():
    gone = threading.Event()
    raise_if_cancelled()
    with cancelled_by(gone):
        raise_if_cancelled()
        gone.set()
        with pytest.raises(Cancelled):
            raise_if_cancelled()
    raise_if_cancelled()
