"""OIDC issuers: late initialization, key rotation, changed files and distributed claims."""

import asyncio

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.authn.oidc.authenticators import JWTAuthenticators, JWTSettings, read_configuration
from mockube.apiserver.authn.oidc.key_set import EXPIRY_DELTA, expiry
from mockube.apiserver.outgoing import CallFailed, RemoteResponse
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import yield_to_loop
from tests.support.server.openid import key_set, sign

API, ISSUER = ["api"], "https://issuer.example"
HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
ONE = f"""{HEAD}
jwt:
- issuer: {{url: "{ISSUER}", audiences: [mine]}}
  claimMappings: {{username: {{claim: sub, prefix: ""}}, groups: {{claim: groups, prefix: ""}}}}
"""
PREFIXED = ONE.replace('prefix: ""}, groups', 'prefix: "new:"}, groups')
LATER = 4102444800


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def other_key():
    return rsa.generate_private_key(65537, 2048)


def token(key, kid="k", **claims):
    return sign(key, {"iss": ISSUER, "aud": "mine", "sub": "ann", "exp": LATER, **claims}, kid)


class FakeWeb:
    """Pages by URL; a page that is a string is the error of its request."""

    def __init__(self, **pages):
        self.asked, self.headers = [], {}
        self.pages = {f"{ISSUER}/{name}": page for name, page in pages.items()}
        self.pages[f"{ISSUER}/.well-known/openid-configuration"] = {
            "issuer": ISSUER,
            "jwks_uri": f"{ISSUER}/keys",
        }

    async def send(self, request):
        self.asked.append(request)
        await yield_to_loop()
        page = self.pages.get(request.url)
        if isinstance(page, str):
            raise CallFailed(page)
        body = page if isinstance(page, bytes) else orjson.dumps(page)
        code, reason = (404, "Not Found") if page is None else (200, "OK")
        headers = {"content-type": "application/json", **self.headers}
        return RemoteResponse(code=code, reason=reason, headers=headers, body=body)

    def count(self, name):
        return sum(request.url.endswith(name) for request in self.asked)


class Observer:
    def __init__(self):
        self.seen = []

    def record_authentication(self, issuer, _seconds, *, success):
        self.seen.append(("authenticated", issuer, success))

    def record_fetch(self, issuer, body):
        self.seen.append(("fetched", issuer, body is not None))

    def record_config(self, data):
        self.seen.append(("applied", data))

    def record_reload(self, *, success):
        self.seen.append(("reloaded", success))


def new_authenticators(web, text=ONE, path=None, **settings):
    configuration = read_configuration(text.encode())
    settings = JWTSettings(configuration=configuration, data=text.encode(), path=path, **settings)
    clock, observer = SteppedClock(), Observer()
    authenticators = JWTAuthenticators(settings, audiences=API, send=web.send, clock=clock, observer=observer)
    authenticators.clock, authenticators.seen = clock, observer.seen
    return authenticators


async def token_error(authenticators, text):
    with pytest.raises(BadToken) as raised:
        await authenticators.authenticate_token(text, API)
    return str(raised.value)


async def test_unreachable_issuer_is_retried(key, caplog):
    web = FakeWeb(keys=key_set(k=key))
    wanted = web.pages.pop(f"{ISSUER}/.well-known/openid-configuration")
    authenticators = new_authenticators(web)
    await authenticators.initialize()
    assert await token_error(authenticators, token(key)) == "oidc: authenticator not initialized"
    assert "oidc authenticator: initializing plugin: 404 Not Found: null" in caplog.text
    web.pages[f"{ISSUER}/.well-known/openid-configuration"] = wanted
    await authenticators.initialize()
    known = await authenticators.authenticate_token(token(key), API)
    assert known.user == User(name="ann", groups=("system:authenticated",))
    assert known.audiences == API


async def test_token_for_other_audience_is_ignored(key):
    authenticators = new_authenticators(FakeWeb(keys=key_set(k=key)))
    await authenticators.initialize()
    assert await authenticators.authenticate_token(token(key), ["elsewhere"]) is None


WRONG = {
    "other issuer": ({"issuer": "https://x"}, "issuer did not match the issuer returned by provider"),
    "no keys": ({"issuer": ISSUER}, "provider did not return JWKS URL"),
    "no JSON": (b"<html>", "failed to decode provider discovery object: got Content-Type"),
    "no answer": ("dial tcp: refused", "dial tcp: refused"),
}


@pytest.mark.parametrize(("page", "problem"), WRONG.values(), ids=WRONG)
async def test_invalid_discovery_document_is_logged(page, problem, caplog):
    web = FakeWeb()
    web.pages[f"{ISSUER}/.well-known/openid-configuration"] = page
    await new_authenticators(web).initialize()
    assert problem in caplog.text


async def test_concurrent_tokens_fetch_new_keys_once(key, other_key):
    web = FakeWeb(keys=key_set(k=key))
    authenticators = new_authenticators(web)
    await authenticators.initialize()
    await authenticators.authenticate_token(token(key), API)
    web.pages[f"{ISSUER}/keys"] = key_set(new=other_key)
    texts = [token(other_key, "new", jti=str(number)) for number in range(5)]
    await asyncio.gather(*(authenticators.authenticate_token(text, API) for text in texts))
    assert web.count("/keys") == 2
    assert ("fetched", ISSUER, True) in authenticators.seen


