"""All Changes of a server: those before the newest ones, and no gap among them."""

import asyncio

import pytest

from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import RealClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.history.all_changes import read_all_changes
from tests.support.stores.scripted_transport import ScriptedStream, ScriptedTransport, answer


def change(revision, name="a", resource="pods"):
    about = {"kind": "Pod", "resource": resource, "name": name}
    return {"spec": {"revision": revision, "type": "ADDED", "object": about}}


def stream_of(*changes):
    stream = ScriptedStream()
    for each in changes:
        stream.send_event("ADDED", each)
    return stream


def client_of(transport):
    sender = Sender(
        transport=transport,
        credential=FixedToken("admin"),
        agent="test",
        limit=None,
        clock=RealClock(),
        metrics=ClientMetrics(MetricsRegistry()),
    )
    return Client(sender, identities=None)


def read(stream, *newest):
    transport = ScriptedTransport().will(
        answer(body={"metadata": {"resourceVersion": "9"}, "items": [*newest]}),
        answer(body={"moment": "oldest", "revision": 3}),
    )
    transport.will_stream(stream)
    found = asyncio.run(read_all_changes(client_of(transport), 5.0))
    assert "resourceVersion=2" in transport.targets[-1]
    return found


def written(history):
    return [(each["revision"], each["object"]["name"]) for each in history.changes]


def test_changes_that_a_list_lacks_are_read_by_a_watch():
    stream = stream_of(change(3), change(4, "b"), change(4, "c"))
    assert written(read(stream, change(4, "c"), change(5))) == [(3, "a"), (4, "b"), (4, "c"), (5, "a")]


def test_a_watch_that_ends_early_leaves_no_gap():
    with pytest.raises(NoResponse, match="ended before all of them were read"):
        read(stream_of(change(3)).cut(), change(5))


def test_changes_before_a_compaction_are_left_out_with_a_note():
    stream = stream_of(change(3)).send_event("ERROR", {"code": 410, "message": "too old"})
    history = read(stream, change(5))
    assert written(history) == [(5, "a")]
    assert [*history.omitted()] == ["The changes before the newest ones are left out: too old"]


def test_writes_of_events_and_leases_are_counted_only():
    stream = stream_of(change(3, resource="leases.coordination.k8s.io"), change(5))
    history = read(stream, change(5), change(6, resource="events"))
    assert (written(history), history.ignored) == ([(5, "a")], 2)


def test_an_empty_history_needs_no_watch():
    transport = ScriptedTransport().will(answer(body={"metadata": {"resourceVersion": "9"}, "items": []}))
    history = asyncio.run(read_all_changes(client_of(transport), 5.0))
    assert (written(history), history.revision) == ([], 9)
