"""A process and its event loop: yield to the other tasks, and stop at a signal."""

import asyncio
import signal
from collections.abc import Generator
from types import coroutine


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Suspend the current task until all other ready tasks have run once."""
    yield


def stop_signal_event() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets; a second signal ends the process as usual."""
    stopping = asyncio.Event()
    loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stop)
    return stopping
