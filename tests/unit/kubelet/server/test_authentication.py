"""Kubelets let the API server review the bearer tokens of their clients, once for some time."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.kubelet.server import limits
from mockube.kubelet.server.authentication import CACHED_SECONDS, KubeletUser, TokenAuthenticator

ALICE = {"authenticated": True, "user": {"username": "alice", "groups": ["dev", "system:authenticated"]}}


class Reviews:
    """A client whose API server knows one token."""

    def __init__(self):
        self.bodies = []

    async def raw(self, method, path, *, body):
        assert (method, path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
        self.bodies.append(body)
        return {"status": ALICE if b'"right"' in body else {"error": "invalid"}}


@pytest.mark.parametrize(
    ("header", "name", "count"),
    [
        ("Bearer right", "alice", 1),
        ("bearer  right ", "alice", 1),
        ("Bearer wrong", None, 1),
        ("Bearer", None, 0),
        ("Basic right", None, 0),
        ("", None, 0),
    ],
)
async def test_bearer_token_is_reviewed(header, name, count):
    reviews = Reviews()
    user = await TokenAuthenticator(reviews, SteppedClock()).user_of(header)
    assert (user and user.name, len(reviews.bodies)) == (name, count)


async def test_review_is_cached_for_some_time():
    reviews, clock = Reviews(), SteppedClock()
    authenticator = TokenAuthenticator(reviews, clock)
    for _ in range(2):
        assert await authenticator.user_of("Bearer right") == KubeletUser(
            "alice", ("dev", "system:authenticated")
        )
    assert len(reviews.bodies) == 1
    clock.advance(CACHED_SECONDS + 1)
    await authenticator.user_of("Bearer right")
    assert len(reviews.bodies) == 2


async def test_user_whose_token_was_used_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "MAX_DECISIONS", 2)
    reviews, clock = Reviews(), SteppedClock()
    authenticator = TokenAuthenticator(reviews, clock)
    for token in ("a", "b", "c", "a", "c"):
        await authenticator.user_of(f"Bearer {token}")
    assert len(reviews.bodies) == 4


@pytest.mark.parametrize(
    ("status", "user"),
    [
        (ALICE, KubeletUser("alice", ("dev", "system:authenticated"))),
        ({"authenticated": True}, KubeletUser("", ())),
        ({"authenticated": False, "user": {"username": "alice"}}, None),
        (None, None),
    ],
)
async def test_user_of_a_review(status, user):
    reviews = Reviews()
    reviews.raw = lambda *_, **__: answered({} if status is None else {"status": status})
    assert await TokenAuthenticator(reviews, SteppedClock()).user_of("Bearer x") == user


async def answered(value):
    return value
