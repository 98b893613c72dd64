"""Whether the work of this thread is still wanted: long loops ask now and then, and stop if its requester has gone.

Knows no event loop. Outside `while_wanted` all work is wanted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Abandoned(Exception):
    """Nobody waits for the result any more."""


class _Current(threading.local):
    gone: threading.Event | None = None


_CURRENT = _Current()


@contextmanager
def while_wanted(gone: threading.Event) -> Iterator[None]:
    """Do the work of one requester in this thread; the event is set when the requester has gone."""
    _CURRENT.gone = gone
    try:
        yield
    finally:
        _CURRENT.gone = None


def check_wanted() -> None:
    """`Abandoned` if the requester of this thread's work has gone."""
    gone = _CURRENT.gone
    if gone is not None and gone.is_set():
        raise Abandoned
