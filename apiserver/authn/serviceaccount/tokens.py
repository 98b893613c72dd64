"""Issue and read service account tokens, which are valid while the account and the bound object exist."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from mockube.apimachinery import gotext, randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.authenticators import (
    LEGACY_TOKENS,
    STALE_TOKENS,
    VALID_TOKENS,
    BadToken,
    KnownToken,
    TokenDetails,
)
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock

from . import jwt
from .claims import (
    LEEWAY_SECONDS,
    Account,
    Reference,
    audiences,
    check_time,
    shared_audiences,
    verified_claims,
)
from .keys import ServiceAccountKeys

Find: TypeAlias = Callable[[str, str, str], Awaitable[Tree | None]]
"""Returns the current object of the core group by resource, namespace and name; None if there is none."""
INVALIDATED = "service account token has been invalidated"


POD_TOKEN_SECONDS = 3607
"""The lifetime that is requested for a pod's own token: an hour, and a few seconds that identify it."""


class TokenLifetime(Struct, frozen=True, kw_only=True):
    """The expiration of tokens that clients request."""

    max_expiration_seconds: int = 0
    """0: no maximum."""
    extends_expiration: bool = True
    """Whether a pod's own token is valid for a year: old clients read it only once."""


_DEFAULT_LIFETIME: Final = TokenLifetime()


class IssuedToken(NamedTuple):
    text: str
    id: str
    """The claim `jti`."""


class ServiceAccounts:
    """Issues tokens of the first of `issuers`, and accepts tokens of all. `audiences` are the server's own."""

    def __init__(  # noqa: PLR0913 - each argument is a setting or a dependency
        self,
        keys: ServiceAccountKeys,
        *,
        issuers: Sequence[str],
        audiences: Sequence[str],
        find: Find,
        clock: Clock,
        random: Random,
        lifetime: TokenLifetime = _DEFAULT_LIFETIME,
        uses: Counter[str] | None = None,
    ) -> None:
        """`uses` gets the numbers of valid tokens, by type of use."""
        self.lifetime = lifetime
        self.uses: Counter[str] = Counter() if uses is None else uses
        self.keys = keys
        self.issuer = issuers[0]
        self.audiences = audiences
        self._issuers = frozenset(issuers)
        self.find = find
        self._clock = clock
        self._random = random

    def issue_token(
        self, account: Account, *, audiences: Sequence[str], seconds: int, warn_after: int | None = None
    ) -> IssuedToken:
        """Return a token; after `warn_after` seconds it is still valid, but the client should have requested a new one."""
        now = int(self._clock.now().timestamp())
        private, token_id = account.claim(), randomness.uid(self._random)
        if warn_after is not None:
            private = {**private, "warnafter": now + warn_after}
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": token_id,
            "kubernetes.io": private,
            "nbf": now,
            "sub": account.username,
        }
        return IssuedToken(jwt.sign(self.keys, claims), token_id)

    async def authenticate_token(self, token: str, audiences_: Sequence[str]) -> KnownToken | None:
        claims = verified_claims(token, self.keys, self._issuers)
        if claims is None:
            return None
        if not audiences(claims):
            self.uses[LEGACY_TOKENS] += 1
        shared = shared_audiences(claims, self.audiences, audiences_)
        now = self._clock.now()
        check_time(claims, now)
        account = Account.read(claims)
        await self._check(account, now)
        notes = self._notes(account, claims, now)
        return KnownToken(account.user(claims.get("jti") or ""), shared, notes)

    async def check_user(self, user: User) -> None:
        """Raise BadToken if the user is a service account that does not exist any more, or its token's pod does not."""
        account = Account.of_user(user)
        if account is not None:
            await self._check(account, self._clock.now())

    def _notes(self, account: Account, claims: Mapping[str, Any], now: datetime) -> TokenDetails | None:
        annotations = {}
        if not audiences(claims):
            annotations["authentication.k8s.io/legacy-token"] = account.username
        warn_after = claims["kubernetes.io"].get("warnafter")
        if warn_after:
            late = int(now.timestamp()) - int(warn_after)
            is_stale = now.timestamp() > warn_after
            self.uses[STALE_TOKENS if is_stale else VALID_TOKENS] += 1
            if is_stale:
                text = f"subject: {account.username}, seconds after warning threshold: {late}"
                annotations["authentication.k8s.io/stale-token"] = text
        end = claims.get("exp")
        return None if end is None and not annotations else TokenDetails(annotations, end=end)

    async def _check(self, account: Account, now: datetime) -> None:
        """Raise BadToken if an object that the token refers to does not exist, or has another uid."""
        namespace, name = account.namespace, account.account.name
        service_account = await self.find("serviceaccounts", namespace, name)
        if service_account is None:
            raise BadToken(f"serviceaccounts {gotext.quote(name)} not found")
        uid = service_account["metadata"]["uid"]
        if uid != account.account.uid:
            raise BadToken(f"service account UID ({uid}) does not match claim ({account.account.uid})")
        if _is_deleted(service_account, now):
            raise BadToken(f"service account {namespace}/{name} has been deleted")
        await self._check_bound("secret", namespace, account.secret, now)
        await self._check_bound("pod", namespace, account.pod, now)
        if account.pod is None:
            await self._check_bound("node", "", account.node, now)

    async def _check_bound(
        self, kind: str, namespace: str, reference: Reference | None, now: datetime
    ) -> None:
        if reference is None:
            return
        bound_object = await self.find(f"{kind}s", namespace, reference.name)
        if bound_object is None:
            raise BadToken(INVALIDATED)
        uid = bound_object["metadata"]["uid"]
        if uid != reference.uid:
            claim = f"service account {kind} ref claim ({reference.uid})"
            raise BadToken(f"{kind.capitalize()} UID ({uid}) does not match {claim}")
        if _is_deleted(bound_object, now):
            raise BadToken(INVALIDATED)


def _is_deleted(tree: Tree, now: datetime) -> bool:
    """Return whether the deletion time of an object has passed by more than the allowed clock skew."""
    deletion_time = tree["metadata"].get("deletionTimestamp")
    return deletion_time is not None and parse_time(deletion_time) < now - timedelta(seconds=LEEWAY_SECONDS)
