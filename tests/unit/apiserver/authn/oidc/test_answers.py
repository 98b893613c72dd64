"""OIDC tokens get the results of a real kube-apiserver, which are recorded in `answers.json`."""

import importlib.util
from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mockube.apiserver.authn.authenticators import BadToken, BearerTokens
from mockube.apiserver.authn.oidc.authenticators import JWTAuthenticators, JWTSettings, read_configuration
from mockube.apiserver.outgoing import RemoteResponse
from mockube.component_base.clock import SteppedClock

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parent
ANSWERS = orjson.loads((HERE / "answers.json").read_bytes())
API = "https://kubernetes.default.svc"


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = load("cases")


class Issuers:
    """Serve the documents of all issuers, and record the requests."""

    def __init__(self, pages):
        self.pages, self.asked = pages, []

    async def send(self, request):
        path = request.url.removeprefix(cases.BASE)
        self.asked.append(path)
        found = self.pages.get(path)
        headers = {"content-type": "application/json"}
        if found is None:
            return RemoteResponse(code=404, reason="Not Found", headers=headers, body=b"null")
        return RemoteResponse(code=200, reason="OK", headers=headers, body=orjson.dumps(found))


class NoObserver:
    def __getattr__(self, _name):
        return lambda *_args, **_named: None


@pytest.fixture(scope="module")
def keys():
    return {
        "rsa": rsa.generate_private_key(65537, 2048),
        "curve": ec.generate_private_key(ec.SECP256R1()),
    }


@pytest.fixture(scope="module")
def tokens(keys):
    return cases.tokens(keys)


@pytest.fixture
async def bearer(keys):
    text = cases.CONFIGURATION.replace("AUTHORITY", '""')
    clock = SteppedClock()
    authenticators = JWTAuthenticators(
        JWTSettings(configuration=read_configuration(text.encode())),
        audiences=[API],
        send=Issuers(cases.pages(keys)).send,
        clock=clock,
        observer=NoObserver(),
    )
    await authenticators.initialize()
    return BearerTokens([authenticators], audiences=[API], clock=clock)


async def review(bearer, token):
    try:
        known = await bearer.review(token)
    except BadToken as error:
        return {"error": str(error), "user": {}}
    user = known.user
    found = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    extra = {name: list(values) for name, values in user.extra.items()}
    shown = {name: value for name, value in (found | {"extra": extra}).items() if value}
    return {"authenticated": True, "user": shown, "audiences": list(known.audiences)}


@pytest.mark.parametrize("name", ANSWERS)
async def test_oidc_token_review_equals_recorded_response(bearer, tokens, name):
    assert await review(bearer, tokens[name]) == ANSWERS[name]


NOW = 1893456000
"""The current time of the clock: the beginning of 2030."""


async def test_token_before_nbf_is_refused(bearer, keys):
    found = await review(bearer, cases.sign(keys, cases.A | {"nbf": NOW + 3600}))
    times = "current time 2030-01-01 00:00:00 +0000 UTC before the nbf (not before) time: 2030-01-01 01:00:00 +0000 UTC"
    assert found["error"] == f"[invalid bearer token, oidc: verify token: oidc: {times}]"


async def test_token_with_nbf_within_a_minute_is_accepted(bearer, keys):
    found = await review(bearer, cases.sign(keys, cases.A | {"nbf": NOW + 59}))
    assert found["authenticated"]
