"""Tokens of service accounts: their claims, and the reasons for which they are refused."""

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mockube.apimachinery.gotext import base64url
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.authn.serviceaccount import jwt
from mockube.apiserver.authn.serviceaccount.claims import Account, Reference, split_username
from mockube.apiserver.authn.serviceaccount.keys import BadKey, load
from tests.support.server.service_accounts import (
    ACCOUNT,
    API,
    EC,
    HOUR,
    ISSUER,
    RSA,
    ServiceAccountTokens,
    claims_of,
    pem,
    public_pem,
    refusal,
)


@pytest.fixture
def tokens():
    return ServiceAccountTokens()


P384, P521 = (ec.generate_private_key(curve) for curve in (ec.SECP384R1(), ec.SECP521R1()))


@pytest.mark.parametrize("key", [P384, P521], ids=["ES384", "ES512"])
async def test_elliptic_curves_have_their_algorithms(key, request):
    tokens = ServiceAccountTokens(key)
    assert await tokens.authenticate(tokens.issue())
    (published,) = tokens.accounts.keys.jwks()["keys"]
    assert published["alg"] == request.node.callspec.id
    text, _, signature = tokens.issue().rpartition(".")
    other = "A" if signature[20] != "A" else "B"
    problem = "go-jose/go-jose: error in cryptographic primitive"
    assert await refusal(tokens, f"{text}.{signature[:20]}{other}{signature[21:]}") == problem


@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "RS256"])
async def test_issued_token_is_accepted(key):
    tokens = ServiceAccountTokens(key)
    known = await tokens.authenticate(tokens.issue())
    user = known.user
    assert (user.name, user.uid) == ("system:serviceaccount:ns:robot", "uid-robot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert list(user.extra) == ["authentication.kubernetes.io/credential-id"]
    assert known.audiences == ["api"]


async def test_token_has_upstreams_claims(tokens):
    now = int(tokens.clock.now().timestamp())
    claims = claims_of(tokens.issue())
    assert claims.pop("jti")
    assert claims == {
        "aud": ["api"],
        "exp": now + HOUR,
        "iat": now,
        "iss": ISSUER,
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "uid-robot"}},
        "nbf": now,
        "sub": "system:serviceaccount:ns:robot",
    }


async def test_pod_bound_token_has_pod_and_node_in_extra(tokens):
    tokens.put("pods", "ns", "web")
    bound = Account(
        namespace="ns",
        account=ACCOUNT.account,
        pod=Reference("web", "uid-web"),
        node=Reference("node-1", "uid-node-1"),
    )
    extra = (await tokens.authenticate(tokens.issue(bound))).user.extra
    assert {name.rpartition("/")[2]: value for name, value in extra.items() if "JTI" not in value[0]} == {
        "pod-name": ("web",),
        "pod-uid": ("uid-web",),
        "node-name": ("node-1",),
        "node-uid": ("uid-node-1",),
    }


@pytest.mark.parametrize("kind", ["pod", "secret", "node"])
async def test_bound_token_is_invalid_after_its_object_is_deleted(tokens, kind):
    bound = Account(namespace="ns", account=ACCOUNT.account, **{kind: Reference("it", "uid-it")})
    token, namespace = tokens.issue(bound), "" if kind == "node" else "ns"
    with pytest.raises(BadToken, match=r"^service account token has been invalidated$"):
        await tokens.authenticate(token)
    tokens.put(f"{kind}s", namespace, "it")
    assert await tokens.authenticate(token)
    tokens.put(f"{kind}s", namespace, "it", uid="another")
    with pytest.raises(BadToken, match=r"UID \(another\) does not match"):
        await tokens.authenticate(token)
    tokens.put(f"{kind}s", namespace, "it", deletionTimestamp="2029-12-31T23:58:00Z")
    with pytest.raises(BadToken, match=r"^service account token has been invalidated$"):
        await tokens.authenticate(token)


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        pytest.param(None, 'serviceaccounts "robot" not found', id="gone"),
        pytest.param(
            {"uid": "2"}, r"service account UID \(2\) does not match claim \(uid-robot\)", id="another"
        ),
        pytest.param(
            {"deletionTimestamp": "2029-12-31T23:58:00Z"},
            "service account ns/robot has been deleted",
            id="deleted",
        ),
    ],
)
async def test_token_is_invalid_after_its_account_is_deleted(tokens, metadata, says):
    token = tokens.issue()
    del tokens.objects["serviceaccounts", "ns", "robot"]
    if metadata is not None:
        tokens.put("serviceaccounts", "ns", "robot", **metadata)
    with pytest.raises(BadToken, match=says):
        await tokens.authenticate(token)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"exp": -120}, "service account token has expired", id="expired"),
        pytest.param({"nbf": 120}, "service account token is not valid yet", id="too early"),
        pytest.param(
            {"iat": 120}, "service account token is issued in the future", id="issued in the future"
        ),
    ],
)
async def test_token_outside_its_times_is_refused(tokens, changes, says):
    now = tokens.clock.now().timestamp()
    claims = claims_of(tokens.issue()) | {name: now + seconds for name, seconds in changes.items()}
    with pytest.raises(BadToken, match=says):
        await tokens.authenticate(jwt.sign(tokens.accounts.keys, claims))


