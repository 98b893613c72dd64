"""The revisions that were observed, written and compacted by each time of a history."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from mockube.etcd.kv import Revision
from tests.support.stores.history import Call, Compact, History
from tests.support.stores.replay import Replay


class Peaks:
    """The highest number reached before a time."""

    def __init__(self, points: Iterable[tuple[float, int]]) -> None:
        """`points` are times and the numbers reached at them."""
        ordered = sorted(points)
        self.timeline = [moment for moment, _ in ordered]
        self.highest = list(accumulate((number for _, number in ordered), max))

    def before(self, moment: float) -> int:
        passed = bisect_left(self.timeline, moment)
        return self.highest[passed - 1] if passed else 0


class Timeline:
    def __init__(self, history: History, replayed: Replay) -> None:
        took_effect = list(compactions(history))
        self.called = replayed.called
        self.known = Peaks(first_observations(history))
        """The newest revision that some client had received."""
        self.written = Peaks((called, revision) for revision, called in replayed.called.items())
        """The newest revision whose write had been called."""
        self.compacting = Peaks((call.called, call.request.revision) for call in took_effect)
        """The newest revision that may have been compacted."""
        self.compacted = Peaks(
            (call.returned, call.request.revision) for call in took_effect if not call.error
        )
        """The newest revision that was certainly compacted."""

    def is_unwritten(self, revision: Revision, moment: float) -> bool:
        """Whether the write of a revision was called only later."""
        return self.called.get(revision, 0) > moment


def first_observations(history: History) -> Iterator[tuple[float, Revision]]:
    for call in history.calls:
        if call.answer is not None:
            yield call.returned, call.answer.revision
    for stream in history.streams:
        for tick, batch in stream.batches:
            yield tick, batch.revision


def compactions(history: History) -> Iterator[Call]:
    """The compactions that took effect, or may have."""
    for call in history.calls:
        if isinstance(call.request, Compact) and (call.error is None or call.is_unknown):
            yield call
