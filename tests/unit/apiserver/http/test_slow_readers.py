"""Connections whose clients do not read: cut off after a time, kept while they read something, and forgotten when lost."""

import gc

import pytest

from mockube.apiserver.http.connection import Connection
from mockube.apiserver.http.server import STALLED_SECONDS, SWEEP_SECONDS, Server
from mockube.apiserver.request.response import text_response
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.fake_transport import FakeTransport


class FullTransport(FakeTransport):
    """A transport whose client has not read all: the test sets how many bytes are still to be sent."""

    pending = 100_000

    def get_write_buffer_size(self):
        return self.pending


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def server(clock):
    async def handle(_request):
        return text_response("done")

    server = Server(handle, clock=clock)
    yield server
    await server.shutdown(0.01)


def stall(server):
    """Return the transport of a client that stops reading."""
    wire = FullTransport(server())
    wire.receive(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    wire.protocol.pause_writing()
    return wire


def connections_of(server):
    return [each for each in gc.get_objects() if type(each) is Connection and each.server is server]


def pass_time(clock, seconds):
    for _ in range(int(seconds / SWEEP_SECONDS)):
        clock.advance(SWEEP_SECONDS)


async def test_client_that_reads_nothing_is_disconnected(server, clock):
    wire = stall(server)
    await yield_to_loop(20)
    pass_time(clock, STALLED_SECONDS)
    assert not wire.is_closed
    pass_time(clock, 2 * SWEEP_SECONDS)
    assert wire.is_closed


async def test_client_that_reads_a_part_is_kept(server, clock):
    """The buffer is never empty enough for the next write."""
    wire = stall(server)
    await yield_to_loop(20)
    for _ in range(5):
        pass_time(clock, STALLED_SECONDS - SWEEP_SECONDS)
        wire.pending -= 1000
    assert not wire.is_closed
    pass_time(clock, STALLED_SECONDS + 2 * SWEEP_SECONDS)
    assert wire.is_closed


async def test_client_that_reads_all_is_kept(server, clock):
    wire = stall(server)
    await yield_to_loop(20)
    for _ in range(5):
        pass_time(clock, STALLED_SECONDS - SWEEP_SECONDS)
        wire.protocol.resume_writing()
        wire.protocol.pause_writing()
    assert not wire.is_closed


@pytest.mark.thorough
async def test_lost_connection_is_no_longer_referenced(server, clock):
    wire = stall(server)
    await yield_to_loop(20)
    pass_time(clock, 2 * SWEEP_SECONDS)
    assert connections_of(server)
    wire.close()
    await yield_to_loop(20)
    del wire
    gc.collect()
    assert not connections_of(server)
    assert len(server.unauthenticated) == 0


async def test_lost_connection_without_request_is_no_longer_counted(server):
    wire = FakeTransport(server())
    assert len(server.unauthenticated) == 1
    wire.close()
    await yield_to_loop(5)
    assert len(server.unauthenticated) == 0
