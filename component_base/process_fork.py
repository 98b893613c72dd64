"""Fork a process with a running event loop: what its parent and the new process have to do, whatever the new process is for."""

import asyncio
import ctypes
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress

from .launcher import PR_SET_PDEATHSIG


def fork_beside_threads() -> int:
    """Fork, and return the id of the new process; 0 in the new one, in which no other thread of this one exists."""
    with warnings.catch_warnings():
        # From Python 3.12 on, it warns of other threads. They do not exist in the new process, which waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def set_death_signal(number: signal.Signals) -> None:
    """Let the kernel send a signal to this process when its parent dies. Linux only."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def reset_signals() -> None:
    """End at signals as a program does that has no handlers."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def reap_at_end(pid: int, on_end: Callable[[], None] = lambda: None) -> None:
    """Wait for a child when it has ended, so that nothing of it stays, and call a function."""
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return  # a kernel without it: the child stays a zombie until this process ends

    def reap() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        on_end()

    loop.add_reader(descriptor, reap)
