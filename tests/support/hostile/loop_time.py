"""How long something blocks the event loop, in CPU time, so that other load does not matter.

A callback is measured by the time of its thread. A call in another thread that does not release the interpreter's lock
delays the loop as well: it is part of the process's time between two beats of a timer.
"""

import asyncio
import contextlib
from time import process_time, thread_time

BEAT_SECONDS = 0.005


class Slices:
    """The longest callback and the longest time between two beats since the last `reset`."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.max_seconds, self.name = 0.0, ""
        self.max_gap, self._beat_at = 0.0, process_time()

    def beat(self, loop):
        """Measure the time since the last beat, now and repeatedly while the loop runs."""
        now = process_time()
        self.max_gap, self._beat_at = max(self.max_gap, now - self._beat_at), now
        loop.call_later(BEAT_SECONDS, self.beat, loop)


@contextlib.contextmanager
def measuring_callbacks():
    """Measure every callback that asyncio's own loop runs in this thread."""
    slices, run = Slices(), asyncio.events.Handle._run

    def measured_run(handle):
        start = thread_time()
        try:
            return run(handle)
        finally:
            took = thread_time() - start
            if took > slices.max_seconds:
                slices.max_seconds, slices.name = took, repr(handle)

    asyncio.events.Handle._run = measured_run
    try:
        yield slices
    finally:
        asyncio.events.Handle._run = run
