"""The result of `calls`: recorded requests, and how a test that fails prints them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apiserver.control.matching import Match
from mockube.apiserver.control.recorder import RecordedCall, RequestRecorder

NO_VERBS: Final[Mapping[str, int]] = {}


class Calls(list[RecordedCall]):
    """The calls that match the criteria, oldest first. `other_verbs` are the numbers of those that match all other criteria."""

    __slots__ = ("_other_verbs", "_verbs")

    def __init__(
        self,
        calls: Iterable[RecordedCall] = (),
        *,
        verbs: Sequence[str] = (),
        other_verbs: Mapping[str, int] = NO_VERBS,
    ) -> None:
        super().__init__(calls)
        self._verbs = verbs
        self._other_verbs = other_verbs

    def __repr__(self) -> str:
        """Return the calls in lines; none are explained by the calls with other verbs, as an apply is a patch."""
        if self or not self._other_verbs:
            return "".join(f"\n  {call}" for call in self) or "no calls"
        counts = ", ".join(f"{count} {verb}" for verb, count in sorted(self._other_verbs.items()))
        is_apply = "patch" in self._other_verbs and {"create", "update"} & {*self._verbs}
        reason = " (an apply is a patch)" if is_apply else ""
        return f"no calls with the verb {' or '.join(self._verbs)}, but with others: {counts}{reason}"


class CallsDropped(UserWarning):
    """More calls were made than are recorded: the oldest are missing from the result."""


def recorded_calls(recorder: RequestRecorder, match: Match, code: int | None) -> Calls:
    """Return the matching calls; if there are none, with the verbs of those that match otherwise."""
    calls = recorder.calls(match, code)
    if calls or not match.verbs:
        return Calls(calls)
    return Calls(verbs=match.verbs, other_verbs=recorder.count_verbs(replace(match, verbs=()), code))


def warn_of_dropped_calls(recorder: RequestRecorder) -> None:
    """Warn if calls were dropped: a dropped call looks like a call that was not made."""
    if recorder.dropped_count:
        warnings.warn(
            f"the oldest {recorder.dropped_count} calls were dropped: call clear_calls() before the calls to count",
            CallsDropped,
            stacklevel=3,
        )
