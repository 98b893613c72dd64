"""Work in slices: all of it, in order, and others get their turn."""

import asyncio

import pytest

from apiserver.http.turns import SLICE, in_turns


@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 3 * SLICE])
async def test_something_is_made_of_each_item_in_order(count):
    assert await in_turns(str, range(count)) == [str(number) for number in range(count)]


async def test_others_get_their_turn_after_each_slice():
    done = []

    async def another():
        done.append("another")

    task = asyncio.create_task(another())
    await in_turns(done.append, range(2 * SLICE))
    await task
    assert done == [*range(SLICE), "another", *range(SLICE, 2 * SLICE)]
