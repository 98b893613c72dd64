"""Finds the CA of a client's certificate: the client CA or the request header CA. Both may change."""

from collections.abc import Iterable
from ssl import SSLObject
from typing import Any, Final, TypeAlias

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import Certificate, load_der_x509_certificate, load_pem_x509_certificates

from mockube.apiserver.pki.reloading import ServingCertificates

_DER: Final = 2
"""The constant of `ssl` for the encoding DER."""

Identity: TypeAlias = tuple[bytes, bytes]
"""The subject and the public key of a CA, which its renewed certificates share."""


class Authorities:
    """The CAs of clients and of front proxies, as the files have them now."""

    def __init__(self, certificates: ServingCertificates) -> None:
        self._certificates = certificates
        self._clients: frozenset[Identity] = frozenset()
        self._proxies: frozenset[Identity] = frozenset()
        self._read()
        certificates.on_change.append(self._read)

    def _read(self) -> None:
        self._clients = _identities_in(self._certificates.client_ca)
        self._proxies = _identities_in(self._certificates.request_headers_ca)

    def classify(self, chain: frozenset[Identity]) -> tuple[bool, bool]:
        """Return whether a verified chain contains a CA of clients, and whether one of front proxies."""
        return not chain.isdisjoint(self._clients), not chain.isdisjoint(self._proxies)


def verified_chain(tls: SSLObject) -> frozenset[Identity]:
    """Return the identities from the client's certificate to its CA, as the handshake verified them."""
    return frozenset(_identity(load_der_x509_certificate(certificate)) for certificate in _chain(tls))


def _identities_in(authorities: bytes) -> frozenset[Identity]:
    return frozenset(map(_identity, load_pem_x509_certificates(authorities))) if authorities else frozenset()


def _identity(certificate: Certificate) -> Identity:
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return certificate.subject.public_bytes(), key


def _chain(tls: Any) -> Iterable[bytes]:
    """Return the certificates from the client's to its CA; before Python 3.13 the method is private."""
    if hasattr(tls, "get_verified_chain"):
        return [bytes(certificate) for certificate in tls.get_verified_chain()]
    return [certificate.public_bytes(_DER) for certificate in tls._sslobj.get_verified_chain() or ()]  # noqa: SLF001 - see above
