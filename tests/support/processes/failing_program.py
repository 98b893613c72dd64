"""A program of mockube, one of whose tasks fails at SIGUSR1: `python -m tests.support.processes.failing_program TASK MODULE [FLAGS]`.

The call that the task awaits raises, as in a bug of the program. The program itself is not changed.
"""

import asyncio
import runpy
import signal
import sys


def fail(loop, name):
    """Raise once the task awaits something that is not done, which may be for a few milliseconds only."""
    waited_for = next((task for task in asyncio.all_tasks(loop) if task.get_name() == name), None)
    while isinstance(waited_for, asyncio.Task):
        waited_for = waited_for._fut_waiter
    if waited_for is None or waited_for.done():
        loop.call_soon(fail, loop, name)
    else:
        waited_for.set_exception(RuntimeError("a fault in the program"))


def fail_soon(name):
    loop = asyncio.get_running_loop()
    loop.call_soon_threadsafe(fail, loop, name)


if __name__ == "__main__":
    _, name, module, *flags = sys.argv
    sys.argv = [module, *flags]
    signal.signal(signal.SIGUSR1, lambda *_: fail_soon(name))
    runpy.run_module(module, run_name="__main__")
