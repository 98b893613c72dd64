"""Recorded requests as objects, without a server."""

import asyncio

import orjson
import pytest

from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.control.requests import Requests
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.handler_requests import request_of


@pytest.fixture
def recorder():
    return RequestRecorder(SteppedClock())


def request_for(path, *, watch=False):
    request = request_of("GET", path)
    request.info = parse("GET", path, watch=watch)
    request.user = User(name="alice")
    return request


async def test_list_has_no_request_that_ends_after_its_version(recorder):
    for number in range(QUICK_SLICE):
        recorder.end(recorder.begin(request_for(f"/version/{number}")), 200, 0, 0.0)
    watch = recorder.begin(request_for("/api/v1/pods", watch=True))
    listing = asyncio.create_task(Requests(recorder, b"/").all(None))
    await yield_to_loop(1)
    assert not listing.done()
    recorder.end(watch, 200, 0, 0.0)
    version, objects = await listing
    assert version == recorder.newest - 1
    assert max(stored.revision for stored in objects) == version
    assert "status" not in orjson.loads(objects[-1].value)
