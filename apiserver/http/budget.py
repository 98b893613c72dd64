"""What one request may take of the server: a place among those in flight, and time. Watches are free of both."""

from collections.abc import Sequence
from dataclasses import dataclass

from apimachinery import status
from apimachinery.durations import DurationError, parse_duration
from apiserver.http.requestinfo import RequestInfo
from apiserver.rest.call import MASTERS, User

LONG_VERBS = frozenset({"watch", "proxy"})
LONG_PATHS = frozenset({"/mockube/snapshot"})
LONG_SUBRESOURCES = frozenset({"attach", "exec", "log", "portforward", "proxy"})
READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many reads and writes are in flight at most, 0 for any number; and how many seconds each may take."""

    reads: int = 400
    writes: int = 200
    seconds: float = 60.0


def is_long_running(info: RequestInfo) -> bool:
    if not info.is_resource:
        return info.path in LONG_PATHS
    return info.verb in LONG_VERBS or info.subresource in LONG_SUBRESOURCES


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
