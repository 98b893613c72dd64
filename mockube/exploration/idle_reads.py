"""What an operator reads while nothing changes: one that never waits between two tries reads without end."""

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from mockube.operators.writes import LEASES

from .trace import OperatorRequest, Trace

FEW_PER_SECOND: Final = 20.0
"""Up to so many reads in a second are no hot loop."""
LONGER: Final = 5.0
"""How long a run goes on to see whether an operator goes on reading."""
_VERBS: Final = ("get", "list", "watch")
_LEAST: Final = 4
_LAST_SHARE: Final = 1 / 3


class IdleReads(Struct, frozen=True, kw_only=True):
    """The reads since the last write or Change."""

    seconds: float
    """How long ago that was."""
    ages: Sequence[float]
    """How long ago each read was."""
    resources: Sequence[tuple[str, str]]
    """Verb and resource of each."""

    def have_no_pause(self, per_second: float) -> bool:
        """Return whether they are more than so many, also of late: an operator that doubles its delays pauses by now."""
        last_seconds = self.seconds * _LAST_SHARE
        last = sum(age <= last_seconds for age in self.ages)
        return len(self.ages) >= max(_LEAST, per_second * self.seconds) and last >= max(
            1, per_second * last_seconds
        )

    def per_second(self) -> float:
        return len(self.ages) / max(self.seconds, 1.0)

    def most_frequent(self) -> tuple[str, str, int]:
        """Return the verb and the resource of the most frequent read, and how often it was sent."""
        ((verb, resource), count) = Counter(self.resources).most_common(1)[0]
        return verb, resource, count


def idle_reads(trace: Trace) -> IdleReads:
    now, since = trace.clock.monotonic() - trace.began, trace.last_activity - trace.began
    recent = takewhile(lambda each: each.seconds > since, reversed(trace.requests))
    reads = [each for each in recent if _counts(each) and not trace.is_while_hidden(each)]
    return IdleReads(
        seconds=now - since,
        ages=[now - each.seconds for each in reads],
        resources=[(each.verb, each.resource) for each in reads],
    )


def _counts(request: OperatorRequest) -> bool:
    """Return whether a request reads objects, and not only who the leader is."""
    is_of_leader = request.is_of_lock or request.resource == LEASES
    is_of_objects = request.verb in _VERBS and request.resource != ""
    return is_of_objects and not is_of_leader and not request.is_answered_by_fault
