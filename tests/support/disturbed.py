"""A manager that loses answers, or is killed, in the middle of a story that goes on whenever both have come to rest.

A story has `go_on`: does what a machine does, or its next step once all is as it should be; it is False at the end.
"""

import asyncio
from itertools import count

from controller_manager.runtime.wire import OutcomeUnknown
from tests.support.turns import turn


async def play(story, manager, clock, *, until=lambda: False):
    for _ in range(4000):
        if until():
            return
        for _ in range(10):
            await turn()
        if manager.transport.in_flight == 0 and not await story.go_on():
            return
        if clock.next_due() is not None:
            clock.advance(0.01)
    raise AssertionError("the story does not end")


class Lost:
    """Loses the answer to every so-manyth write of the controller."""

    def __init__(self, every):
        self._every = every
        self._count = 0

    async def __call__(self, _):
        self._count += 1
        if self._count % self._every == 0:
            raise OutcomeUnknown("cut")


class Killed:
    """Answers no more after so many writes: who waits for the next answer is as good as dead."""

    def __init__(self, after):
        self._after = after
        self._done = count(1)
        self.killed = asyncio.Event()

    async def __call__(self, _):
        if next(self._done) >= self._after:
            self.killed.set()
            await asyncio.get_running_loop().create_future()
