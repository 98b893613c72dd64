"""Check a history: could a correct store have returned these responses and these streams?

Revisions define an order, so no search is needed: the order is checked against real time, the
writes are replayed in it, and every response is compared with the replay. That costs O(n log n) for n calls, times the
number of keys. Faults are sentences that begin with their kind: "stale read: …".
"""

from collections.abc import Iterator

from mockube.etcd.errors import Compacted, FutureRevision, KVError
from mockube.etcd.kv import HEAD, Range, Revision, Txn
from tests.support.stores.formatting import words
from tests.support.stores.history import Call, Compact, History
from tests.support.stores.replay import Replay, call_text, is_equal_result, judge, replay
from tests.support.stores.streams import StreamCheck
from tests.support.stores.timeline import Timeline


def faults_of(history: History) -> list[str]:
    """Return what no correct store could have done, as sentences; empty if there is no fault."""
    replayed = replay(history)
    timeline = Timeline(history, replayed)
    calls = CallCheck(replayed, timeline)
    faults = list(replayed.faults)
    for call in history.calls:
        faults += calls.faults_of(call)
    for stream in history.streams:
        lacking = history.first_batches_may_lack_previous
        faults += StreamCheck(stream, replayed, timeline, first_batch_may_lack_previous=lacking).faults()
    return faults


class CallCheck:
    """Check that a call's response or error is correct at its revision, and its revision possible at its time."""

    def __init__(self, replayed: Replay, timeline: Timeline) -> None:
        self.model = replayed.model
        self.timeline = timeline

    def faults_of(self, call: Call) -> Iterator[str]:
        if isinstance(call.error, Compacted):
            yield from self._refused_as_compacted(call)
        elif isinstance(call.error, FutureRevision):
            yield from self._refused_as_future(call)
        elif call.answer is not None:
            yield from self._time(call)
            yield from self._compacted_reads(call)
            if not call.has_changed:
                yield from self._content(call)

    def _time(self, call: Call) -> Iterator[str]:
        """A response's revision is not older than what was known before the call, and not from after its return."""
        revision, known = call.answer.revision, self.timeline.known.before(call.called)
        if call.has_changed and revision <= known:
            yield f"stale write: {call_text(call)} made revision {revision}, and {known} was known before it was called"
        if not call.has_changed and revision < known:
            yield f"stale read: {call_text(call)} saw revision {revision}, and {known} was known before it was called"
        if self.timeline.is_unwritten(revision, call.returned):
            yield f"read from the future: {call_text(call)} saw revision {revision}, written after it returned"

    def _content(self, call: Call) -> Iterator[str]:
        """A call without changes is a read, and returns the state at its revision."""
        revision = call.answer.revision
        if revision not in self.model.states:
            yield f"revision from nowhere: {call_text(call)} saw {revision}"
            return
        expected, events = judge(self.model, call.request, revision)
        if isinstance(expected, KVError):
            yield f"wrong answer: {call_text(call)} succeeded, and should have failed: {expected}"
        elif events:
            yield f"wrong answer: {call_text(call)} says that it changed nothing at {revision}; replayed it is {words(expected)}"
        elif not is_equal_result(call.answer, expected):
            yield f"wrong answer: {call_text(call)} answered {words(call.answer)}; replayed it is {words(expected)}"

    def _compacted_reads(self, call: Call) -> Iterator[str]:
        compacted = self.timeline.compacted.before(call.called)
        for revision in revisions_read(call):
            if revision < compacted:
                yield f"read of the forgotten: {call_text(call)} read at {revision}, and compaction had passed {compacted}"

    def _refused_as_compacted(self, call: Call) -> Iterator[str]:
        compacting = self.timeline.compacting.before(call.returned)
        if isinstance(call.request, Compact):
            justified = call.request.revision <= compacting
        else:
            justified = any(revision < compacting for revision in revisions_read(call))
        if not justified:
            yield f"unjustified refusal: {call_text(call)}: {call.error}; compaction had not gone that far"

    def _refused_as_future(self, call: Call) -> Iterator[str]:
        known = self.timeline.known.before(call.called)
        requested_revisions = (
            [call.request.revision] if isinstance(call.request, Compact) else revisions_read(call)
        )
        if not any(revision > known for revision in requested_revisions):
            yield f"unjustified refusal: {call_text(call)}: {call.error}; revision {known} was known before"


def revisions_read(call: Call) -> list[Revision]:
    """Return the old revisions that a request reads."""
    request = call.request
    operations = (*request.then, *request.otherwise) if isinstance(request, Txn) else (request,)
    return [each.revision for each in operations if isinstance(each, Range) and each.revision != HEAD]
