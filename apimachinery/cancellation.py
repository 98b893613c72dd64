"""Cancellation of work in threads: a long loop checks now and then whether the client has disconnected, and stops.

Independent of the event loop. Outside `cancelled_by` no work is cancelled.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Cancelled(Exception):
    """The client that requested the work has disconnected: the result is not needed."""


class _Current(threading.local):
    cancellation: threading.Event | None = None


_CURRENT = _Current()


@contextmanager
def cancelled_by(cancellation: threading.Event) -> Iterator[None]:
    """Cancel the work of this thread when the event is set, which happens when the client disconnects."""
    _CURRENT.cancellation = cancellation
    try:
        yield
    finally:
        _CURRENT.cancellation = None


def raise_if_cancelled() -> None:
    """Raise `Cancelled` if the client that requested this thread's work has disconnected."""
    cancellation = _CURRENT.cancellation
    if cancellation is not None and cancellation.is_set():
        raise Cancelled
