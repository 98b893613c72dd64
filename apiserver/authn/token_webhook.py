"""Authenticate tokens by TokenReviews sent to another server: `--authentication-token-webhook-config-file`."""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apiserver.outgoing import KubeconfigEndpoint, Reviewer, ReviewFailed
from mockube.apiserver.user import User, with_authenticated
from mockube.component_base.clock import Clock

from .authenticators import BadToken, KnownToken

LOG: Final = logging.getLogger(__name__)
MAX_CACHED_ANSWERS: Final = 4096


class TokenWebhookSettings(Struct, frozen=True, kw_only=True):
    endpoint: KubeconfigEndpoint
    version: str = "v1beta1"
    cache_seconds: float = 120.0


class TokenWebhook:
    """A `TokenAuthenticator`. Responses are cached, including unauthenticated ones; failures are not."""

    def __init__(
        self, settings: TokenWebhookSettings, reviewer: Reviewer, *, audiences: Sequence[str], clock: Clock
    ) -> None:
        self._settings = settings
        self._reviewer = reviewer
        self._audiences = audiences
        self._clock = clock
        self._cache: OrderedDict[bytes, tuple[float, KnownToken | None]] = OrderedDict()

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        key, now = hashlib.sha256("\0".join((token, *audiences)).encode()).digest(), self._clock.monotonic()
        until, review = self._cache.get(key, (0.0, None))
        if until > now:
            return review
        review = await self._call_webhook(token, audiences)
        if self._settings.cache_seconds > 0:
            self._cache[key] = self._clock.monotonic() + self._settings.cache_seconds, review
            self._cache.move_to_end(key)
            if len(self._cache) > MAX_CACHED_ANSWERS:
                self._cache.popitem(last=False)
        return review

    async def _call_webhook(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        review = {
            "kind": "TokenReview",
            "apiVersion": f"authentication.k8s.io/{self._settings.version}",
            "metadata": {},
            "spec": {"token": token, "audiences": list(audiences)},
            "status": {"user": {}},
        }
        try:
            status = await self._reviewer.review(review)
        except ReviewFailed as error:
            LOG.error("Failed to make webhook authenticator request: %s", error)  # noqa: TRY400 - upstream's
            raise BadToken(str(error)) from error
        allowed = status.get("audiences") or self._audiences
        shared = [audience for audience in audiences if audience in allowed]
        if not shared:
            return None
        if status.get("authenticated") is not True:
            if status.get("error"):
                raise BadToken(str(status["error"]))
            return None
        return KnownToken(with_authenticated(_user(status.get("user"))), shared)


def _user(tree: Any) -> User:
    """Return the user in a response, or raise BadToken if it is malformed."""
    user_fields: Mapping[str, Any] = tree if isinstance(tree, dict) else {}
    groups, extra = user_fields.get("groups") or [], user_fields.get("extra") or {}
    is_valid = (
        all(isinstance(user_fields.get(name) or "", str) for name in ("username", "uid"))
        and isinstance(groups, list)
        and all(isinstance(group, str) for group in groups)
        and isinstance(extra, dict)
        and all(isinstance(values, list) for values in extra.values())
    )
    if not is_valid:
        raise BadToken("the response of the webhook has no user")
    return User(
        name=user_fields.get("username") or "",
        uid=user_fields.get("uid") or "",
        groups=tuple(groups),
        extra={name: tuple(map(str, values)) for name, values in extra.items()},
    )
