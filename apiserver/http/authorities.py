"""Finds the CA of a client's certificate: the client CA or the request header CA."""

from collections.abc import Iterable
from ssl import SSLObject
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificates

_DER: Final = 2
"""`ssl`'s number for a certificate's bytes."""


class Authorities:
    """Those of clients and those of front proxies, in PEM."""

    def __init__(self, clients: bytes, proxies: bytes) -> None:
        self._clients = _encode_certificates(clients)
        self._proxies = _encode_certificates(proxies)

    def classify(self, tls: SSLObject) -> tuple[bool, bool]:
        """Return whether the certificate is a client's, and whether it is a proxy's; it was verified before."""
        chain = frozenset(_verified_chain(tls))
        return bool(chain & self._clients), bool(chain & self._proxies)


def _encode_certificates(authorities: bytes) -> frozenset[bytes]:
    return frozenset(one.public_bytes(Encoding.DER) for one in load_pem_x509_certificates(authorities))


def _verified_chain(tls: Any) -> Iterable[bytes]:
    """Return the certificates from the client's to its authority; before Python 3.13 they are found within."""
    if hasattr(tls, "get_verified_chain"):
        return [bytes(one) for one in tls.get_verified_chain()]
    return [one.public_bytes(_DER) for one in tls._sslobj.get_verified_chain() or ()]  # noqa: SLF001 - see above
