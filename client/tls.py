"""The TLS settings of a kubeconfig, for every kind of connection."""

import ssl
import tempfile
from pathlib import Path
from typing import Final

from mockube.apimachinery.x509.der import CertificateError
from mockube.apimachinery.x509.system_roots import trusted_pool
from mockube.apimachinery.x509.tls import client_context
from mockube.component_base.clock import Clock, RealClock

from .kubeconfig import Access, KubeconfigError

REAL_CLOCK: Final = RealClock()


def tls_context(access: Access, clock: Clock) -> ssl.SSLContext:
    """Return the TLS context of a client; `clock` is that of sockets."""
    try:
        roots = None if access.insecure else trusted_pool(access.authority)
    except CertificateError as error:
        raise KubeconfigError(f"the CA of {access.server}: {error}") from error
    ssl_context = client_context(roots, clock.now)
    ssl_context.set_alpn_protocols(["http/1.1"])
    if access.certificate:
        _load_client_certificate(ssl_context, access)
    return ssl_context


def _load_client_certificate(ssl_context: ssl.SSLContext, access: Access) -> None:
    """Load the client certificate from a private folder, because OpenSSL reads certificates from files only."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate.write_bytes(access.certificate)
        key.write_bytes(access.key)
        ssl_context.load_cert_chain(certificate, key)
