"""Wait for what another process does to a cluster: files send no notifications, so they are polled."""

from collections.abc import Callable
from typing import Final

from mockube.apimachinery.clock import Clock

PAUSE: Final = 0.05


async def wait_until(met: Callable[[], bool], clock: Clock, *, seconds: float) -> bool:
    """Return whether the condition held in time."""
    deadline = clock.monotonic() + seconds
    while not met():
        if clock.monotonic() >= deadline:
            return False
        await clock.sleep(PAUSE)
    return True
