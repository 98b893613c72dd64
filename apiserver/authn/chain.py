"""The chain of authenticators: certificates, token files, service accounts, issuers and webhooks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from mockube.apimachinery import status
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.apiserver.authn.bootstrap_tokens import BootstrapTokens
from mockube.apiserver.authn.credentials import (
    BearerTokens,
    ClientCertificates,
    CredentialCounts,
    PresentedCredentials,
    TokenReader,
)
from mockube.apiserver.authn.request_headers import FrontProxy, RequestHeaders
from mockube.apiserver.authn.serviceaccount.accounts import Find, ServiceAccounts, TokenLifetime
from mockube.apiserver.authn.serviceaccount.keys import Keys, load
from mockube.apiserver.authn.serviceaccount.legacy import LabelSecret, LegacyTokens
from mockube.apiserver.authn.token_file import StaticTokens
from mockube.apiserver.authn.token_webhook import TokenWebhook, TokenWebhookSettings
from mockube.apiserver.outgoing import Reviewer, Send
from mockube.apiserver.pki.issue import make_key
from mockube.apiserver.user import ANONYMOUS, User

if TYPE_CHECKING:
    from mockube.apiserver.authn.oidc.authenticators import JWTAuthenticators, JWTSettings, Observer

OPEN_TO_ALL = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
"""The paths that upstream's role system:public-info-viewer allows to get."""


class Anonymous(Enum):
    """Which requests may be anonymous."""

    NONE = "none"
    LIMITED = "limited"
    """Only requests to get a path of `OPEN_TO_ALL`."""
    ALL = "all"
    """All requests; the authorizer decides."""


class Authenticator(Protocol):
    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        """Return the user, or None if there are no credentials of this type; raise Unauthorized if they are wrong."""


class Authentication:
    """Authenticates requests."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        *,
        anonymous: Anonymous = Anonymous.ALL,
        anonymous_paths: Collection[str] = (),
    ) -> None:
        self._authenticators = authenticators
        self._anonymous = anonymous
        self._anonymous_paths = anonymous_paths

    async def authenticate(self, presented: PresentedCredentials, verb: str, path: str) -> User:
        """Return the user, or raise Unauthorized.

        As upstream, an Authorization header that no authenticator reads is ignored.
        """
        refusal: status.Unauthorized | None = None
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(presented)
            except status.Unauthorized as error:
                refusal = refusal or error  # another credential of the same request may be valid
                continue
            if user is not None:
                return user
        if refusal is not None:
            raise refusal
        if self._anonymous_paths and path not in self._anonymous_paths:
            raise status.Unauthorized("Unauthorized")
        if self._anonymous is Anonymous.ALL:
            return ANONYMOUS
        if self._anonymous is Anonymous.LIMITED and verb == "get" and path in OPEN_TO_ALL:
            return ANONYMOUS
        raise status.Unauthorized("Unauthorized")


ISSUER = "https://kubernetes.default.svc"


class Trust(Struct, frozen=True, kw_only=True):
    """The credentials that the server accepts. `audiences` are its own; none: its issuers."""

    tokens: Mapping[str, User]
    keys: Keys = field(default_factory=lambda: load(make_key()))
    issuers: Sequence[str] = (ISSUER,)
    audiences: Sequence[str] = ()
    anonymous: bool = True
    """Whether requests may have no credentials."""
    anonymous_paths: Collection[str] = ()
    """The only paths for anonymous requests; none: any."""
    jwt: "JWTSettings | None" = None
    """The issuers of other tokens; None: there are none."""
    request_headers: RequestHeaders | None = None
    """The headers in which front proxies send users; None: there are no front proxies."""
    token_webhook: TokenWebhookSettings | None = None
    """The webhook that reviews tokens which no other authenticator reads; None: there is none."""
    token_lifetime: TokenLifetime = field(default_factory=TokenLifetime)
    bootstrap_tokens: bool = False
    """Whether Secrets of kube-system may contain tokens for nodes to join the cluster."""


class Remote(Struct, frozen=True):
    """The dependencies of calls to other servers. The observer is created when it is needed."""

    send: Send
    observer: Callable[[], "Observer"]


class Authenticators(Struct, frozen=True, kw_only=True):
    chain: Authentication
    bearer: BearerTokens
    accounts: ServiceAccounts
    issuers: "JWTAuthenticators | None" = None
    """For tokens of other issuers; its `run` is a task of the server."""


def authenticators(  # noqa: PLR0913 - the parts of the chain
    trust: Trust,
    find: Find,
    *,
    clock: Clock,
    random: Random,
    label: LabelSecret | None = None,
    is_anonymous_limited: bool = False,
    remote: Remote | None = None,
    counts: CredentialCounts | None = None,
) -> Authenticators:
    """Return the chain; `remote` is needed if other servers are called."""
    counts = counts or CredentialCounts()
    audiences = trust.audiences or trust.issuers
    accounts = ServiceAccounts(
        trust.keys, issuers=trust.issuers, audiences=audiences, find=find, clock=clock, random=random
    )
    accounts.uses = counts.tokens
    accounts.lifetime = trust.token_lifetime
    readers: list[TokenReader] = [StaticTokens(trust.tokens, audiences)]
    if label is not None:
        legacy = LegacyTokens(trust.keys, audiences=audiences, find=find, label=label, clock=clock)
        legacy.uses = counts.tokens
        readers.append(legacy)
    readers.append(accounts)
    if trust.bootstrap_tokens:
        readers.append(BootstrapTokens(find, audiences=audiences, clock=clock))
    issuers = None
    if trust.jwt is not None and remote is not None:
        issuers = _jwt_authenticators(trust.jwt, audiences, clock, remote)
        readers.append(issuers)
    if trust.token_webhook is not None and remote is not None:
        reviewer = Reviewer(endpoint=trust.token_webhook.endpoint, send=remote.send, clock=clock)
        readers.append(TokenWebhook(trust.token_webhook, reviewer, audiences=audiences, clock=clock))
    bearer = BearerTokens(readers, audiences=audiences, clock=clock, counts=counts)
    proxies = [FrontProxy(trust.request_headers, clock)] if trust.request_headers is not None else []
    chain = Authentication(
        (*proxies, ClientCertificates(clock, counts), bearer),
        anonymous=_anonymous(trust, is_anonymous_limited),
        anonymous_paths=trust.anonymous_paths,
    )
    return Authenticators(chain=chain, bearer=bearer, accounts=accounts, issuers=issuers)


def _jwt_authenticators(
    settings: "JWTSettings", audiences: Sequence[str], clock: Clock, remote: Remote
) -> "JWTAuthenticators":
    from mockube.apiserver.authn.oidc.authenticators import JWTAuthenticators  # noqa: PLC0415 - few need it

    observer = remote.observer()
    return JWTAuthenticators(settings, audiences=audiences, send=remote.send, clock=clock, observer=observer)


def _anonymous(trust: Trust, is_limited: bool) -> Anonymous:  # noqa: FBT001 - its caller names it
    """Return which requests may be anonymous; `is_limited` allows only those of `OPEN_TO_ALL`."""
    if not trust.anonymous:
        return Anonymous.NONE
    return Anonymous.LIMITED if is_limited else Anonymous.ALL
