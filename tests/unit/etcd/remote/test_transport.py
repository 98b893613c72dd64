import asyncio

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.etcd.errors import Closed, Interrupted, PermissionDenied, Timeout, Unavailable
from mockube.etcd.remote.errors import NotTrusted, TokenRejected
from mockube.etcd.remote.requests import LOGIN, PUT, RANGE
from mockube.etcd.remote.transport import Credentials, Transport
from tests.support.stores.etcd_fakes import CREATED, HANG, FakeGateway, FakeStream, watch_message
from tests.support.turns import turns, until

LOGGED_IN = (LOGIN.path, None)


@pytest.fixture
def clock():
    return SteppedClock()


def over(*gateways, clock, credentials=None, deadline=6.0):
    return Transport(gateways, credentials=credentials, deadline=deadline, clock=clock)


async def finished(task, clock):
    """The outcome of a task, with the clock stepped on whenever nothing else happens."""
    while not task.done():
        await turns(20)
        if (due := clock.next_due()) is not None:
            clock.advance(due)
    return await task


def asked(gateway):
    return len(gateway.requests)


@pytest.mark.parametrize("method", [RANGE, PUT], ids=["read", "write"])
async def test_what_was_not_carried_out_is_asked_of_the_next_member(method, clock):
    down, up = FakeGateway(Unavailable("no")), FakeGateway("answer")
    assert await over(down, up, clock=clock).call(method, b"") == "answer"


@pytest.mark.parametrize("failure", [Interrupted("cut"), Timeout("late")], ids=["interrupted", "timeout"])
async def test_what_may_have_been_carried_out_is_repeated_only_if_that_is_harmless(failure, clock):
    broken, up = FakeGateway(failure), FakeGateway("answer")
    assert await over(broken, up, clock=clock).call(RANGE, b"") == "answer"

    broken, up = FakeGateway(failure), FakeGateway("answer")
    with pytest.raises(type(failure)) as raised:
        await over(broken, up, clock=clock).call(PUT, b"")
    assert raised.value.outcome_unknown
    assert asked(up) == 0


async def test_a_refusal_is_final(clock):
    refusing, other = FakeGateway(PermissionDenied("no")), FakeGateway("answer")
    with pytest.raises(PermissionDenied):
        await over(refusing, other, clock=clock).call(RANGE, b"")
    assert asked(other) == 0


async def test_the_member_that_answered_last_is_asked_first(clock):
    down, up = FakeGateway(Unavailable("no")), FakeGateway("answer")
    transport = over(down, up, clock=clock)
    await transport.call(RANGE, b"")
    await transport.call(RANGE, b"")
    assert (asked(down), asked(up)) == (1, 2)


async def test_a_member_that_failed_a_write_is_not_asked_first_again(clock):
    broken, up = FakeGateway(Interrupted("cut")), FakeGateway("answer")
    transport = over(broken, up, clock=clock)
    with pytest.raises(Interrupted):
        await transport.call(PUT, b"")
    assert await transport.call(PUT, b"") == "answer"


async def test_a_read_leaves_time_for_every_member(clock):
    silent, up = FakeGateway(HANG), FakeGateway("answer")
    transport = over(silent, silent, up, clock=clock, deadline=6.0)
    reading = asyncio.create_task(transport.call(RANGE, b""))
    assert await finished(reading, clock) == "answer"
    assert clock.monotonic() == pytest.approx(4.0)


async def test_a_write_has_the_whole_deadline_and_then_an_unknown_outcome(clock):
    silent, up = FakeGateway(HANG), FakeGateway("answer")
    writing = asyncio.create_task(over(silent, up, clock=clock, deadline=6.0).call(PUT, b""))
    with pytest.raises(Timeout):
        await finished(writing, clock)
    assert clock.monotonic() == pytest.approx(6.0)
    assert asked(up) == 0


