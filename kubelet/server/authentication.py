"""The authentication of kubelet requests: by client certificates, and by bearer tokens that the API server reviews."""

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.kubelet.shared_work import SharedWork

from . import limits

_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
CACHED_SECONDS: Final = 120.0
"""How long a review is cached in seconds, as in a kubelet's webhook authenticator."""


class KubeletUser(NamedTuple):
    name: str
    groups: tuple[str, ...]


def user_of(certificate: Mapping[str, Any] | None) -> KubeletUser | None:
    """Return the user of a client certificate: the common name, with the organizations as groups; None without one."""
    if not certificate:
        return None
    pairs = [pair for part in certificate["subject"] for pair in part]
    names = [value for key, value in pairs if key == "commonName"]
    groups = tuple(value for key, value in pairs if key == "organizationName")
    return KubeletUser(names[0], (*groups, "system:authenticated")) if names else None


class TokenAuthenticator:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._reviews = SharedWork[KubeletUser | None]()
        self._users: OrderedDict[bytes, tuple[KubeletUser | None, float]] = OrderedDict()
        """The user of each token, by its hash."""

    async def user_of(self, authorization: str) -> KubeletUser | None:
        """Return the user of a header `Authorization: Bearer TOKEN`; None without a valid token."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        key = sha256(token.encode("utf-8", "surrogateescape")).digest()
        user, until = self._users.get(key, (None, 0.0))
        if self._clock.monotonic() < until:
            return user
        user = await self._reviews.run(key, partial(self._review, token))
        self._users[key] = user, self._clock.monotonic() + CACHED_SECONDS
        if len(self._users) > limits.MAX_DECISIONS:
            self._users.popitem(last=False)
        return user

    async def _review(self, token: str) -> KubeletUser | None:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token.encode("utf-8", "replace").decode()},
        }
        response = await self._client.raw("POST", _PATH, body=orjson.dumps(review))
        status = response.get("status") or {}
        user = status.get("user") or {}
        if not status.get("authenticated"):
            return None
        return KubeletUser(user.get("username") or "", tuple(user.get("groups") or ()))