async def test_small_clock_skew_is_tolerated(tokens):
    token = tokens.issue(seconds=10)
    tokens.clock.advance(69)
    assert await tokens.authenticate(token)
    tokens.clock.advance(2)
    with pytest.raises(BadToken, match="has expired"):
        await tokens.authenticate(token)


async def test_token_is_valid_for_its_audience_only(tokens):
    token = tokens.issue(audiences=["vault", "api2"])
    with pytest.raises(
        BadToken, match=r'^token audiences \["vault" "api2"\] is invalid for the target audiences'
    ):
        await tokens.authenticate(token)
    assert (await tokens.authenticate(token, ("vault", "other"))).audiences == ["vault"]


@pytest.mark.parametrize("named", [{}, {"aud": []}], ids=["left out", "empty"])
async def test_token_without_audience_is_for_the_server(tokens, named):
    claims = {name: value for name, value in claims_of(tokens.issue()).items() if name != "aud"} | named
    token = jwt.sign(tokens.accounts.keys, claims)
    assert (await tokens.authenticate(token)).audiences == list(API)
    with pytest.raises(BadToken, match=r'is invalid for the target audiences \["vault"\]$'):
        await tokens.authenticate(token, ("vault",))


async def test_token_of_other_issuer_is_ignored(tokens):
    elsewhere = jwt.sign(load(pem(RSA)), {"iss": "https://elsewhere"})
    for token in ("x", "a.b.c", elsewhere, "", "..", "a.e30.c"):
        assert await tokens.authenticate(token) is None


async def test_tokens_of_previous_issuer_and_key_are_accepted():
    tokens = ServiceAccountTokens(EC, [public_pem(RSA)])
    claims = claims_of(tokens.issue()) | {"iss": "https://old"}
    assert await tokens.authenticate(jwt.sign(load(pem(RSA)), claims))


SIGNER = "the key that signs"


@pytest.mark.parametrize(
    ("header", "claims", "signature"),
    [
        pytest.param({"alg": "none", "kid": SIGNER}, {}, "", id="none"),
        pytest.param({"alg": "HS256", "kid": SIGNER}, {}, None, id="a shared secret"),
        pytest.param({"alg": "RS256", "kid": SIGNER}, {}, None, id="another algorithm"),
        pytest.param({"alg": "ES256"}, {}, None, id="no key named"),
        pytest.param({"alg": "ES256", "kid": "x"}, {}, None, id="an unknown key"),
        pytest.param([], {}, None, id="no header"),
        pytest.param(None, {"sub": "admin"}, None, id="changed claims"),
        pytest.param(None, {}, base64url(bytes(64)), id="an empty signature"),
        pytest.param(None, {}, base64url(bytes(7)), id="a short signature"),
        pytest.param(None, {}, "!", id="no base 64"),
    ],
)
async def test_forged_token_is_refused(tokens, header, claims, signature):
    own = {"alg": "ES256", "kid": SIGNER} if header is None else header
    if isinstance(own, dict) and own.get("kid") == SIGNER:
        own = own | {"kid": tokens.accounts.keys.signer.id}
    token = tokens.issue()
    head, payload = base64url(orjson.dumps(own)), base64url(orjson.dumps(claims_of(token) | claims))
    signed = token.rpartition(".")[2] if signature is None else signature
    assert await refusal(tokens, f"{head}.{payload}.{signed}")


def test_public_keys_are_published():
    jwks = load(pem(EC), [public_pem(RSA)]).jwks()["keys"]
    assert [(key["kty"], key["alg"], key["use"]) for key in jwks] == [
        ("EC", "ES256", "sig"),
        ("RSA", "RS256", "sig"),
    ]
    assert all("d" not in key for key in jwks)


@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense", pem(ec.generate_private_key(ec.SECP256K1())), public_pem(EC)],
    ids=["nothing", "nonsense", "another curve", "a public key"],
)
def test_unsupported_signing_key_is_refused(data):
    with pytest.raises(BadKey):
        load(data)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("system:serviceaccount:ns:robot", ("ns", "robot"), id="an account"),
        pytest.param("system:serviceaccount:ns:", None, id="no name"),
        pytest.param("system:serviceaccount:a:b:c", None, id="too many parts"),
        pytest.param("system:serviceaccount:NS:robot", None, id="no namespace"),
        pytest.param("system:serviceaccount:ns:Robot!", None, id="invalid account name"),
        pytest.param("robot", None, id="not a service account"),
    ],
)
def test_service_account_user_names_are_parsed(name, found):
    assert split_username(name) == found


def test_standard_base64_alphabet_is_refused_in_token():
    data = b"\xfb\xff\xfe"
    assert jwt._decode("-__-") == data
    assert jwt._decode("+//+") is None


@pytest.mark.parametrize(("later", "word"), [(3607, "valid_tokens"), (3617, "stale_tokens")])
async def test_stale_token_use_is_annotated(tokens, later, word):
    token = tokens.accounts.issue_token(ACCOUNT, audiences=["api"], seconds=24 * HOUR, warn_after=3607).text
    tokens.clock.advance(later)
    notes = (await tokens.authenticate(token)).notes
    assert tokens.accounts.uses == {word: 1}
    annotation = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 10"
    stale = {"authentication.k8s.io/stale-token": annotation}
    assert notes.annotations == (stale if word == "stale_tokens" else {})
    assert (notes.warnings, notes.end) == ((), claims_of(token)["exp"])
