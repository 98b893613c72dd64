"""Cancellation of work in threads: long loops check now and then whether their requester has disconnected, and stop.

Independent of the event loop. Outside `cancelled_by` no work is cancelled.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Cancelled(Exception):
    """The requester has disconnected: the result is of no use."""


class _Current(threading.local):
    cancellation: threading.Event | None = None


_CURRENT = _Current()


@contextmanager
def cancelled_by(cancellation: threading.Event) -> Iterator[None]:
    """Do the work of one requester in this thread; the event is set when the requester disconnects."""
    _CURRENT.cancellation = cancellation
    try:
        yield
    finally:
        _CURRENT.cancellation = None


def raise_if_cancelled() -> None:
    """Raise `Cancelled` if the requester of this thread's work has disconnected."""
    cancellation = _CURRENT.cancellation
    if cancellation is not None and cancellation.is_set():
        raise Cancelled
