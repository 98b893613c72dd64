"""Large requests reserve memory: those beyond the capacity or their user's share wait, and all reservations are released."""

import asyncio
from itertools import count

import pytest

from mockube.apimachinery.status import TooManyRequests
from mockube.apiserver.memory_limit import MAX_WAITING_REQUESTS, MemoryLimit, Reservation
from tests.support.event_loop import yield_to_loop
from tests.support.seeded import source

numbers = count()


def limit(capacity=100, *, minimum=10):
    return MemoryLimit(capacity, minimum=minimum)


async def reserve(limit, size, user=None):
    """Reserve bytes for a request of a user; without a name, of one who has no other request."""
    reservation = Reservation(limit, user or f"user-{next(numbers)}")
    await reservation.grow(size)
    return reservation


async def begin(limit, *requests):
    """Begin to reserve bytes for each (user, size), one after the other; return the tasks."""
    tasks = [asyncio.create_task(reserve(limit, size, user)) for user, size in requests]
    await yield_to_loop(2)
    return tasks


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


async def test_user_leaves_as_much_as_they_have():
    bounds = limit()
    requests = [("slow", 10)] * 10
    tasks = await begin(bounds, *requests)
    assert (bounds.reserved, bounds.waiting) == (50, 5)
    await reserve(bounds, 10, "other")
    for task in tasks:
        task.cancel()


async def test_each_further_user_has_a_share_of_the_rest():
    bounds = limit(256)
    tasks = await begin(bounds, *[(user, 10) for user in "abcde" for _ in range(30)])
    assert [sum(task.done() for task in tasks[start : start + 30]) for start in range(0, 150, 30)] == [
        12,
        6,
        3,
        2,
        1,
    ]
    for task in tasks:
        task.cancel()


async def test_one_request_of_a_user_may_have_more_than_the_share():
    bounds = limit()
    await reserve(bounds, 20, "a")
    await reserve(bounds, 70, "b")
    assert bounds.reserved == 90


async def test_users_take_turns():
    bounds, order = limit(), []

    async def request(user):
        reservation = await reserve(bounds, 100, user)
        order.append(user)
        await yield_to_loop()
        reservation.release()

    first = await reserve(bounds, 100)
    tasks = [asyncio.create_task(request(user)) for user in "aaaabbc"]
    await yield_to_loop(2)
    first.release()
    await asyncio.gather(*tasks)
    assert "".join(order) == "abcabaa"


async def test_user_whose_small_requests_never_end_does_not_starve_a_large_one():
    bounds = limit()
    first, second = await reserve(bounds, 10, "a"), await reserve(bounds, 10, "b")
    (large,) = await begin(bounds, ("c", 100))
    in_turn = await begin(bounds, ("a", 10), ("b", 10))
    assert all(task.done() for task in in_turn), "their last turn was before"
    later = await begin(bounds, ("a", 10), ("b", 10), ("d", 10))
    assert not any(task.done() for task in later), "there is room, but the large one is before them"
    for reservation in (first, second, *[task.result() for task in in_turn]):
        reservation.release()
    (await large).release()
    for task in later:
        (await task).release()
    assert bounds.reserved == 0


async def test_growing_request_beyond_its_share_does_not_hold_up_other_users():
    bounds = limit()
    grows, other = await reserve(bounds, 10, "slow"), await reserve(bounds, 40, "slow")
    growing = asyncio.create_task(grows.grow(20))
    await yield_to_loop(2)
    assert not growing.done(), "40 and 20 are more than they leave"
    (await reserve(bounds, 20, "other")).release()
    (behind,) = await begin(bounds, ("slow", 10))
    assert not behind.done(), "it does not overtake what has begun"
    other.release()
    await growing
    await behind
    assert bounds.reserved == 30


async def test_full_queue_of_one_user_does_not_refuse_another():
    bounds = limit()
    first = await reserve(bounds, 100, "first")
    slow = await begin(bounds, *[("slow", 100)] * MAX_WAITING_REQUESTS)
    others = await begin(bounds, *[("other", 100)] * MAX_WAITING_REQUESTS)
    refused = [task.done() and isinstance(task.exception(), TooManyRequests) for task in slow + others]
    assert refused == ([False] * 100 + [True] * 100) * 2, (
        "the last ones are refused; each user has half of the queue"
    )
    assert bounds.waiting == MAX_WAITING_REQUESTS
    first.release()
    (await slow[0]).release()
    (await others[0]).release()
    for task in slow + others:
        task.cancel()
    await asyncio.gather(*slow, *others, return_exceptions=True)
    assert (bounds.reserved, bounds.waiting) == (0, 0)


async def test_request_that_is_refused_and_cancelled_at_once_releases_nothing():
    bounds = limit()
    first = await reserve(bounds, 100, "first")
    slow = await begin(bounds, *[("slow", 100)] * MAX_WAITING_REQUESTS)
    other = asyncio.create_task(reserve(bounds, 100, "other"))
    await yield_to_loop()
    slow[-1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow[-1]
    assert (bounds.reserved, bounds.waiting) == (100, MAX_WAITING_REQUESTS)
    for task in (*slow, other):
        task.cancel()
    await asyncio.gather(*slow, other, return_exceptions=True)
    first.release()
    assert (bounds.reserved, bounds.waiting) == (0, 0)


async def test_any_sequence_of_requests_leaves_no_reservation():
    bounds, seeded = limit(), source("memory", 12)
    maximum = 0

    async def request():
        nonlocal maximum
        reservation = Reservation(bounds, seeded.choice("abc"))
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
