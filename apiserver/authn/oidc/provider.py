"""Discovery of an issuer, and resolution of the distributed claims of its tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import gotext
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.outgoing import CallFailed, OutgoingRequest, Send, Tls
from mockube.component_base.clock import Clock

from .id_token import UndecodableToken, Verifier, text_of, untrusted_issuer
from .key_set import RemoteKeySet, decode_problem

WELL_KNOWN: Final = "/.well-known/openid-configuration"
RETRY_SECONDS: Final = 10.0
"""The interval between attempts to reach an issuer."""
MAX_SOURCES: Final = 64
"""The number of cached issuers of distributed claims."""


class NotInitialized(Exception):
    """An issuer could not be discovered."""


class Provider(Struct, frozen=True, kw_only=True):
    """The connection settings of an issuer."""

    issuer: str
    discovery_url: str = ""
    send: Send
    tls: Tls
    clock: Clock

    async def keys(self, on_fetch: Callable[[bytes | None], None] = lambda _: None) -> RemoteKeySet:
        """Return the issuer's keys, or raise NotInitialized."""
        url = self.discovery_url or self.issuer.removesuffix("/") + WELL_KNOWN
        try:
            answer = await self.send(OutgoingRequest(url=url, tls=self.tls, follows_redirects=True))
        except CallFailed as error:
            raise NotInitialized(str(error)) from error
        if answer.code != 200:
            body = gotext.decode_utf8(answer.body)
            raise NotInitialized(f"{answer.status_line}: {body}")
        try:
            tree = orjson.loads(answer.body)
            if not isinstance(tree, dict):
                raise UndecodableToken("json: cannot unmarshal into Go value of type oidc.providerJSON")
            issuer, jwks = text_of(tree.get("issuer")), text_of(tree.get("jwks_uri"))
        except ValueError as error:
            problem = decode_problem(answer, error)
            raise NotInitialized(f"oidc: failed to decode provider discovery object: {problem}") from error
        if issuer != self.issuer:
            detail = f"expected {gotext.quote(self.issuer)} got {gotext.quote(issuer)}"
            raise NotInitialized(f"oidc: issuer did not match the issuer returned by provider, {detail}")
        if not jwks:
            raise NotInitialized("provider did not return JWKS URL")
        return RemoteKeySet(jwks, send=self.send, tls=self.tls, clock=self.clock, on_fetch=on_fetch)


class ClaimResolver:
    """Fetches a distributed claim, of which a token contains only the source."""

    def __init__(
        self, claim: str, provider: Provider, *, audiences: Sequence[str], algorithms: Sequence[str]
    ) -> None:
        self._claim = claim
        self._provider = provider
        self._audiences = audiences
        self._algorithms = algorithms
        self._verifiers: dict[str, Verifier] = {}
        self._attempts: dict[str, float] = {}

    async def expand(self, claims: dict[str, Any]) -> None:
        """Add the claim, or raise BadToken."""
        source = _claim_source(claims, self._claim)
        if source is None or not source[0]:
            return
        url, access_token = source
        try:
            claims[self._claim] = await self._resolve(url, access_token)
        except (BadToken, UndecodableToken) as error:
            raise BadToken(f"oidc: could not expand distributed claims: {error}") from error

    async def _resolve(self, url: str, access_token: str) -> Any:
        token = await self._fetch(url, access_token)
        try:
            issuer = untrusted_issuer(token)
        except UndecodableToken as error:
            problem = (
                f"getting untrusted issuer from endpoint {url} failed for claim {gotext.quote(self._claim)}"
            )
            raise BadToken(f"{problem}: {error}") from error
        verifier = await self._verifier(issuer)
        try:
            claims = await verifier.verify(token)
        except BadToken as error:
            raise BadToken(f"verify distributed claim token: {error}") from error
        if self._claim not in claims:
            problem = f"jwt returned by distributed claim endpoint {gotext.quote(url)} did not contain claim"
            raise BadToken(f"{problem}: {self._claim}")
        return claims[self._claim]

    async def _fetch(self, url: str, access_token: str) -> str:
        headers = {"Authorization": f"Bearer {access_token}"} if access_token else {}
        request = OutgoingRequest(url=url, headers=headers, tls=self._provider.tls, follows_redirects=True)
        try:
            answer = await self._provider.send(request)
        except CallFailed as error:
            raise BadToken(f"while getting distributed claim {gotext.quote(self._claim)}: {error}") from error
        if not 200 <= answer.code <= 226:
            problem = f"error while getting distributed claim JWT: {answer.status_line}"
            raise BadToken(f"while getting distributed claim {gotext.quote(self._claim)}: {problem}")
        return gotext.decode_utf8(answer.body)

    async def _verifier(self, issuer: str) -> Verifier:
        """Return the verifier of a claim source's issuer; a failed discovery is retried after `RETRY_SECONDS`."""
        if issuer in self._verifiers:
            return self._verifiers[issuer]
        now = self._provider.clock.monotonic()
        problem = f"verifying untrusted issuer {issuer} failed: verifier not initialized for issuer"
        if now < self._attempts.get(issuer, now):
            raise BadToken(f"{problem}: {gotext.quote(issuer)}")
        if len(self._attempts) >= MAX_SOURCES:
            oldest = next(iter(self._attempts))
            del self._attempts[oldest]
            self._verifiers.pop(oldest, None)
        self._attempts[issuer] = now + RETRY_SECONDS
        try:
            keys = await replace(self._provider, issuer=issuer, discovery_url="").keys()
        except NotInitialized as error:
            raise BadToken(f"{problem}: {gotext.quote(issuer)}") from error
        verifier = self._verifiers[issuer] = Verifier(
            issuer=issuer,
            audiences=self._audiences,
            algorithms=self._algorithms,
            keys=keys,
            clock=self._provider.clock,
        )
        return verifier


def _claim_source(claims: Mapping[str, Any], claim: str) -> tuple[str, str] | None:
    """Return the URL and the access token of a claim's source; None if the token contains the claim or names no source."""
    if claim in claims or "_claim_names" not in claims:
        return None
    if "_claim_sources" not in claims:
        raise BadToken("oidc: could not expand distributed claims: oidc: no claim sources")
    name = (claims["_claim_names"] or {}).get(claim)
    if name is None:
        return None
    source = claims["_claim_sources"][name]
    if not isinstance(source, dict):
        raise BadToken("oidc: could not expand distributed claims: oidc: could not parse claim sources")
    try:
        return text_of(source.get("endpoint")), text_of(source.get("access_token"))
    except UndecodableToken as error:
        problem = f"oidc: could not parse claim sources: {error}"
        raise BadToken(f"oidc: could not expand distributed claims: {problem}") from error
