"""A clock that shows real time, and whose sleep only yields to other tasks."""

from mockube.apimachinery.clock import RealClock
from tests.support.turns import turn


class InstantClock(RealClock):
    async def sleep(self, seconds):
        del seconds
        await turn()
