"""The last steps of a shutdown: responses and open connections are awaited until a deadline, and no longer than necessary."""

import asyncio

import pytest

from mockube.apiserver.http.server import Server
from mockube.apiserver.request.response import text_response
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.fake_transport import FakeTransport

SECONDS = 5.0


class ConnectedServer:
    """A server with one connection, whose request is answered when the test allows it."""

    def __init__(self):
        self.clock = SteppedClock()
        self.going = asyncio.Event()
        self.server = Server(self._handle)
        self.wire = FakeTransport(self.server())

    async def _handle(self, _request):
        await self.going.wait()
        return text_response("done")

    async def request(self):
        self.wire.receive(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await yield_to_loop(20)

    async def begin(self, step):
        """Begin a step of the shutdown, which the test lets continue."""
        task = asyncio.create_task(step(self.clock, SECONDS))
        await yield_to_loop(20)
        return task


@pytest.fixture
async def connected_server():
    connected_server = ConnectedServer()
    yield connected_server
    await connected_server.server.shutdown(0.01)


async def test_responses_are_awaited_until_deadline(connected_server):
    await connected_server.request()
    draining = await connected_server.begin(connected_server.server.drain)
    connected_server.clock.advance(SECONDS - 1)
    await yield_to_loop(20)
    assert not draining.done()
    connected_server.clock.advance(1)
    await yield_to_loop(20)
    assert draining.done()


async def test_last_response_ends_wait_and_closes_its_connection(connected_server):
    await connected_server.request()
    draining = await connected_server.begin(connected_server.server.drain)
    connected_server.going.set()
    await yield_to_loop(20)
    assert draining.done()
    assert connected_server.clock.next_due() is None
    assert b"Connection: close\r\n" in connected_server.wire.sent
    assert connected_server.wire.is_closed


async def test_server_without_requests_is_not_awaited(connected_server):
    assert (await connected_server.begin(connected_server.server.drain)).done()


async def test_open_connection_is_aborted_at_deadline(connected_server):
    aborting = await connected_server.begin(connected_server.server.abort_open)
    connected_server.clock.advance(SECONDS - 1)
    await yield_to_loop(20)
    assert not connected_server.wire.is_closed
    connected_server.clock.advance(1)
    await yield_to_loop(20)
    assert connected_server.wire.is_closed
    assert aborting.done(), "the last connection is closed"


async def test_last_closed_connection_ends_wait(connected_server):
    aborting = await connected_server.begin(connected_server.server.abort_open)
    assert not aborting.done()
    connected_server.wire.close()
    await yield_to_loop(20)
    assert aborting.done()
    assert connected_server.clock.next_due() is None
