"""The delays of a kubelet between the runs of a container that ends, and between attempts to pull an image. Pure."""

from datetime import timedelta
from typing import Final

INITIAL_BACKOFF: Final = timedelta(seconds=10)
MAX_BACKOFF: Final = timedelta(minutes=5)
BACKOFF_RESET: Final = 2 * MAX_BACKOFF
"""The duration of a run, or the time after the last failure of a pull, from which on the delays begin again."""
_DOUBLINGS: Final = 5
"""The number of doublings after which the delay is the longest; more are not computed."""


def restart_delay(restarts: int, ran: timedelta) -> timedelta:
    """Return the delay between the end of a run and the next run; the first restart is immediate."""
    if restarts == 0 or ran >= BACKOFF_RESET:
        return timedelta(0)
    return min(INITIAL_BACKOFF * (1 << min(restarts - 1, _DOUBLINGS)), MAX_BACKOFF)


def pull_delay(previous: timedelta) -> timedelta:
    """Return the delay after a failed pull from that after the previous failure, which is zero if there is none."""
    return min(max(2 * previous, INITIAL_BACKOFF), MAX_BACKOFF)
