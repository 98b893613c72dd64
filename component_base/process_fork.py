"""Fork a process with a running event loop: what its parent and the new process have to do, whatever the new process is for."""

import asyncio
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Final

POLL_SECONDS: Final = 0.1
"""How often a child is asked for its end where the kernel does not signal it."""


def fork_beside_threads() -> int:
    """Fork, and return the id of the new process; 0 in the new one, in which no other thread of this one exists."""
    with warnings.catch_warnings():
        # From Python 3.12 on, it warns of other threads. They do not exist in the new process, which waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def reset_signals() -> None:
    """End at signals as a program does that has no handlers."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def reap_at_end(pid: int, on_end: Callable[[], None] = lambda: None) -> None:
    """Wait for a child when it has ended, so that nothing of it stays, and call a function."""
    loop, this_process = asyncio.get_running_loop(), os.getpid()

    def poll() -> None:
        if os.getpid() != this_process:
            return  # a fork, which has other children
        if _is_reaped(pid):
            on_end()
        else:
            loop.call_later(POLL_SECONDS, poll)

    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # a kernel without it, or no descriptor is free
        poll()
        return

    def reap() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        on_end()

    loop.add_reader(descriptor, reap)


def _is_reaped(pid: int) -> bool:
    """Wait for a child if it has ended; return whether there is none any more."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
