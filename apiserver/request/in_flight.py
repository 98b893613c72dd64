"""What one request may take of the server: a place among those in flight, and time.

Watches and their like are free of both; a snapshot takes a place, however long it takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mockube.apimachinery import status
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apiserver.request.request_info import RequestInfo
from mockube.apiserver.user import MASTERS, User

LONG_VERBS = frozenset({"watch", "proxy"})
LONG_PATHS: Final = "/mockube/"
"""What lies below takes as long as it takes."""
LONG_SUBRESOURCES = frozenset({"attach", "exec", "log", "portforward", "proxy"})
READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many reads and writes are in flight at most, 0 for any number; and how many seconds each may take."""

    reads: int = 400
    writes: int = 200
    seconds: float = 60.0


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request may stay open for hours, and counts neither as in flight nor as late."""
    return info.is_resource and (info.verb in LONG_VERBS or info.subresource in LONG_SUBRESOURCES)


def takes_long(info: RequestInfo) -> bool:
    """Whether a request counts as in flight, but has no deadline."""
    return not info.is_resource and info.path.startswith(LONG_PATHS)


class InFlight:
    """Counts the requests that are being answered."""

    def __init__(self, budget: Budget) -> None:
        self._most = {True: budget.reads, False: budget.writes}
        self._now = {True: 0, False: 0}

    def enter(self, verb: str, user: User) -> bool:
        """Whether there is a place for a request; whoever got one must `leave`.

        Masters always get one, for they may be the ones who have to mend the server.
        """
        reads = verb in READS
        most = self._most[reads]
        if most and self._now[reads] >= most and MASTERS not in user.groups:
            return False
        self._now[reads] += 1
        return True

    def leave(self, verb: str) -> None:
        self._now[verb in READS] -= 1


def allotted(asked: Sequence[str], most: float) -> float:
    """Seconds that a request may take: as many as its `?timeout=` says, if that is less than all may take."""
    if not asked or not asked[0]:
        return most
    try:
        seconds = parse_duration(asked[0]) / 1e9
    except DurationError as error:
        raise status.BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return seconds if 0 < seconds < most else most
