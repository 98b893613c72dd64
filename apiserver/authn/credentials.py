"""The credentials of a request, before they are authenticated."""

import base64
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from mockube.apimachinery import status
from mockube.apiserver.user import User

SUBPROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")

DistinguishedName: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""The subject of a certificate, as `ssl` returns it: attributes and their values, in their order."""


class ClientCertificate(NamedTuple):
    """A certificate that was verified when the connection was established; without a subject there is none."""

    subject: DistinguishedName = ()
    end: float = math.inf
    """When it expires, in seconds since 1970."""
    digest: str = ""
    """SHA-256, in hexadecimal digits."""
    is_client: bool = True
    """Whether the clients' authority has signed it."""
    is_proxy: bool = False
    """Whether the front proxies' authority has."""


NO_CERTIFICATE: Final = ClientCertificate()


class TokenNotes(NamedTuple):
    """Notes about a valid token: annotations for the audit log, and warnings for its sender."""

    annotations: Mapping[str, str] = {}
    warnings: Sequence[str] = ()


class PresentedCredentials(Struct, frozen=True):
    authorization: str = ""
    """The Authorization header."""
    certificate: DistinguishedName = ()
    """The subject of the client's certificate, whose signature was checked when the connection was established."""
    certificate_end: float = math.inf
    """When the certificate expires, in seconds since 1970."""
    certificate_id: str = ""
    """The SHA-256 digest of the certificate, in hexadecimal digits."""
    socket_token: str = ""
    """The bearer token among the subprotocols of a WebSocket."""
    is_client: bool = True
    """Whether the certificate is of the clients' authority."""
    is_proxy: bool = False
    """Whether the certificate is of the front proxies' authority."""
    proxied: User | None = None
    """The user in the headers of a front proxy, which has a certificate."""
    notes: "list[TokenNotes]" = []
    """Notes about the accepted token."""

    @property
    def bearer(self) -> str:
        """Return the token of an Authorization header, which ends at the first space; "" if there is none."""
        scheme, _, rest = self.authorization.strip().partition(" ")
        return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def token_of_subprotocols(protocols: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the bearer token among the subprotocols of a WebSocket, and the other subprotocols.

    A browser cannot send an Authorization header with a WebSocket. As upstream, a token needs another subprotocol beside
    it, which is what the server names in its answer. Raise Unauthorized for what is no token.
    """
    tokens = [protocol for protocol in protocols if protocol.startswith(SUBPROTOCOL_PREFIX)]
    others = [protocol for protocol in protocols if not protocol.startswith(SUBPROTOCOL_PREFIX)]
    if not tokens:
        return "", others
    encoded = tokens[0].removeprefix(SUBPROTOCOL_PREFIX)
    if len(tokens) > 1 or not _BASE64URL.fullmatch(encoded):
        raise status.Unauthorized("Unauthorized")
    try:
        token = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError as error:
        raise status.Unauthorized("Unauthorized") from error
    if token and not others:
        raise status.Unauthorized("Unauthorized")
    return token, others


LEGACY_TOKENS, STALE_TOKENS, VALID_TOKENS = "legacy_tokens", "stale_tokens", "valid_tokens"
MANUAL_TOKENS, AUTOMATIC_TOKENS = "legacy_manual_token_uses", "legacy_auto_token_uses"
INVALIDATED_TOKENS = "invalid_legacy_auto_token_uses"


def _ignore(_seconds: float) -> None:
    pass


class CredentialCounts:
    """Counts of credentials, for metrics."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        """Checks of service account tokens, by the words above."""
        self.fetches: Counter[str] = Counter()
        """Checks of tokens, by `ok` and `error`."""
        self.cache_hits = 0
        """Tokens whose cached check was used."""
        self.looking = 0
        """Tokens that are being checked now."""
        self.observe_look: Callable[[float], None] = _ignore
        """Called with the duration of a check in seconds."""
        self.observe_certificate: Callable[[float], None] = _ignore
        """Called with the remaining lifetime of a request's certificate in seconds."""