async def test_keys_are_cached_as_issuer_allows(key, other_key):
    web = FakeWeb(keys=key_set(k=key))
    web.headers = {"cache-control": "public, max-age=100"}
    authenticators = new_authenticators(web)
    await authenticators.initialize()
    await authenticators.authenticate_token(token(key), API)
    strange = "oidc: verify token: failed to verify signature: failed to verify id token signature"
    assert await token_error(authenticators, token(other_key, "new")) == strange
    assert web.count("/keys") == 1
    authenticators.clock.advance(100 - EXPIRY_DELTA + 1)
    assert await token_error(authenticators, token(other_key, "new")) == strange
    assert web.count("/keys") == 2


async def test_failed_key_fetch_is_reported_in_refusal(key):
    web = FakeWeb(keys="dial tcp: refused")
    authenticators = new_authenticators(web)
    await authenticators.initialize()
    problem = "failed to verify signature: fetching keys oidc: get keys failed dial tcp: refused"
    assert await token_error(authenticators, token(key)) == f"oidc: verify token: {problem}"
    assert authenticators.seen[-2:] == [("fetched", ISSUER, False), ("authenticated", ISSUER, False)]


def test_key_cache_expiry_follows_headers():
    now = SteppedClock().now()
    moment = now.timestamp()
    assert expiry({}, now) == moment
    assert expiry({"cache-control": "max-age=60, s-maxage=10"}, now) == moment + 10
    assert expiry({"cache-control": "no-store, max-age=60"}, now) == moment
    assert expiry({"expires": "Tue, 01 Jan 2030 00:01:00 GMT"}, now) == moment + 60
    assert expiry({"expires": "0"}, now) == moment


async def test_keys_from_file_need_no_issuer(key, other_key, tmp_path):
    file = tmp_path / "keys.json"
    file.write_bytes(orjson.dumps(key_set(k=key)))
    web = FakeWeb()
    authenticators = new_authenticators(web, key_files={ISSUER: file})
    assert (await authenticators.authenticate_token(token(key), API)).user.name == "ann"
    file.write_bytes(orjson.dumps(key_set(k=other_key)))
    assert (await authenticators.authenticate_token(token(other_key), API)).user.name == "ann"
    assert "failed to verify id token signature" in await token_error(authenticators, token(key))
    assert web.asked == []


async def test_changed_file_applies_once_its_issuers_are_initialized(key, tmp_path):
    file = tmp_path / "authentication.yaml"
    file.write_text(ONE)
    authenticators = new_authenticators(FakeWeb(keys=key_set(k=key)), path=file)
    await authenticators.initialize()
    file.write_text(PREFIXED)
    await authenticators.reload()
    assert (await authenticators.authenticate_token(token(key), API)).user.name == "new:ann"
    assert ("reloaded", True) in authenticators.seen
    assert ("applied", PREFIXED.encode()) in authenticators.seen


BROKEN = {
    "form": ("jwt: 1", "failed to load authentication config"),
    "values": (ONE.replace("https", "http"), "failed to validate authentication config"),
    "anonymous": (f"{ONE}anonymous: {{enabled: true}}", "anonymous: Forbidden: changed from initial"),
}


@pytest.mark.parametrize(("text", "problem"), BROKEN.values(), ids=BROKEN)
async def test_invalid_changed_file_is_ignored(key, tmp_path, caplog, text, problem):
    file = tmp_path / "authentication.yaml"
    file.write_text(text)
    authenticators = new_authenticators(FakeWeb(keys=key_set(k=key)), path=file)
    await authenticators.initialize()
    await authenticators.reload()
    await authenticators.reload()
    assert caplog.text.count(problem) == 1
    assert authenticators.seen.count(("reloaded", False)) == 1
    assert (await authenticators.authenticate_token(token(key), API)).user.name == "ann"


def distributed_groups(**source):
    return {"_claim_names": {"groups": "s"}, "_claim_sources": {"s": source}}


async def test_distributed_groups_claim_is_resolved(key):
    web = FakeWeb(keys=key_set(k=key), groups=token(key, groups=["g"]).encode())
    authenticators = new_authenticators(web)
    await authenticators.initialize()
    text = token(key, **distributed_groups(endpoint=f"{ISSUER}/groups", access_token="secret"))
    assert (await authenticators.authenticate_token(text, API)).user.groups == ("g", "system:authenticated")
    asked = next(request for request in web.asked if request.url.endswith("/groups"))
    assert asked.headers == {"Authorization": "Bearer secret"}


async def test_unresolvable_distributed_claim_is_reported(key, other_key):
    web = FakeWeb(keys=key_set(k=key), mute=token(key).encode(), forged=token(other_key).encode())
    authenticators = new_authenticators(web)
    await authenticators.initialize()
    problems = {
        "none": 'while getting distributed claim "groups": error while getting distributed claim JWT: 404 Not Found',
        "mute": f'jwt returned by distributed claim endpoint "{ISSUER}/mute" did not contain claim: groups',
        "forged": "verify distributed claim token: failed to verify signature",
    }
    for name, problem in problems.items():
        said = await token_error(
            authenticators, token(key, **distributed_groups(endpoint=f"{ISSUER}/{name}"))
        )
        assert said.startswith(f"oidc: could not expand distributed claims: {problem}")
