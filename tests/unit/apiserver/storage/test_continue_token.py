"""Continue tokens round-trip, and no forged token reads outside its prefix."""

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.storage.continue_token import BadContinueToken, ContinueToken, decode, encode


@given(st.integers(1, 2**60), st.text("abc/\x00", min_size=1).filter(lambda s: not s.startswith("/")))
def test_continue_token_round_trips_or_is_refused(revision, start):
    token = ContinueToken(revision, start)
    try:
        assert decode(encode(token)) == token
    except BadContinueToken:
        assert "//" in start or start.endswith("/")


def token(**fields):
    return base64.urlsafe_b64encode(orjson.dumps(fields)).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(token(v="meta.k8s.io/v1", rv=5, start="../../secrets/x"), id="dots"),
        pytest.param(token(v="meta.k8s.io/v1", rv=5, start="a//b"), id="an empty segment"),
        pytest.param(token(v="meta.k8s.io/v1", rv=0, start="a"), id="no revision"),
        pytest.param(token(v="meta.k8s.io/v1", rv=5, start=""), id="no start"),
        pytest.param(token(v="meta.k8s.io/v1", rv="5", start="a"), id="another type"),
        pytest.param(token(v="v9", rv=5, start="a"), id="another version"),
        pytest.param("!!!", id="no base64"),
        pytest.param("bad", id="no JSON"),
        pytest.param("W10", id="a list"),
        pytest.param("W1tb" * 100_000, id="open lists"),
        pytest.param("W1tb" * 1000 + "XV1d" * 1000, id="nested lists"),
        pytest.param("eyJydiI6MWU0MDB9", id="a number that is too large"),
    ],
)
def test_forged_continue_tokens_are_refused(forged):
    with pytest.raises(BadContinueToken):
        decode(forged)