async def test_members_that_are_all_down_are_asked_again_with_growing_pauses_until_the_deadline(clock):
    members = FakeGateway(Unavailable("no")), FakeGateway(Unavailable("no"))
    writing = asyncio.create_task(over(*members, clock=clock, deadline=1.0).call(PUT, b""))
    with pytest.raises(Unavailable):
        await finished(writing, clock)
    # Rounds begin at 0, 0.05, 0.15, 0.35 and 0.75 seconds; the next would be too late.
    assert [asked(member) for member in members] == [5, 5]
    assert clock.monotonic() == pytest.approx(0.75)


async def test_a_member_that_is_not_trusted_is_asked_once(clock):
    impostor, up = FakeGateway(NotTrusted("who?")), FakeGateway("answer")
    assert await over(impostor, up, clock=clock).call(PUT, b"") == "answer"

    impostors = FakeGateway(NotTrusted("who?")), FakeGateway(NotTrusted("who?"))
    with pytest.raises(Unavailable, match=r"who\?"):
        await over(*impostors, clock=clock).call(RANGE, b"")
    assert [asked(member) for member in impostors] == [1, 1]


async def test_a_cancelled_call_is_cancelled(clock):
    calling = asyncio.create_task(over(FakeGateway(HANG), clock=clock).call(PUT, b""))
    await turns(5)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_after_close_there_are_no_calls(clock):
    transport = over(FakeGateway("answer"), clock=clock)
    await transport.close()
    with pytest.raises(Closed):
        await transport.call(RANGE, b"")


class TestTokens:
    CREDENTIALS = Credentials(user="u", password="p")

    @pytest.fixture
    def member(self):
        return FakeGateway("first token", "answer")

    @pytest.fixture
    def transport(self, member, clock):
        return over(member, clock=clock, credentials=self.CREDENTIALS)

    async def test_one_is_fetched_before_the_first_call(self, transport, member):
        assert await transport.call(PUT, b"") == "answer"
        await transport.call(PUT, b"")
        assert member.requests == [LOGGED_IN, (PUT.path, "first token"), (PUT.path, "first token")]

    async def test_calls_at_once_share_one(self, transport, member):
        await asyncio.gather(*(transport.call(PUT, b"") for _ in range(3)))
        assert member.requests == [LOGGED_IN, *[(PUT.path, "first token")] * 3]

    async def test_one_that_is_rejected_is_replaced_once_and_the_call_repeated(self, transport, member):
        member.outcomes = ["first token", TokenRejected("old"), "second token", "answer"]
        assert await transport.call(PUT, b"") == "answer"
        assert member.requests[1::2] == [(PUT.path, "first token"), (PUT.path, "second token")]

    async def test_a_new_one_that_is_rejected_too_is_the_end(self, transport, member):
        member.outcomes = ["first token", TokenRejected("old"), "second token", TokenRejected("no")]
        with pytest.raises(PermissionDenied, match="no"):
            await transport.call(PUT, b"")
        assert asked(member) == 4

    async def test_a_wrong_password_is_told(self, transport, member):
        member.outcomes = [PermissionDenied("wrong")]
        with pytest.raises(PermissionDenied, match="wrong"):
            await transport.call(PUT, b"")

    async def test_a_watch_that_is_denied_gets_a_new_one_first(self, transport, member):
        denied = watch_message(1, created=True, canceled=True, cancel_reason="etcdserver: permission denied")
        member.outcomes = ["first token", "second token"]
        member.streams = [refused, opened] = [FakeStream(denied), FakeStream(CREATED)]
        await transport.open_watch(b"")
        assert member.token == "second token"
        assert (refused.closed, opened.closed) == (True, False)


async def test_a_watch_is_opened_on_a_member_that_confirms_it(clock):
    silent = FakeGateway(None, streams=[FakeStream()], endpoint="silent")
    up = FakeGateway(None, streams=[FakeStream(CREATED)], endpoint="up")
    opening = asyncio.create_task(over(silent, up, clock=clock).open_watch(b""))
    await until(lambda: asked(silent))
    watch = await finished(opening, clock)
    assert watch.gateway is up
