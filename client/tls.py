"""The TLS settings of a kubeconfig, for every kind of connection."""

import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import client_context
from mockube.component_base.clock import Clock, RealClock

from .kubeconfig import Access, KubeconfigError

REAL_CLOCK: Final = RealClock()
_MAX_SHARED: Final = 16


class Trust(NamedTuple):
    """Which servers a client trusts."""

    authority: bytes
    is_insecure: bool


def tls_context(access: Access, clock: Clock) -> ssl.SSLContext:
    """Return the TLS context of a client; `clock` is that of sockets.

    Clients without a certificate share it if they trust the same, as client-go shares its transports: to make one, and to
    verify a server for the first time, takes as long as many requests.
    """
    is_shared = clock is REAL_CLOCK and not access.certificate
    trust = Trust(authority=access.authority, is_insecure=access.insecure)
    try:
        ssl_context = _shared_context(trust) if is_shared else _new_context(trust, clock)
    except CertificateError as error:
        raise KubeconfigError(f"the CA of {access.server}: {error}") from error
    if access.certificate:
        _load_client_certificate(ssl_context, access)
    return ssl_context


def _new_context(trust: Trust, clock: Clock) -> ssl.SSLContext:
    ssl_context = client_context(None if trust.is_insecure else trusted_pool(trust.authority), clock.now)
    ssl_context.set_alpn_protocols(["http/1.1"])
    return ssl_context


@lru_cache(maxsize=_MAX_SHARED)
def _shared_context(trust: Trust) -> ssl.SSLContext:
    return _new_context(trust, REAL_CLOCK)


def _load_client_certificate(ssl_context: ssl.SSLContext, access: Access) -> None:
    """Load the client certificate from a private folder, because OpenSSL reads certificates from files only."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate.write_bytes(access.certificate)
        key.write_bytes(access.key)
        ssl_context.load_cert_chain(certificate, key)
