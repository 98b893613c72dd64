"""Apply a history's writes to the model in the order of their revisions.

Every revision needs a writer. Most are known: a response contains the revision it created. The others were created by a
call whose response was lost, or by the end of a lease; watchers and readers show which one, because they saw its changes. When
a lease ends is not checked: no client is notified, and `tests/contract` tests leases one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mockube.etcd.errors import KVError
from mockube.etcd.kv import NO_LEASE, Event, EventKind, Revision, Txn
from tests.support.stores.formatting import words
from tests.support.stores.history import Call, Compact, History, Revoke, kvs_of
from tests.support.stores.model import Model

BY_ITSELF = -1.0
"""The time of a change that no request made: it may have been at any time."""

Sight = dict[bytes, bytes | None]
"""The observed changes of a revision: each key's new value, None for a deletion."""


@dataclass(slots=True, kw_only=True)
class Replay:
    """The model after every revision, when the call behind each was made, and the mismatches."""

    model: Model
    called: dict[Revision, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def replay(history: History) -> Replay:
    done = Replay(model=Model(history.base))
    writers = named_writers(history, done.faults)
    sights = observed_changes(history)
    lost = [call for call in history.calls if call.is_unknown and not isinstance(call.request, Compact)]
    for revision in range(history.base + 1, max([history.base, *writers, *sights]) + 1):
        if revision in writers:
            events = repeat(done, writers[revision], revision)
        else:
            events = explain(done, revision, sights.get(revision, {}), lost)
        done.model.commit(events)
    return done


def named_writers(history: History, faults: list[str]) -> dict[Revision, Call]:
    writers: dict[Revision, Call] = {}
    for call in history.calls:
        if not call.has_changed:
            continue
        first = writers.setdefault(call.answer.revision, call)
        if first is not call:
            faults.append(
                f"revision reused: {call.answer.revision} was given to {call_text(first)} and {call_text(call)}"
            )
    return writers


def observed_changes(history: History) -> dict[Revision, Sight]:
    """Collect the observed changes of each revision, from the first observation of each."""
    sights: dict[Revision, Sight] = {}
    for call in history.calls:
        if call.answer is not None:
            sights.setdefault(call.answer.revision, {})
        for kv in kvs_of(call.answer):
            if kv.value:  # otherwise the read may have returned the key only
                sights.setdefault(kv.mod_revision, {}).setdefault(kv.key, kv.value)
    for stream in history.streams:
        for _, batch in stream.batches:
            for event in batch.events:
                sights.setdefault(event.kv.mod_revision, {}).setdefault(event.kv.key, value_of(event))
    return sights


def value_of(event: Event) -> bytes | None:
    return event.kv.value if event.kind is EventKind.PUT else None


def repeat(done: Replay, call: Call, revision: Revision) -> list[Event]:
    """Apply a write whose revision is known, and compare its response."""
    done.called[revision] = call.called
    expected, events = judge(done.model, call.request, revision - 1)
    if isinstance(expected, KVError):
        done.faults.append(f"wrong answer: {call_text(call)} succeeded, and should have failed: {expected}")
    elif not is_equal_result(call.answer, expected):
        kind = "wrong answer"
        if isinstance(call.request, Txn) and call.answer.succeeded != expected.succeeded:
            kind = "lost update: the comparison is not true just before"
        done.faults.append(
            f"{kind}: {call_text(call)} answered {words(call.answer)}; replayed it is {words(expected)}"
        )
    return events


def explain(done: Replay, revision: Revision, sight: Sight, lost: list[Call]) -> list[Event]:
    """Find the writer of a revision that no response names: the candidate with the fewest unseen changes."""
    makers = [maker for maker in possible_makers(done.model, lost) if maker.explains(sight)]
    if not makers:
        done.faults.append(f"revision from nowhere: no call can have made {revision}, seen as {sight}")
        return []
    if not sight and len(makers) > 1:
        done.faults.append(
            f"undecided: {len(makers)} calls can have made revision {revision}, which no response shows"
        )
    maker = min(makers, key=lambda each: (len(each.events), each.called))
    done.called[revision] = maker.called
    if maker.call is not None:
        lost.remove(maker.call)
    return maker.events


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """A call, or without one the end of a lease, that could come next, and its changes."""

    call: Call | None = None
    events: list[Event]

    @property
    def called(self) -> float:
        return BY_ITSELF if self.call is None else self.call.called

    def explains(self, sight: Sight) -> bool:
        values = {event.kv.key: value_of(event) for event in self.events}
        return bool(values) and sight.items() <= values.items()


def possible_makers(model: Model, lost: list[Call]) -> Iterator[Maker]:
    for lease in {kv.lease for kv in model.states[model.revision].values()} - {NO_LEASE}:
        yield Maker(events=model.end_lease(lease))
    for call in lost:
        yield Maker(call=call, events=judge(model, call.request, model.revision)[1])


def judge(model: Model, request: Any, revision: Revision) -> tuple[Any, list[Event]]:
    """Return a request's response right after a revision, and its changes; its error in place of a response."""
    if isinstance(request, Revoke):
        return None, model.end_lease(request.lease)
    try:
        if isinstance(request, Txn):
            return model.judge(request, revision)
        result, events = model.judge(Txn(then=[request]), revision)
    except KVError as error:
        return error, []
    return result.results[0], events


def is_equal_result(answer: object, expected: object) -> bool:
    """Whether two responses are equal, be their sequences tuples or lists."""
    return msgspec.msgpack.encode(answer) == msgspec.msgpack.encode(expected)


def call_text(call: Call) -> str:
    return f"{call.client}'s {words(call.request)} (ticks {call.called} to {call.returned})"
