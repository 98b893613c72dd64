"""Certificates of clients: their verification, as Go's x509.Verify decides, and the users that they name.

TLS accepts any certificate whose key the client has. A user comes from a certificate only after `CertificateVerifier` has found a
chain from it to one of the CAs that are trusted when the request arrives.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from mockube.apimachinery import status
from mockube.apimachinery.x509 import keys
from mockube.apimachinery.x509.certificate import Certificate, parse_certificate
from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.pool import CertificatePool, pool_from_pem
from mockube.apimachinery.x509.subjects import SubjectName
from mockube.apimachinery.x509.verify import CLIENT_AUTH, Options, verify
from mockube.apiserver.user import AUTHENTICATED, User
from mockube.component_base.clock import Clock

from .authenticators import CREDENTIAL_ID, CredentialCounts, PeerCertificates, PresentedCredentials

MAX_RESULTS: Final = 1000
"""How many results of verifications are remembered."""
RECHECK_SECONDS: Final = 1.0
"""How long a certificate stays refused before it is verified again, since a certificate of its chain may become valid."""
_KEY_TYPES: Final = (keys.RSA, keys.ECDSA, keys.ED25519)


class Verification(Struct, frozen=True, kw_only=True):
    """The result of the verification of a certificate."""

    subject: SubjectName = SubjectName()
    end: float = math.nan
    """When the certificate expires, in seconds since 1970; NaN if it cannot be parsed."""
    problem: str = ""
    """Why the certificate is refused; "" if it is accepted."""
    since: float
    until: float
    """The result is for this time, in seconds since 1970."""


class CertificateVerifier:
    """Verifies certificates of clients. `read_authorities` returns the trusted CAs of now in PEM."""

    def __init__(self, read_authorities: Callable[[], bytes], clock: Clock) -> None:
        self._read_authorities = read_authorities
        self._clock = clock
        self._authorities = b""
        self._roots = CertificatePool()
        self._results: OrderedDict[bytes, Verification] = OrderedDict()
        """By digest of the certificates: the result for the CAs of now."""

    def verify(self, certificates: PeerCertificates) -> Verification:
        authorities = self._read_authorities()
        if authorities is not self._authorities:
            self._authorities, self._roots = authorities, pool_from_pem(authorities)
            self._results.clear()
        now, key = self._clock.now(), certificates.key
        time, result = now.timestamp(), self._results.get(key)
        if result is None or not result.since <= time <= result.until:
            result = _verify(
                certificates.read_chain(),
                lambda intermediates: Options(
                    roots=self._roots, intermediates=intermediates, now=now, usage=CLIENT_AUTH
                ),
                time,
            )
            self._results[key] = result
            if len(self._results) > MAX_RESULTS:
                self._results.popitem(last=False)
        self._results.move_to_end(key)
        return result


def _verify(
    encoded: Sequence[bytes], options: Callable[[CertificatePool], Options], time: float
) -> Verification:
    refused_until = time + RECHECK_SECONDS
    try:
        leaf, *others = map(parse_certificate, encoded)
    except CertificateError as error:
        return Verification(
            problem=f"tls: failed to parse client certificate: {error}", since=time, until=refused_until
        )
    end = leaf.not_after.timestamp()
    problem = _key_problem((leaf, *others))
    if not problem:
        try:
            chain = verify(leaf, options(CertificatePool(others)))[0]
        except CertificateError as error:
            problem = f"verifying certificate {_identifier(leaf)} failed: {error}"
        else:
            return Verification(
                subject=leaf.subject_name,
                end=end,
                since=max(certificate.not_before for certificate in chain).timestamp(),
                until=min(certificate.not_after for certificate in chain).timestamp(),
            )
    return Verification(end=end, problem=problem, since=time, until=refused_until)


def _key_problem(chain: Sequence[Certificate]) -> str:
    """Return why Go's TLS does not accept the keys of certificates; "" if it does."""
    if max(certificate.key.rsa_bits for certificate in chain) > keys.MAX_RSA_BITS:
        return f"tls: client sent certificate containing RSA key larger than {keys.MAX_RSA_BITS} bits"
    if chain[0].key.key_type not in _KEY_TYPES:
        type_name = keys.GO_TYPES.get(chain[0].key.key_type, "<nil>")
        return f"tls: client certificate contains an unsupported public key of type {type_name}"
    return ""


def _identifier(certificate: Certificate) -> str:
    extensions = certificate.extensions
    subject_key, authority_key = _hexadecimal(extensions.subject_key), _hexadecimal(extensions.authority_key)
    return f"SN={certificate.serial}, SKID={subject_key}, AKID={authority_key}"


def _hexadecimal(key: bytes) -> str:
    return key.hex(":").upper() if key else ""


class ClientCertificates:
    """Authenticates client certificates: the common name is the user, each organization a group.

    A connection can outlive its certificate and the CAs, so every request is verified.
    """

    def __init__(
        self,
        verifier: CertificateVerifier,
        clock: Clock,
        counts: CredentialCounts | None = None,
        *,
        reads_uid: bool = True,
    ) -> None:
        self._verifier = verifier
        self._clock = clock
        self._counts = counts or CredentialCounts()
        self._reads_uid = reads_uid

    async def authenticate(self, presented: PresentedCredentials) -> User | None:
        certificates = presented.certificates
        if certificates is None:
            return None
        verification = self._verifier.verify(certificates)
        if not math.isnan(verification.end):
            self._counts.observe_certificate(verification.end - self._clock.now().timestamp())
        if verification.problem:
            raise status.Unauthorized("Unauthorized") from CertificateError(verification.problem)
        return user_of(verification.subject, certificates.digest, reads_uid=self._reads_uid)


@lru_cache(maxsize=1024)
def user_of(subject: SubjectName, digest: str = "", *, reads_uid: bool = True) -> User | None:
    """Return the user of a subject; None if it has no common name. Raise Unauthorized if its UID is invalid."""
    if not subject.common_name:
        return None
    uids = subject.uids if reads_uid else ()
    problem = "UID cannot be an empty string" if uids == ("",) else ""
    if len(uids) > 1:
        problem = f"expected 1 UID, but found multiple: [{' '.join(uids)}]"
    if problem:
        raise status.Unauthorized("Unauthorized") from CertificateError(problem)
    extra = {CREDENTIAL_ID: (f"X509SHA256={digest}",)} if digest else {}
    return User(
        name=subject.common_name,
        uid=uids[0] if uids else "",
        groups=(*subject.organizations, AUTHENTICATED),
        extra=extra,
    )
