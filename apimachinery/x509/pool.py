"""Sets of certificates: the trusted ones, and those of a chain that lead to them."""

from collections.abc import Iterable, Iterator

from mockube.apimachinery import pem

from .certificate import Certificate, parse_certificate
from .der import CertificateError


class CertificatePool:
    """Certificates without duplicates, in the order in which they were added."""

    def __init__(self, certificates: Iterable[Certificate] = ()) -> None:
        self._by_raw: dict[bytes, Certificate] = {}
        self._by_subject: dict[bytes, list[Certificate]] = {}
        for certificate in certificates:
            if certificate.raw not in self._by_raw:
                self._by_raw[certificate.raw] = certificate
                self._by_subject.setdefault(certificate.subject, []).append(certificate)

    def __len__(self) -> int:
        return len(self._by_raw)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._by_raw.values())

    def __contains__(self, certificate: Certificate) -> bool:
        return certificate.raw in self._by_raw

    def possible_issuers(self, certificate: Certificate) -> list[Certificate]:
        """Return the certificates whose subject is the issuer of one, those with the key that it names first."""
        key = certificate.extensions.authority_key

        def difference(candidate: Certificate) -> int:
            candidate_key = candidate.extensions.subject_key
            if candidate_key == key:
                return 0
            return 2 if candidate_key and key else 1

        return sorted(self._by_subject.get(certificate.issuer, ()), key=difference)


def pool_from_pem(text: bytes) -> CertificatePool:
    """Return the certificates of a text; blocks that are no certificates are ignored."""
    return CertificatePool(_certificates(text))


def _certificates(text: bytes) -> Iterable[Certificate]:
    for data in dict.fromkeys(_encoded_certificates(pem.blocks(text))):
        try:
            yield parse_certificate(data)
        except CertificateError:
            continue


def _encoded_certificates(blocks: Iterable[pem.Block]) -> Iterable[bytes]:
    return (block.data for block in blocks if block.type == "CERTIFICATE" and not block.headers)


def certificate_problem(data: bytes) -> str:
    """Return why data in DER is no certificate; "" if it is one."""
    try:
        parse_certificate(data)
    except CertificateError as error:
        return str(error)
    return ""


def authorities_problem(text: bytes) -> str:
    """Return why a client cannot trust the certificates of a text, in client-go's words; "" if it can."""
    if not text:
        return ""
    blocks = pem.blocks(text)
    problems = [certificate_problem(data) for data in _encoded_certificates(blocks)]
    if "" in problems:
        return ""
    if problems:
        return f"unable to load root certificates: failed to parse certificate: {problems[0]}"
    if not blocks or blocks[-1].end < len(text):
        return "unable to load root certificates: unable to parse bytes as PEM block"
    return "unable to load root certificates: no valid certificate authority data seen"
