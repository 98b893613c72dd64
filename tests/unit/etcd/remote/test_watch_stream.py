import asyncio

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.etcd.errors import Timeout, Unavailable
from mockube.etcd.remote.errors import TokenRejected
from mockube.etcd.remote.requests import PING, STATUS
from mockube.etcd.remote.responses import MemberStatus
from mockube.etcd.remote.watch_stream import WatchStream
from tests.support.event_loop import yield_to_loop
from tests.support.stores.etcd_fakes import HANG, FakeGateway, FakeStream, K, watch_message


@pytest.fixture
def clock():
    return SteppedClock()


def revisions(answer):
    return [event.kv.mod_revision for event in answer.events]


async def test_fragments_are_joined(clock):
    raw = FakeStream(
        watch_message(9, (7, K), fragment=True),
        watch_message(9, (8, K), fragment=True),
        watch_message(9, (8, K), (9, K)),
        watch_message(10, (10, K)),
    )
    stream = WatchStream(FakeGateway(), raw, clock=clock, timeout=5)
    joined, alone = await stream.receive(), await stream.receive()
    assert revisions(joined) == [7, 8, 8, 9]
    assert revisions(alone) == [10]


@pytest.mark.parametrize("outcome", ["alive", TokenRejected("too old")], ids=["answers", "rejects the token"])
async def test_idle_stream_of_healthy_member_is_kept(outcome, clock):
    raw, member = FakeStream(), FakeGateway(outcome)
    receiving = asyncio.create_task(WatchStream(member, raw, clock=clock, timeout=5).receive())
    for _ in range(2):
        await yield_to_loop(5)
        clock.advance(5)
    await yield_to_loop(5)
    raw.say(watch_message(2, (2, K)))
    assert revisions(await receiving) == [2]
    assert member.requests == [(PING.path, None)] * 2


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        pytest.param(Unavailable("no leader"), Unavailable, id="cut off from its leader"),
        pytest.param(HANG, Timeout, id="stopped"),
    ],
)
async def test_idle_stream_of_isolated_member_is_closed(outcome, error, clock):
    member = FakeGateway(outcome)
    receiving = asyncio.create_task(WatchStream(member, FakeStream(), clock=clock, timeout=5).receive())
    for _ in range(2):
        await yield_to_loop(5)
        clock.advance(5)
    with pytest.raises(error):
        await receiving


@pytest.mark.parametrize(
    ("version", "in_order"),
    [
        ("3.4.30", False),
        ("3.4.31", True),
        ("3.5.1", False),
        ("3.5.12", False),
        ("3.5.13", True),
        ("3.6.0-rc.1", True),
        ("3.7.0", True),
        ("unheard of", False),
    ],
)
async def test_releases_with_ordered_progress_are_known(version, in_order, clock):
    member = FakeGateway(MemberStatus(revision=1, version=version, size=0))
    stream = WatchStream(member, FakeStream(), clock=clock, timeout=5)
    assert await stream.answers_progress_in_order() is in_order
    assert await stream.answers_progress_in_order() is in_order
    assert member.requests == [(STATUS.path, None)]
