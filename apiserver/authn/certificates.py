"""Client certificates: the common name is the user, each organization a group."""

from functools import lru_cache

from mockube.apimachinery import status
from mockube.apimachinery.clock import Clock
from mockube.apiserver.authn.credentials import CredentialCounts, DistinguishedName, PresentedCredentials
from mockube.apiserver.authn.token_file import AUTHENTICATED
from mockube.apiserver.user import User

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class ClientCertificates:
    """Certificates of no authority never get this far, those of front proxies do.

    A connection may stay open for longer than its certificate is valid, so its end is compared at each request.
    """

    def __init__(self, clock: Clock, counts: CredentialCounts | None = None) -> None:
        self._clock = clock
        self._counts = counts or CredentialCounts()

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        if not presented.certificate:
            return None
        remaining = presented.certificate_end - self._clock.now().timestamp()
        self._counts.observe_certificate(remaining)
        if not presented.is_client or remaining < 0:
            raise status.Unauthorized("Unauthorized")
        return user_of(presented.certificate, presented.certificate_id)


@lru_cache(maxsize=1024)
def user_of(subject: DistinguishedName, digest: str = "") -> User | None:
    """Return the user of a subject; None if it has no common name."""
    attributes = [attribute for group in subject for attribute in group]
    names = [value for name, value in attributes if name == "commonName"]
    groups = tuple(value for name, value in attributes if name == "organizationName")
    if not names or not names[-1]:
        return None
    extra = {CREDENTIAL_ID: (f"X509SHA256={digest}",)} if digest else {}
    return User(name=names[-1], groups=(*groups, AUTHENTICATED), extra=extra)
