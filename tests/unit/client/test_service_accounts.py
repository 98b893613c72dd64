"""Service account tokens of controllers: creation, renewal before expiry, and failed requests."""

import asyncio

import orjson
import pytest

from mockube.client.metrics.requests import ClientMetrics
from mockube.client.sender import FixedToken, Sender
from mockube.client.service_accounts import OwnIdentities, ServiceAccountToken, SharedIdentity
from mockube.client.verbs import Client
from mockube.client.wire import OutcomeUnknown, Unreachable
from mockube.component_base.metrics import MetricsRegistry
from tests.support.stores.scripted_transport import ScriptedTransport, answer, problem

ACCOUNT = "/api/v1/namespaces/kube-system/serviceaccounts"
TOKEN = f"POST {ACCOUNT}/robot/token"
ABSENT = problem(404, "NotFound", "absent")


def token_answer(token, seconds=3600):
    return answer(201, {"spec": {"expirationSeconds": seconds}, "status": {"token": token}})


@pytest.fixture
def transport():
    return ScriptedTransport()


def sender_of(transport, clock, token=""):
    return Sender(
        transport=transport,
        credential=FixedToken(token),
        agent="manager",
        limit=None,
        clock=clock,
        metrics=ClientMetrics(MetricsRegistry()),
    )


@pytest.fixture
def credential(transport, clock):
    sender = sender_of(transport, clock, "admin")
    return ServiceAccountToken(Client(sender, SharedIdentity(sender=sender, rate=None)), clock, "robot")


async def test_token_is_requested_once_while_valid(credential, transport, clock):
    transport.will(token_answer("one"))
    assert await asyncio.gather(credential.token(), credential.token()) == ["one", "one"]
    clock.advance(3600 * 0.8 - 1)
    assert await credential.token() == "one"
    assert transport.targets == [TOKEN]


async def test_token_is_renewed_before_expiry(credential, transport, clock):
    transport.will(token_answer("one"), token_answer("two"))
    await credential.token()
    clock.advance(3600 * 0.8)
    assert await credential.token() == "two"


async def test_token_lifetime_is_servers(credential, transport, clock):
    transport.will(token_answer("one", seconds=600), token_answer("two"))
    await credential.token()
    clock.advance(480.0)
    assert await credential.token() == "two"


async def test_missing_service_account_is_created(credential, transport):
    transport.will(ABSENT, answer(201), token_answer("one"))
    assert await credential.token() == "one"
    assert transport.targets == [TOKEN, f"POST {ACCOUNT}", TOKEN]
    made = orjson.loads(transport.sent[1][0].body)
    assert made["metadata"] == {"namespace": "kube-system", "name": "robot"}


async def test_concurrently_created_service_account_is_used(credential, transport):
    transport.will(ABSENT, problem(409, "AlreadyExists"), token_answer("one"))
    assert await credential.token() == "one"


async def test_missing_namespace_of_service_account_is_created(credential, transport):
    transport.will(ABSENT, ABSENT, problem(409, "AlreadyExists"), answer(201), token_answer("one"))
    assert await credential.token() == "one"
    assert transport.targets == [
        *(TOKEN, f"POST {ACCOUNT}", "POST /api/v1/namespaces"),
        *(f"POST {ACCOUNT}", TOKEN),
    ]


async def test_failed_renewal_keeps_valid_token(credential, transport, clock):
    transport.will(token_answer("one"), problem(500, "InternalError"), token_answer("two"))
    await credential.token()
    clock.advance(3600 * 0.8)
    assert [await credential.token(), await credential.token()] == ["one", "one"]
    clock.advance(10.0)
    assert await credential.token() == "two"


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(problem(403, "Forbidden", "no"), id="forbidden"),
        pytest.param(OutcomeUnknown("cut"), id="cut"),
        pytest.param(Unreachable("refused"), id="refused"),
    ],
)
async def test_failed_token_request_is_unreachable(credential, transport, outcome):
    transport.will(outcome)
    with pytest.raises(Unreachable, match="no token for service account kube-system/robot"):
        await credential.token()


async def test_expired_token_is_not_used(credential, transport, clock):
    transport.will(token_answer("one"), problem(500, "InternalError"))
    await credential.token()
    clock.advance(3600.0)
    with pytest.raises(Unreachable):
        await credential.token()


async def test_rejected_token_is_replaced(credential, transport):
    transport.will(token_answer("one"), token_answer("two"))
    await credential.token()
    assert credential.forget("one")
    assert credential.forget("one")
    assert await credential.token() == "two"


async def test_controller_authenticates_with_its_token_only(credential, transport, clock):
    anonymous = ScriptedTransport().will(answer())
    identities = OwnIdentities(
        anonymous=sender_of(anonymous, clock), credential=lambda _: credential, rate=None
    )
    transport.will(token_answer("one"))
    client = Client(sender_of(transport, clock, "admin"), identities).for_service_account("robot")
    await client.raw("GET", "/version")
    assert transport.tokens == ["admin"]
    assert anonymous.tokens == ["one"]
    ((_, headers),) = anonymous.sent
    assert headers["User-Agent"] == "manager/system:serviceaccount:kube-system:robot"
