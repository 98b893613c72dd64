"""A process and its event loop: run it, yield to the other tasks, and stop at a signal."""

import asyncio
import signal
from collections.abc import Coroutine, Generator
from contextlib import suppress
from types import coroutine
from typing import Any


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - many modules import this one, and few of them need a loop
    except ImportError:  # uvloop does not support Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def new_forkable_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop that can go on in a forked process: a `ForkableLoop`."""
    try:
        import uvloop  # noqa: F401, PLC0415 - as above
    except ImportError:
        from .forkable_loop import ForkableSelectorLoop  # noqa: PLC0415 - as above

        return ForkableSelectorLoop()
    from .forkable_uvloop import ForkableUvloop  # noqa: PLC0415 - as above

    return ForkableUvloop()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run the main coroutine of a process in a new event loop."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)


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

    with suppress(NotImplementedError):  # On Windows, Ctrl-C cancels the main task.
        for number in signals:
            loop.add_signal_handler(number, stop)
    return stopping
