"""Bootstrap tokens (`abcdef.0123456789abcdef`), with which nodes join the cluster. Each is a Secret in kube-system."""

import base64
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.user import AUTHENTICATED, User
from mockube.component_base.clock import Clock

from .authenticators import KnownToken
from .serviceaccount.tokens import Find

_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_TYPE: Final = "bootstrap.kubernetes.io/token"
_DEFAULT_GROUP: Final = "system:bootstrappers"


class BootstrapTokens:
    """A `TokenAuthenticator` of bootstrap tokens, which are valid for `audiences`, the server's own."""

    def __init__(self, find: Find, *, audiences: Sequence[str], clock: Clock) -> None:
        self._find = find
        self._audiences = audiences
        self._clock = clock

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        match = _TOKEN.fullmatch(token)
        shared = [audience for audience in audiences if audience in self._audiences]
        if match is None or not shared:
            return None
        identity, secret = match.groups()
        stored = await self._find("secrets", "kube-system", f"bootstrap-token-{identity}")
        user = None if stored is None else user_of(stored, identity, secret, self._clock.now())
        return None if user is None else KnownToken(user, shared)


def user_of(stored: Tree, identity: str, secret: str, now: datetime) -> User | None:
    """Return the user of a token; None if its Secret does not match it."""
    if stored["metadata"].get("deletionTimestamp") or stored.get("type") != _TYPE:
        return None
    data = stored.get("data") or {}
    has_secret = hmac.compare_digest(_decoded_value(data, "token-secret").encode(), secret.encode())
    if not has_secret or _decoded_value(data, "token-id") != identity or _is_expired(data, now):
        return None
    if _decoded_value(data, "usage-bootstrap-authentication") != "true":
        return None
    extra = _decoded_value(data, "auth-extra-groups")
    groups = extra.split(",") if extra else []
    if not all(map(_GROUP.fullmatch, groups)):
        return None
    return User(
        name=f"system:bootstrap:{identity}", groups=(*sorted({_DEFAULT_GROUP, *groups}), AUTHENTICATED)
    )


def _is_expired(data: Mapping[str, str], now: datetime) -> bool:
    """Return whether a token has expired; as upstream, an invalid expiration counts as expired."""
    end = _decoded_value(data, "expiration")
    try:
        return bool(end) and parse_time(end) <= now
    except ValueError:
        return True


def _decoded_value(data: Mapping[str, str], name: str) -> str:
    try:
        return base64.b64decode(data.get(name, "")).decode()
    except ValueError:
        return ""
