"""Puts the authenticators together, in upstream's order: certificates first, then tokens, then nobody in particular."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apimachinery.chance import Chance
from apimachinery.clock import Clock
from apiserver.authn.bearer import BearerTokens, StaticTokens
from apiserver.authn.certificates import ClientCertificates
from apiserver.authn.chain import Authentication
from apiserver.authn.serviceaccount.accounts import Find, ServiceAccounts
from apiserver.authn.serviceaccount.keys import Keys, load
from apiserver.pki.issue import make_key
from apiserver.rest.call import User

ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whom the server knows, and by what. `audiences` are its own; none: its issuers."""

    tokens: Mapping[str, User]
    keys: Keys = field(default_factory=lambda: load(make_key()))
    issuers: Sequence[str] = (ISSUER,)
    audiences: Sequence[str] = ()
    anonymous: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticators:
    chain: Authentication
    bearer: BearerTokens
    accounts: ServiceAccounts


def authenticators(trust: Trust, find: Find, *, clock: Clock, chance: Chance) -> Authenticators:
    audiences = trust.audiences or trust.issuers
    accounts = ServiceAccounts(
        trust.keys, issuers=trust.issuers, audiences=audiences, find=find, clock=clock, chance=chance
    )
    bearer = BearerTokens((StaticTokens(trust.tokens), accounts), audiences=audiences, clock=clock)
    chain = Authentication((ClientCertificates(), bearer), anonymous=trust.anonymous)
    return Authenticators(chain=chain, bearer=bearer, accounts=accounts)
