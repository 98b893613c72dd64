import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.errors import Closed, Interrupted, PermissionDenied, Timeout, Unavailable
from mockube.etcd.remote.errors import NotTrusted, TokenRejected
from mockube.etcd.remote.requests import LOGIN, PUT, RANGE
from mockube.etcd.remote.transport import EtcdCredentials, Transport
from tests.support.event_loop import until, yield_to_loop
from tests.support.stores.etcd_fakes import CREATED, HANG, FakeGateway, FakeStream, watch_message

LOGGED_IN = (LOGIN.path, None)


@pytest.fixture
def clock():
    return SteppedClock()


def transport_over(*gateways, clock, credentials=None, deadline=6.0):
    return Transport(gateways, credentials=credentials, deadline=deadline, clock=clock)


async def run_to_end(task, clock):
    """Return the result of a task; the clock advances whenever no other work is ready."""
    while not task.done():
        await yield_to_loop(20)
        if (due := clock.next_due()) is not None:
            clock.advance(due)
    return await task


def request_count(gateway):
    return len(gateway.requests)


@pytest.mark.parametrize("method", [RANGE, PUT], ids=["read", "write"])
async def test_unsent_request_is_sent_to_next_member(method, clock):
    down, up = FakeGateway(Unavailable("no")), FakeGateway("answer")
    assert await transport_over(down, up, clock=clock).call(method, b"") == "answer"


@pytest.mark.parametrize("failure", [Interrupted("cut"), Timeout("late")], ids=["interrupted", "timeout"])
async def test_possibly_executed_request_is_repeated_only_if_idempotent(failure, clock):
    broken, up = FakeGateway(failure), FakeGateway("answer")
    assert await transport_over(broken, up, clock=clock).call(RANGE, b"") == "answer"

    broken, up = FakeGateway(failure), FakeGateway("answer")
    with pytest.raises(type(failure)) as raised:
        await transport_over(broken, up, clock=clock).call(PUT, b"")
    assert raised.value.outcome_unknown
    assert request_count(up) == 0


async def test_refusal_is_not_retried(clock):
    refusing, other = FakeGateway(PermissionDenied("no")), FakeGateway("answer")
    with pytest.raises(PermissionDenied):
        await transport_over(refusing, other, clock=clock).call(RANGE, b"")
    assert request_count(other) == 0


async def test_last_responding_member_is_preferred(clock):
    down, up = FakeGateway(Unavailable("no")), FakeGateway("answer")
    transport = transport_over(down, up, clock=clock)
    await transport.call(RANGE, b"")
    await transport.call(RANGE, b"")
    assert (request_count(down), request_count(up)) == (1, 2)


async def test_member_that_failed_write_is_no_longer_preferred(clock):
    broken, up = FakeGateway(Interrupted("cut")), FakeGateway("answer")
    transport = transport_over(broken, up, clock=clock)
    with pytest.raises(Interrupted):
        await transport.call(PUT, b"")
    assert await transport.call(PUT, b"") == "answer"


async def test_read_leaves_time_for_every_member(clock):
    silent, up = FakeGateway(HANG), FakeGateway("answer")
    transport = transport_over(silent, silent, up, clock=clock, deadline=6.0)
    reading = asyncio.create_task(transport.call(RANGE, b""))
    assert await run_to_end(reading, clock) == "answer"
    assert clock.monotonic() == pytest.approx(4.0)


async def test_write_that_times_out_has_unknown_outcome(clock):
    silent, up = FakeGateway(HANG), FakeGateway("answer")
    writing = asyncio.create_task(transport_over(silent, up, clock=clock, deadline=6.0).call(PUT, b""))
    with pytest.raises(Timeout):
        await run_to_end(writing, clock)
    assert clock.monotonic() == pytest.approx(6.0)
    assert request_count(up) == 0


