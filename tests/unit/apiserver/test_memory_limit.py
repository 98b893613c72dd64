"""Large requests reserve memory: those beyond the capacity wait, and all reservations are released."""

import asyncio

import pytest

from mockube.apimachinery.status import TooManyRequests
from mockube.apiserver.memory_limit import MAX_WAITING_REQUESTS, MemoryLimit, Reservation
from tests.support.event_loop import yield_to_loop
from tests.support.seeded import source


def limit(capacity=100, *, minimum=10):
    return MemoryLimit(capacity, minimum=minimum)


async def reserve(limit, size):
    reservation = Reservation(limit)
    await reservation.grow(size)
    return reservation


async def test_request_waits_until_its_bytes_fit():
    bounds = limit()
    first = await reserve(bounds, 60)
    second = asyncio.create_task(reserve(bounds, 60))
    await yield_to_loop(2)
    assert not second.done()
    first.release()
    await second
    assert bounds.reserved == 60


async def test_small_requests_do_not_wait():
    bounds = limit()
    await reserve(bounds, 100)
    waiting = asyncio.create_task(reserve(bounds, 100))
    await yield_to_loop(2)
    await reserve(bounds, 9)
    assert bounds.reserved == 100
    waiting.cancel()


async def test_request_above_capacity_reserves_all_of_it():
    bounds = limit()
    first = await reserve(bounds, 1000)
    assert bounds.reserved == 100
    first.release()
    assert bounds.reserved == 0


async def test_requests_continue_in_order_of_arrival():
    bounds, order = limit(), []

    async def request(number, size):
        reservation = await reserve(bounds, size)
        order.append(number)
        await yield_to_loop()
        reservation.release()

    first = await reserve(bounds, 100)
    tasks = [asyncio.create_task(request(number, size)) for number, size in enumerate([100, 10, 50])]
    await yield_to_loop(2)
    first.release()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2], "smaller requests do not starve a large one"


async def test_growing_request_precedes_new_requests():
    bounds = limit()
    grows, other = await reserve(bounds, 50), await reserve(bounds, 50)
    begins = asyncio.create_task(reserve(bounds, 30))
    await yield_to_loop(2)
    growing = asyncio.create_task(grows.grow(80))
    await yield_to_loop(2)
    assert not begins.done(), "memory that the growing request releases is reserved for it"
    other.release()
    assert await growing, "it gets memory when other requests end"
    assert not begins.done()
    grows.release()
    await begins
    assert bounds.reserved == 30


async def test_two_growing_requests_do_not_deadlock():
    bounds = limit()
    first, second = await reserve(bounds, 50), await reserve(bounds, 50)
    one, two = asyncio.create_task(first.grow(80)), asyncio.create_task(second.grow(80))
    await yield_to_loop(3)
    assert (one.done(), two.done()) == (True, False)
    first.release()
    assert await two
    second.release()
    assert bounds.reserved == 0


async def test_growth_that_fits_does_not_wait():
    bounds = limit()
    reservation = await reserve(bounds, 50)
    assert not await reservation.grow(90)
    assert not await reservation.grow(20), "it has more already"
    assert bounds.reserved == 90


async def test_cancelled_request_leaves_the_queue():
    bounds = limit()
    first = await reserve(bounds, 100)
    second, third = (asyncio.create_task(reserve(bounds, size)) for size in (100, 20))
    await yield_to_loop(2)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    first.release()
    await third
    assert bounds.reserved == 20


async def test_cancelled_request_does_not_block_smaller_ones_behind_it():
    bounds = limit()
    await reserve(bounds, 50)
    second, third = (asyncio.create_task(reserve(bounds, size)) for size in (100, 20))
    await yield_to_loop(2)
    second.cancel()
    await third
    assert bounds.reserved == 70


async def test_request_cancelled_after_its_reservation_releases_it():
    bounds = limit()
    first = await reserve(bounds, 100)
    second, third = (asyncio.create_task(reserve(bounds, 100)) for _ in range(2))
    await yield_to_loop(2)
    first.release()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await third
    assert bounds.reserved == 100


async def test_new_request_is_refused_when_queue_is_full():
    bounds = limit()
    first = await reserve(bounds, 50)
    tasks = [asyncio.create_task(reserve(bounds, 100)) for _ in range(MAX_WAITING_REQUESTS)]
    await yield_to_loop(2)
    with pytest.raises(TooManyRequests):
        await reserve(bounds, 10)
    await reserve(bounds, 9)
    await first.grow(60)
    assert bounds.reserved == 60, "what has begun is not refused"
    for task in tasks:
        task.cancel()


async def test_any_sequence_of_requests_leaves_no_reservation():
    bounds, seeded = limit(), source("memory", 12)
    maximum = 0

    async def request():
        nonlocal maximum
        reservation = Reservation(bounds)
        try:
            for _ in range(seeded.randint(1, 4)):
                await reservation.grow(seeded.randint(0, 130))
                maximum = max(maximum, bounds.reserved)
                await yield_to_loop(seeded.randint(0, 3))
        finally:
            reservation.release()

    tasks = [asyncio.create_task(request()) for _ in range(150)]
    for task in seeded.sample(tasks, 40):
        await yield_to_loop()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (bounds.reserved, bounds.waiting) == (0, 0)
    assert maximum <= bounds.capacity


async def test_suspended_request_lets_others_begin():
    bounds = limit()
    outer = await reserve(bounds, 100)
    async with outer.suspend():
        inner = await reserve(bounds, 100)
        inner.release()
    assert bounds.reserved == 100
    outer.release()
    assert bounds.reserved == 0


async def test_suspended_request_precedes_new_requests():
    bounds, order = limit(), []
    outer = await reserve(bounds, 100)

    async def reserve_and_note():
        reservation = await reserve(bounds, 100)
        order.append("new")
        reservation.release()

    async with outer.suspend():
        other = await reserve(bounds, 100)
        begins = asyncio.create_task(reserve_and_note())
        await yield_to_loop(2)
        asyncio.get_running_loop().call_later(0, other.release)
    order.append("suspended")
    outer.release()
    await begins
    assert order == ["suspended", "new"]


async def test_bytes_are_reserved_again_after_the_last_suspension():
    bounds = limit()
    outer, ends = await reserve(bounds, 100), asyncio.Event()

    async def suspend():
        async with outer.suspend():
            await ends.wait()

    longer = asyncio.create_task(suspend())
    async with outer.suspend():
        await yield_to_loop(2)
    assert bounds.reserved == 0
    ends.set()
    await longer
    assert bounds.reserved == 100


async def test_bytes_are_reserved_again_after_an_error():
    bounds = limit()
    outer = await reserve(bounds, 100)
    with pytest.raises(KeyError):
        async with outer.suspend():
            raise KeyError
    assert bounds.reserved == 100


async def test_request_that_is_cancelled_while_suspended_does_not_wait():
    bounds, began = limit(), asyncio.Event()
    outer = await reserve(bounds, 100)

    async def suspend():
        async with outer.suspend():
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(suspend())
    await began.wait()
    other = await reserve(bounds, 100)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (bounds.reserved, bounds.waiting) == (100, 0)
    other.release()
