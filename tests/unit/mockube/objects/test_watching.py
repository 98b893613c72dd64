"""Events of a watch that are repeated for a function, which may depend on other objects."""

import asyncio
from contextlib import aclosing

import pytest

from mockube.objects.watching import repeat_last


class Events:
    """A watch with one event."""

    def __init__(self):
        self.is_open = True

    async def watch(self):
        try:
            yield "ADDED"
            await asyncio.Event().wait()
        finally:
            self.is_open = False


async def test_last_event_is_repeated_without_another_one():
    async with aclosing(repeat_last(Events().watch(), 0.001)) as repeated:
        assert [await anext(repeated) for _ in range(3)] == ["ADDED"] * 3


@pytest.mark.parametrize("count", [1, 2], ids=["after the event", "after its repetition"])
async def test_watch_is_closed_with_its_repetition(count):
    events = Events()
    watch = events.watch()
    async with aclosing(repeat_last(watch, 0.001)) as repeated:
        for _ in range(count):
            await anext(repeated)
    assert not events.is_open
