"""The recorder of requests, without a server."""

import asyncio

import msgspec
import pytest

from mockube.apiserver.control import recorder as module
from mockube.apiserver.control.matching import CONTROLLERS, Match
from mockube.apiserver.control.recorder import HISTORY, RecordedCall, RequestRecorder
from mockube.apiserver.request_info import parse
from mockube.apiserver.storage.journal import MAX_TEXT, Author, Journal
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.server.handler_requests import request_of

EVERYONE = Match(user="*")
GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def recorder(clock):
    return RequestRecorder(clock, max_calls=2)


def request_for(
    name, *, method="GET", user="alice", path="/api/v1/namespaces/default/configmaps", watch=False
):
    request = request_of(method, f"{path}/{name}" if name else path, User_Agent="kubectl/v1")
    request.info = parse(method, request.path, watch=watch)
    request.user = User(name=user)
    return request


def record(recorder, request, code=200, sent=0):
    recorded = recorder.begin(request)
    recorder.end(recorded, code, sent, 0.0)
    return recorded


def names(calls):
    return [call.name for call in calls]


def test_request_is_recorded_at_its_beginning_and_completed_at_its_end(recorder):
    recorded = recorder.begin(request_for("a"))
    (call,) = recorder.calls(Match())
    assert (call.name, call.code, call.seconds) == ("a", None, None)
    recorder.end(recorded, 404, 7, 2.0)
    (call,) = recorder.calls(Match())
    assert (call.user, call.agent, call.verb, call.resource) == ("alice", "kubectl/v1", "get", "configmaps")
    assert (call.code, call.seconds, recorder.calls(Match(), 200)) == (404, 2, [])
    assert recorded.outcome.sent == 7


def test_refused_requests_are_the_newest_first_and_may_be_cut(recorder):
    refused = record(recorder, request_for("a"), 409)
    cut = request_for("b")
    cut.is_cut = True
    recorded = record(recorder, cut, None)
    assert recorder.refused() == [recorded, refused]
    record(recorder, request_for("missing"), 404)
    assert recorder.refused() == [recorded]


def test_beginning_of_long_texts_is_recorded(recorder):
    long = "x" * (MAX_TEXT + 1)
    path = f"/api/v1/namespaces/{long}/pods/{long}/proxy/{long}"
    request = request_of("GET", path, User_Agent=long)
    request.info = parse("GET", path, watch=False)
    request.user, request.audit_id = User(name=long), long
    outcome = record(recorder, request).outcome
    texts = (outcome.user, outcome.agent, outcome.uri, outcome.audit_id)
    infos = (outcome.info.path, outcome.info.namespace, outcome.info.name)
    assert {len(text) for text in (*texts, *infos)} == {MAX_TEXT}
    assert (outcome.info.resource, outcome.info.subresource, outcome.info.rest) == ("pods", "proxy", ())


def test_statuses_of_newest_errors_are_kept(clock, monkeypatch):
    monkeypatch.setattr(module, "MAX_PROBLEMS", 2)
    recorder = RequestRecorder(clock)
    recorded = []
    for user in ("alice", CONTROLLERS, "alice", "bob"):
        recorded.append(recorder.begin(request_for("a", user=user)))
        recorder.end(recorded[-1], 409, 0, 0.0, b"{}")
    assert [each.outcome.problem for each in recorded] == [b"", b"{}", b"{}", b"{}"]
    recorder.clear()
    recorder.end(recorder.begin(request_for("a")), 409, 0, 0.0, b"{}")
    assert recorded[-1].outcome.problem == b"{}"


def test_calls_of_users_are_not_dropped_because_of_those_of_controllers(recorder):
    for name in "abc":
        record(recorder, request_for(name))
        record(recorder, request_for(f"{name}-controller", user=CONTROLLERS))
    assert names(recorder.calls(EVERYONE)) == ["b", "b-controller", "c", "c-controller"]
    assert names(recorder.calls(Match())) == ["b", "c"]
    assert recorder.dropped_count == 1
    recorder.clear()
    assert (recorder.calls(EVERYONE), recorder.dropped_count) == ([], 0)


