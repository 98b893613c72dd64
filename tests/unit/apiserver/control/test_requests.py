"""Recorded requests as objects, without a server."""

from contextlib import aclosing
from types import SimpleNamespace

import orjson
import pytest

from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.control.requests import Requests, message_of
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.server.handler_requests import request_of


@pytest.fixture
def recorder():
    return RequestRecorder(SteppedClock())


def request_for(path, *, watch=False):
    request = request_of("GET", path)
    request.info = parse("GET", path, watch=watch)
    request.user = User(name="alice")
    return request


def context_of(user, selector=""):
    parameters = {"fieldSelector": selector}
    return SimpleNamespace(user=User(name=user), parameter=lambda name: parameters.get(name, ""))


async def test_list_has_no_request_that_ends_after_its_version(recorder):
    for number in range(QUICK_SLICE):
        recorder.end(recorder.begin(request_for(f"/version/{number}")), 200, 0, 0.0)
    watch = recorder.begin(request_for("/api/v1/pods", watch=True))
    cluster = SimpleNamespace(layout=SimpleNamespace(root=b"/"), clock=SteppedClock())
    requests = Requests(recorder, cluster, SimpleNamespace(generation=0))
    version, listed = await requests.all(context_of("alice"))
    recorder.end(watch, 200, 0, 0.0)
    objects = [await each.build() for each in listed]
    assert version == recorder.newest - 1
    assert max(stored.revision for stored in objects) == version
    assert "status" not in orjson.loads(objects[-1].value)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("", 4, id="nothing"),
        pytest.param("user=alice", 4, id="its own user"),
        pytest.param("user=bob", 0, id="another user"),
        pytest.param("user!=alice", 4, id="all but one"),
        pytest.param("user", 4, id="invalid"),
    ],
)
async def test_only_requests_of_the_selected_user_are_built(recorder, selector, expected):
    for number in range(4):
        recorder.end(recorder.begin(request_for(f"/version/{number}")), 200, 0, 0.0)
    cluster = SimpleNamespace(layout=SimpleNamespace(root=b"/"), clock=SteppedClock())
    requests = Requests(recorder, cluster, SimpleNamespace(generation=0))
    context = context_of("alice", selector)
    _, listed = await requests.all(context)
    async with aclosing(requests.follow(0, context)) as batches:
        version, records = await anext(batches)
    assert (len(listed), len(records), version) == (expected, expected, recorder.newest)


WEBHOOK = 'admission webhook "w.example" denied the request: the value is hunter2'


@pytest.mark.parametrize(
    ("code", "message", "is_shown"),
    [
        *((code, WEBHOOK, False) for code in (400, 401, 403, 404, 409, 418, 500, 599)),
        (422, 'Secret "a" is invalid: data[b]: Invalid value: "hunter2"', False),
        (409, 'Operation cannot be fulfilled on secrets "a"', False),
        (403, 'secrets "a" is forbidden: User "bob" cannot get resource "secrets"', True),
        (404, 'secrets "a" not found', True),
        (401, "Unauthorized", True),
    ],
)
def test_messages_that_may_quote_a_secret_are_hidden(recorder, code, message, is_shown):
    for resource in ("secrets", "configmaps"):
        recorded = recorder.begin(request_for(f"/api/v1/namespaces/default/{resource}/a"))
        recorder.end(recorded, code, 0, 0.0, orjson.dumps({"message": message}))
        assert message_of(recorded) == (message if is_shown or resource != "secrets" else "")
