"""How long a callback blocks the event loop, in CPU time of its thread, so that other load does not matter."""

import asyncio
import contextlib
from time import thread_time


class Slices:
    """The longest callback since the last `reset`."""

    def __init__(self):
        self.max_seconds = 0.0
        self.name = ""

    def reset(self):
        self.max_seconds, self.name = 0.0, ""


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
