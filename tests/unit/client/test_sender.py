"""Request sender: retries, retry delays, credentials and request metrics."""

import asyncio

import pytest

from mockube.client.flowcontrol import Rate, TokenBucket
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.wire import OutcomeUnknown, Request, Unreachable
from mockube.component_base.metrics import MetricsRegistry
from tests.support.event_loop import until, yield_to_loop
from tests.support.metric_samples import sample_value
from tests.support.stores.scripted_transport import ScriptedStream, ScriptedTransport, answer

GET = Request(method="GET", target="/api", headers={"Accept": "a"}, timeout=1.0)
POST = Request(method="POST", target="/api", headers={}, body=b"{}", timeout=1.0)
BUSY = answer(429, retry_after=2.0)
FINE = answer(200)


@pytest.fixture
def transport():
    return ScriptedTransport()


@pytest.fixture
def metrics():
    return ClientMetrics(MetricsRegistry())


@pytest.fixture
def sender(transport, clock, metrics):
    return Sender(
        transport=transport,
        credential=FixedToken("secret"),
        agent="manager/x",
        limit=None,
        clock=clock,
        metrics=metrics,
    )


class RenewedCredential:
    """A credential that has another token after the server rejected the first."""

    def __init__(self, *tokens):
        self.tokens = list(tokens)

    async def token(self):
        return self.tokens[0]

    def forget(self, token):
        self.tokens.remove(token)
        return bool(self.tokens)


async def test_request_has_token_and_user_agent(sender, transport):
    transport.will(FINE)
    assert await sender.send(GET) == FINE
    ((_, headers),) = transport.sent
    assert headers == {"User-Agent": "manager/x", "Authorization": "Bearer secret"}


@pytest.mark.parametrize("request_", [GET, POST], ids=["read", "write"])
async def test_request_is_retried_after_retry_after(sender, transport, clock, request_):
    transport.will(BUSY, FINE)
    sending = asyncio.create_task(sender.send(request_))
    await until(clock.next_due)
    assert clock.next_due() == 2.0
    clock.advance(2.0)
    assert await sending == FINE


async def test_number_of_retries_is_limited(sender, transport, clock):
    transport.will(*[BUSY] * 11)
    sending = asyncio.create_task(sender.send(GET))
    for _ in range(10):
        await until(clock.next_due)
        clock.advance(2.0)
    assert await sending == BUSY


async def test_read_without_response_is_retried_and_write_is_not(sender, transport, clock):
    transport.will(Unreachable("refused"), FINE, OutcomeUnknown("cut"))
    reading = asyncio.create_task(sender.send(GET))
    await until(lambda: clock.next_due() == 0.0)
    clock.advance(0.0)
    assert await reading == FINE
    with pytest.raises(OutcomeUnknown):
        await sender.send(POST)


async def test_rejected_token_is_replaced_once(transport, clock, metrics):
    sender = Sender(
        transport=transport,
        credential=RenewedCredential("old", "new"),
        agent="manager",
        limit=None,
        clock=clock,
        metrics=metrics,
    )
    transport.will(answer(401), answer(401))
    assert (await sender.send(GET)).status == 401
    assert transport.tokens == ["old", "new"]


async def test_rejected_token_of_stream_is_replaced_for_next(transport, clock, metrics):
    sender = Sender(
        transport=transport,
        credential=RenewedCredential("old", "new"),
        agent="manager",
        limit=None,
        clock=clock,
        metrics=metrics,
    )
    transport.will_stream(ScriptedStream(401), ScriptedStream(200))
    for _ in range(2):
        async with sender.stream(GET):
            pass
    assert transport.tokens == ["old", "new"]


async def test_rate_limit_delays_requests_in_order(transport, clock, metrics):
    limit = TokenBucket(Rate(qps=2.0, burst=1), clock)
    sender = Sender(
        transport=transport,
        credential=FixedToken(),
        agent="manager",
        limit=limit,
        clock=clock,
        metrics=metrics,
    )
    transport.will(FINE, FINE, FINE)
    sending = [asyncio.create_task(sender.send(GET)) for _ in range(3)]
    await yield_to_loop(3)
    assert [task.done() for task in sending] == [True, False, False]
    clock.advance(0.5)
    await until(sending[1].done)
    assert not sending[2].done()
    clock.advance(0.5)
    await asyncio.gather(*sending)
    assert _value(metrics, "rest_client_rate_limiter_duration_seconds_sum", verb="GET") == 1.5


async def test_requests_are_counted_by_result(sender, transport, metrics):
    transport.will(FINE, answer(404), OutcomeUnknown("cut"))
    await sender.send(GET)
    await sender.send(GET)
    with pytest.raises(OutcomeUnknown):
        await sender.send(POST)
    assert _value(metrics, "rest_client_requests_total", code="200", method="GET") == 1
    assert _value(metrics, "rest_client_requests_total", code="404", method="GET") == 1
    assert _value(metrics, "rest_client_requests_total", code="<error>", method="POST") == 1
    assert _value(metrics, "rest_client_request_duration_seconds_count", verb="GET") == 2


async def test_retries_are_counted(sender, transport, clock, metrics):
    transport.will(BUSY, FINE)
    sending = asyncio.create_task(sender.send(GET))
    await until(clock.next_due)
    clock.advance(2.0)
    await sending
    assert _value(metrics, "rest_client_request_retries_total", code="429", verb="GET") == 1


def _value(metrics, name, **labels):
    return sample_value(metrics.registry, name, {"host": "server:6443", **labels})
