"""A clock that shows real time, and whose sleep only yields to other tasks."""

from mockube.component_base.clock import RealClock
from tests.support.event_loop import yield_to_loop


class InstantClock(RealClock):
    async def sleep(self, seconds):
        del seconds
        await yield_to_loop()