def test_controllers_with_service_accounts_are_controllers(recorder):
    record(recorder, request_for("a", user=GARBAGE_COLLECTOR))
    record(recorder, request_for("b", user="system:serviceaccount:kube-system:operator"))
    assert names(recorder.calls(Match())) == ["b"]
    assert names(recorder.calls(EVERYONE)) == ["a", "b"]


def test_verbs_of_matching_requests_are_counted(recorder):
    for method in ("GET", "DELETE"):
        record(recorder, request_for("a", method=method))
    assert recorder.count_verbs(Match()) == {"get": 1, "delete": 1}
    assert recorder.count_verbs(Match(verbs=("delete",))) == {"delete": 1}
    assert recorder.count_verbs(Match(), 404) == {}


def test_recorded_call_is_json(recorder):
    record(recorder, request_for("a"))
    (call,) = recorder.calls(Match())
    assert msgspec.json.decode(msgspec.json.encode(call), type=RecordedCall) == call


def test_impersonated_user_counts_once_it_is_known(recorder):
    request = request_for("a", user="admin")
    recorded = recorder.begin(request)
    request.user = User(name="alice")
    assert names(recorder.calls(Match(user="alice"))) == ["a"]
    recorder.end(recorded, 200, 0, 2.0)
    assert names(recorder.calls(Match(user="alice"))) == ["a"]


def test_request_is_published_at_its_end_and_watch_at_its_beginning_too(recorder):
    recorded = recorder.begin(request_for("a"))
    assert recorder.published() == []
    recorder.end(recorded, 200, 0, 2.0)
    watch = recorder.begin(request_for("", watch=True))
    assert recorder.published() == [recorded, watch]
    version = recorder.newest
    recorder.end(watch, 200, 0, 2.0)
    assert recorder.published_since(version) == [watch]
    assert recorder.published_since(0) == [recorded, watch]
    assert watch.first_version == version


def test_watcher_is_woken_by_publication(recorder):
    changed = asyncio.Event()
    recorder.watchers.add(changed)
    recorded = recorder.begin(request_for("a"))
    assert not changed.is_set()
    recorder.end(recorded, 200, 0, 2.0)
    assert changed.is_set()


def test_watch_cannot_be_further_behind_than_history():
    recorder = RequestRecorder(SteppedClock(), first_version=100)
    for _ in range(HISTORY):
        record(recorder, request_for("a"))
    assert recorder.oldest == 100
    record(recorder, request_for("a"))
    assert recorder.oldest == 101
    assert len(recorder.published_since(101)) == HISTORY


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_reads_of_requests_are_not_recorded(recorder, verb):
    path = "/apis/control.mockube.dev/v1alpha1/requests"
    assert recorder.begin(request_for("", method=verb, path=path)) is None
    assert recorder.begin(request_for("", path="/apis/control.mockube.dev/v1alpha1/marks")) is not None


def test_write_has_its_last_revision(clock):
    journal = Journal()
    recorder = RequestRecorder(clock, journal=journal)
    request = request_for("a", method="DELETE")
    request.audit_id = "x"
    recorded = recorder.begin(request)
    for revision, audit_id in ((5, "x"), (6, "x"), (7, "other")):
        journal.note(revision, Author.of(user="alice", agent="", verb="delete", audit_id=audit_id))
    recorder.end(recorded, 200, 0, 2.0)
    assert recorded.outcome.revision == 6
    read = request_for("a")
    read.audit_id = "x"
    assert record(recorder, read).outcome.revision == 0


def test_request_is_found_by_its_number(recorder):
    first, second = record(recorder, request_for("a")), recorder.begin(request_for("b"))
    assert recorder.find(first.number) is first
    assert recorder.find(second.number) is None
    assert recorder.find(99) is None
    assert module.OWN_RESOURCE == "requests"
