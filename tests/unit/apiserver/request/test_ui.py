"""The page of `mockube ui`, without a server."""

import asyncio

import pytest

from mockube.apimachinery.status import ApiError
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.request.ui import SESSION, UserInterface
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.handler_requests import FakeClient, request_of


class SlowClient(FakeClient):
    """Sends no body."""

    async def read(self, _limit):
        await asyncio.Event().wait()


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def page(clock):
    return UserInterface(dict, PageSessions(clock), clock)


async def test_client_that_sends_no_body_does_not_wait_long(page, clock):
    request = request_of("POST", SESSION, client=SlowClient(), Content_Type="application/json")
    serving = asyncio.create_task(page.serve(request))
    await yield_to_loop(5)
    clock.advance(4.9)
    await yield_to_loop(5)
    assert not serving.done()
    clock.advance(0.2)
    with pytest.raises(ApiError) as refused:
        await serving
    assert refused.value.code == 504
