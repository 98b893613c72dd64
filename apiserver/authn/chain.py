"""Create the chain of authenticators of a server: certificates, token files, service accounts, issuers, webhooks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.apiserver.outgoing import Reviewer, Send
from mockube.apiserver.pki.issue import make_key
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock

from .authenticators import (
    Anonymous,
    Authentication,
    Authenticator,
    BearerTokens,
    CredentialCounts,
    TokenAuthenticator,
)
from .bootstrap_tokens import BootstrapTokens
from .client_certificates import CertificateVerifier, ClientCertificates
from .page_sessions import PageSessions, SessionAuthenticator
from .request_headers import FrontProxy, RequestHeaders
from .serviceaccount.keys import ServiceAccountKeys, load
from .serviceaccount.legacy import LabelSecret, LegacyTokens
from .serviceaccount.tokens import Find, ServiceAccounts, TokenLifetime
from .token_file import StaticTokens
from .token_webhook import TokenWebhook, TokenWebhookSettings

if TYPE_CHECKING:
    from .oidc.authenticators import AuthenticationObserver, JWTAuthenticators, JWTSettings

ISSUER = "https://kubernetes.default.svc"


class Trust(Struct, frozen=True, kw_only=True):
    """The credentials that the server accepts. `audiences` are its own; none: its issuers."""

    tokens: Mapping[str, User]
    keys: ServiceAccountKeys = field(default_factory=lambda: load(make_key(SystemRandom())))
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


class CertificateAuthorities(Struct, frozen=True, kw_only=True):
    """The CAs that are trusted now, in PEM."""

    clients: Callable[[], bytes]
    """Returns those of clients."""
    proxies: Callable[[], bytes]
    """Returns those of front proxies."""
    reads_uid: bool = True
    """Whether certificates of clients may contain a UID, which they may since 1.33."""


class RemoteDependencies(Struct, frozen=True):
    """The dependencies of calls to other servers. The observer is created when it is needed."""

    send: Send
    observer: Callable[[], "AuthenticationObserver"]


class Authenticators(Struct, frozen=True, kw_only=True):
    chain: Authentication
    bearer: BearerTokens
    accounts: ServiceAccounts
    issuers: "JWTAuthenticators | None" = None
    """The authenticator of tokens of other issuers; its `run` is a task of the server."""


def authenticators(  # noqa: PLR0913 - the parts of the chain
    trust: Trust,
    find: Find,
    *,
    clock: Clock,
    random: Random,
    label: LabelSecret | None = None,
    certificates: CertificateAuthorities | None = None,
    is_anonymous_limited: bool = False,
    remote: RemoteDependencies | None = None,
    counts: CredentialCounts | None = None,
    sessions: PageSessions | None = None,
) -> Authenticators:
    """Return the chain; `remote` is needed if other servers are called. Without `certificates` no certificate is accepted."""
    counts = counts or CredentialCounts()
    audiences = trust.audiences or trust.issuers
    accounts = ServiceAccounts(
        trust.keys,
        issuers=trust.issuers,
        audiences=audiences,
        find=find,
        clock=clock,
        random=random,
        lifetime=trust.token_lifetime,
        uses=counts.tokens,
    )
    token_authenticators: list[TokenAuthenticator] = [StaticTokens(trust.tokens, audiences)]
    if label is not None:
        legacy = LegacyTokens(
            trust.keys, audiences=audiences, find=find, label=label, clock=clock, uses=counts.tokens
        )
        token_authenticators.append(legacy)
    token_authenticators.append(accounts)
    if trust.bootstrap_tokens:
        token_authenticators.append(BootstrapTokens(find, audiences=audiences, clock=clock))
    issuers = None
    if trust.jwt is not None and remote is not None:
        issuers = _jwt_authenticators(trust.jwt, audiences, clock, remote)
        token_authenticators.append(issuers)
    if trust.token_webhook is not None and remote is not None:
        reviewer = Reviewer(endpoint=trust.token_webhook.endpoint, send=remote.send, clock=clock.real)
        token_authenticators.append(
            TokenWebhook(trust.token_webhook, reviewer, audiences=audiences, clock=clock)
        )
    bearer = BearerTokens(token_authenticators, audiences=audiences, clock=clock, counts=counts)
    chain = Authentication(
        (
            *_certificate_authenticators(trust, certificates, clock, counts),
            *([] if sessions is None else [SessionAuthenticator(sessions, accounts)]),
            bearer,
        ),
        anonymous=_anonymous(trust, is_anonymous_limited),
        anonymous_paths=trust.anonymous_paths,
    )
    return Authenticators(chain=chain, bearer=bearer, accounts=accounts, issuers=issuers)


def _certificate_authenticators(
    trust: Trust, certificates: CertificateAuthorities | None, clock: Clock, counts: CredentialCounts
) -> Sequence[Authenticator]:
    if certificates is None:
        return ()
    clients = CertificateVerifier(certificates.clients, clock)
    client_certificates = ClientCertificates(clients, clock, counts, reads_uid=certificates.reads_uid)
    if trust.request_headers is None:
        return (client_certificates,)
    proxies = CertificateVerifier(certificates.proxies, clock)
    return FrontProxy(trust.request_headers, proxies), client_certificates


def _jwt_authenticators(
    settings: "JWTSettings", audiences: Sequence[str], clock: Clock, remote: RemoteDependencies
) -> "JWTAuthenticators":
    from .oidc.authenticators import JWTAuthenticators  # noqa: PLC0415 - few need it

    observer = remote.observer()
    return JWTAuthenticators(settings, audiences=audiences, send=remote.send, clock=clock, observer=observer)


def _anonymous(trust: Trust, is_limited: bool) -> Anonymous:  # noqa: FBT001 - its caller names it
    """Return which requests may be anonymous; `is_limited` allows only those of `ANONYMOUS_PATHS`."""
    if not trust.anonymous:
        return Anonymous.NONE
    return Anonymous.LIMITED if is_limited else Anonymous.ALL