async def test_unavailable_members_are_retried_with_backoff_until_deadline(clock):
    members = FakeGateway(Unavailable("no")), FakeGateway(Unavailable("no"))
    writing = asyncio.create_task(transport_over(*members, clock=clock, deadline=1.0).call(PUT, b""))
    with pytest.raises(Unavailable):
        await run_to_end(writing, clock)
    # Rounds begin at 0, 0.05, 0.15, 0.35 and 0.75 seconds; the next would be too late.
    assert [request_count(member) for member in members] == [5, 5]
    assert clock.monotonic() == pytest.approx(0.75)


async def test_untrusted_member_is_tried_once(clock):
    impostor, up = FakeGateway(NotTrusted("who?")), FakeGateway("answer")
    assert await transport_over(impostor, up, clock=clock).call(PUT, b"") == "answer"

    impostors = FakeGateway(NotTrusted("who?")), FakeGateway(NotTrusted("who?"))
    with pytest.raises(Unavailable, match=r"who\?"):
        await transport_over(*impostors, clock=clock).call(RANGE, b"")
    assert [request_count(member) for member in impostors] == [1, 1]


async def test_cancellation_of_call_is_raised(clock):
    calling = asyncio.create_task(transport_over(FakeGateway(HANG), clock=clock).call(PUT, b""))
    await yield_to_loop(5)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_call_after_close_is_refused(clock):
    transport = transport_over(FakeGateway("answer"), clock=clock)
    await transport.close()
    with pytest.raises(Closed):
        await transport.call(RANGE, b"")


class TestTokens:
    CREDENTIALS = EtcdCredentials(user="u", password="p")

    @pytest.fixture
    def member(self):
        return FakeGateway("first token", "answer")

    @pytest.fixture
    def transport(self, member, clock):
        return transport_over(member, clock=clock, credentials=self.CREDENTIALS)

    async def test_token_is_fetched_before_first_call(self, transport, member):
        assert await transport.call(PUT, b"") == "answer"
        await transport.call(PUT, b"")
        assert member.requests == [LOGGED_IN, (PUT.path, "first token"), (PUT.path, "first token")]

    async def test_concurrent_calls_share_one_token(self, transport, member):
        await asyncio.gather(*(transport.call(PUT, b"") for _ in range(3)))
        assert member.requests == [LOGGED_IN, *[(PUT.path, "first token")] * 3]

    async def test_rejected_token_is_replaced_once_and_call_repeated(self, transport, member):
        member.outcomes = ["first token", TokenRejected("old"), "second token", "answer"]
        assert await transport.call(PUT, b"") == "answer"
        assert member.requests[1::2] == [(PUT.path, "first token"), (PUT.path, "second token")]

    async def test_second_rejected_token_is_an_error(self, transport, member):
        member.outcomes = ["first token", TokenRejected("old"), "second token", TokenRejected("no")]
        with pytest.raises(PermissionDenied, match="no"):
            await transport.call(PUT, b"")
        assert request_count(member) == 4

    async def test_wrong_password_is_an_error(self, transport, member):
        member.outcomes = [PermissionDenied("wrong")]
        with pytest.raises(PermissionDenied, match="wrong"):
            await transport.call(PUT, b"")

    async def test_denied_watch_is_retried_with_new_token(self, transport, member):
        denied = watch_message(1, created=True, canceled=True, cancel_reason="etcdserver: permission denied")
        member.outcomes = ["first token", "second token"]
        member.streams = [refused, opened] = [FakeStream(denied), FakeStream(CREATED)]
        await transport.open_watch(b"")
        assert member.token == "second token"
        assert (refused.closed, opened.closed) == (True, False)


async def test_watch_uses_member_that_confirms_it(clock):
    silent = FakeGateway(None, streams=[FakeStream()], endpoint="silent")
    up = FakeGateway(None, streams=[FakeStream(CREATED)], endpoint="up")
    opening = asyncio.create_task(transport_over(silent, up, clock=clock).open_watch(b""))
    await until(lambda: request_count(silent))
    watch = await run_to_end(opening, clock)
    assert watch.gateway is up
