"""The text of a service account's token: non-canonical and ambiguous encodings are refused."""

import orjson
import pytest

from mockube.apimachinery.gotext import base64url
from mockube.apiserver.authn.serviceaccount import jwt
from tests.support.server.service_accounts import UNSUPPORTED_SERVER, ServiceAccountTokens, claims_of, refusal


@pytest.fixture
def tokens():
    return ServiceAccountTokens()


NOT_VERIFIED = "go-jose/go-jose: error in cryptographic primitive"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def with_other_bits(part):
    """Return another base64 text that decodes to the same bytes: only the unused last bits differ."""
    return part[:-1] + ALPHABET[ALPHABET.index(part[-1]) ^ 1]


@pytest.mark.parametrize("part", [0, 1, 2], ids=["header", "claims", "signature"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(with_other_bits, id="unused bits set"),
        pytest.param(lambda text: text + "=" * (-len(text) % 4), id="padding"),
        pytest.param(lambda text: text + "====", id="more padding"),
        pytest.param(lambda text: f"{text[:5]}\n{text[5:]}", id="a new line"),
        pytest.param(lambda text: f"{text[:5]} {text[5:]}", id="a blank"),
        pytest.param(lambda text: f"{text}\n", id="a new line at the end"),
        pytest.param(lambda text: f" {text}", id="a blank at the beginning"),
        pytest.param(lambda text: f"{text}\u00e9", id="another letter"),
    ],
)
async def test_non_canonical_token_text_is_refused(tokens, part, change):
    keys = tokens.accounts.keys
    texts = orjson.dumps({"alg": "ES256", "kid": keys.signer.id}), orjson.dumps(claims_of(tokens.issue()))
    # A blank is added to a part that would have no unused bits.
    text = ".".join(base64url(one if len(one) % 3 else one + b" ") for one in texts)
    parts = [*text.split("."), base64url(keys.sign(text.encode()))]
    assert all(len(one) % 4 for one in parts)
    assert await refusal(tokens, ".".join(parts)) == ""
    parts[part] = change(parts[part])
    assert await refusal(tokens, ".".join(parts))


def signed_token(tokens, header=b"", claims=b""):
    """Return a signed token of exactly these bytes; an omitted part is that of a valid token."""
    keys = tokens.accounts.keys
    head = header or orjson.dumps({"alg": "ES256", "kid": keys.signer.id})
    text = f"{base64url(head)}.{base64url(claims or orjson.dumps(claims_of(tokens.issue())))}"
    return f"{text}.{base64url(keys.sign(text.encode()))}"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param(b"", "", id="no other members"),
        pytest.param(b',"typ":"JWT"', "", id="its type"),
        pytest.param(b',"alg":"ES256"', UNSUPPORTED_SERVER, id="duplicate algorithm"),
        pytest.param(b',"x":{"y":1,"y":2}', UNSUPPORTED_SERVER, id="duplicate key, deeply nested"),
        pytest.param(b',"crit":["exp"]', NOT_VERIFIED, id="an extension that must be understood"),
        pytest.param(b',"b64":false', NOT_VERIFIED, id="claims that are not encoded"),
        pytest.param(b',"x":' + b"[" * 2000 + b"]" * 2000, UNSUPPORTED_SERVER, id="very deep"),
        pytest.param(b',"x":' + b"9" * 5000, UNSUPPORTED_SERVER, id="very many digits"),
    ],
)
async def test_ambiguous_token_header_is_refused(tokens, more, says):
    kid = tokens.accounts.keys.signer.id.encode()
    header = b'{"alg":"ES256","kid":"%s"%s}' % (kid, more)
    assert await refusal(tokens, signed_token(tokens, header=header)) == says


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param(b',"x":1', "", id="unknown member"),
        pytest.param(
            b',"iss":"https://issuer"', "json: duplicate key 'iss' in object", id="duplicate issuer"
        ),
        pytest.param(
            b',"x":[{"y":1,"y":1}]', "json: duplicate key 'y' in object", id="duplicate key, nested"
        ),
        pytest.param(b',"x":' + b"[" * 2000 + b"]" * 2000, UNSUPPORTED_SERVER, id="very deep"),
    ],
)
async def test_ambiguous_token_claims_are_refused(tokens, more, says):
    claims = orjson.dumps(claims_of(tokens.issue()))
    assert await refusal(tokens, signed_token(tokens, claims=claims[:-1] + more + b"}")) == says


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256", "ES384", ""])
async def test_token_of_other_algorithm_than_its_keys_is_refused(tokens, algorithm):
    """The signature is that of the key."""
    header = orjson.dumps({"alg": algorithm, "kid": tokens.accounts.keys.signer.id})
    assert await refusal(tokens, signed_token(tokens, header=header)) == NOT_VERIFIED


NO_NUMBER = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"
NO_AUDIENCE = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"exp": "9999999999"}, NO_NUMBER, id="exp as text"),
        pytest.param({"exp": True}, NO_NUMBER, id="exp as a truth value"),
        pytest.param({"exp": 1e30}, "", id="exp in another age"),
        pytest.param({"exp": None}, "", id="no exp"),
        pytest.param({"exp": -5}, "service account token has expired", id="exp before 1970"),
        pytest.param({"nbf": "1"}, NO_NUMBER, id="nbf as text"),
        pytest.param({"aud": "api"}, "", id="one audience"),
        pytest.param({"aud": 7}, NO_AUDIENCE, id="a number as audience"),
        pytest.param({"aud": ["api", 7]}, NO_AUDIENCE, id="a number among audiences"),
        pytest.param({"aud": None}, NO_AUDIENCE, id="null as audience"),
        pytest.param({"iss": 7}, UNSUPPORTED_SERVER, id="a number as issuer"),
        pytest.param(
            {"jti": 7}, "json: cannot unmarshal number into Go value of type string", id="a number as jti"
        ),
        pytest.param(
            {"sub": {}}, "json: cannot unmarshal object into Go value of type string", id="an object as sub"
        ),
        pytest.param(
            {"kubernetes.io": "x"},
            "json: cannot unmarshal string into Go value of type serviceaccount.kubernetes",
            id="no claims of Kubernetes",
        ),
        pytest.param(
            {"kubernetes.io": {"namespace": 7}},
            "json: cannot unmarshal number into Go value of type string",
            id="a number as namespace",
        ),
        pytest.param(
            {"kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": ["robot"]}}},
            "json: cannot unmarshal array into Go value of type string",
            id="a list as name",
        ),
        pytest.param(
            {"kubernetes.io": {"pod": True}},
            "json: cannot unmarshal bool into Go value of type serviceaccount.ref",
            id="no reference",
        ),
        pytest.param({"kubernetes.io": None}, 'serviceaccounts "" not found', id="no account"),
    ],
)
async def test_claims_of_wrong_type_are_refused(tokens, changes, says):
    claims = claims_of(tokens.issue()) | changes
    assert await refusal(tokens, jwt.sign(tokens.accounts.keys, claims)) == says
