"""The recorder of requests, as a hook without a server."""

import asyncio

import msgspec
import pytest

from mockube.apiserver.control.matching import CONTROLLERS, Match
from mockube.apiserver.control.recorder import CallRecorder, RecordedCall
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until
from tests.support.server.handler_requests import request_of

EVERYONE = Match(user="*")


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def recorder(clock):
    return CallRecorder(clock, max_calls=2)


def request_for(name, *, method="GET", user="alice"):
    request = request_of(method, f"/api/v1/namespaces/default/configmaps/{name}", User_Agent="kubectl/v1")
    request.info = parse(method, request.path, watch=False)
    request.user = User(name=user)
    return request


async def respond(_request):
    return Response(200)


def names(calls):
    return [call.name for call in calls]


async def test_request_is_recorded_at_its_beginning_and_completed_at_its_end(recorder, clock):
    released = asyncio.Event()

    async def respond_late(_request):
        await released.wait()
        clock.advance(2)
        return Response(404)

    recording = asyncio.create_task(recorder.record(request_for("a"), respond_late))
    await until(lambda: recorder.calls(Match()))
    (call,) = recorder.calls(Match())
    assert (call.name, call.code, call.seconds) == ("a", None, None)
    released.set()
    assert (await recording).status == 404
    (call,) = recorder.calls(Match())
    assert (call.user, call.agent, call.verb, call.resource) == ("alice", "kubectl/v1", "get", "configmaps")
    assert (call.code, call.seconds, recorder.calls(Match(), 200)) == (404, 2, [])


async def test_calls_of_users_are_not_dropped_because_of_those_of_controllers(recorder):
    for name in "abc":
        await recorder.record(request_for(name), respond)
        await recorder.record(request_for(f"{name}-controller", user=CONTROLLERS), respond)
    assert names(recorder.calls(EVERYONE)) == ["b", "b-controller", "c", "c-controller"]
    assert names(recorder.calls(Match())) == ["b", "c"]
    assert recorder.dropped_count == 1
    recorder.clear()
    assert (recorder.calls(EVERYONE), recorder.dropped_count) == ([], 0)


async def test_verbs_of_matching_requests_are_counted(recorder):
    for method in ("GET", "DELETE"):
        await recorder.record(request_for("a", method=method), respond)
    assert recorder.count_verbs(Match()) == {"get": 1, "delete": 1}
    assert recorder.count_verbs(Match(verbs=("delete",))) == {"delete": 1}
    assert recorder.count_verbs(Match(), 404) == {}


async def test_recorded_call_is_json(recorder):
    await recorder.record(request_for("a"), respond)
    (call,) = recorder.calls(Match())
    assert msgspec.json.decode(msgspec.json.encode(call), type=RecordedCall) == call
