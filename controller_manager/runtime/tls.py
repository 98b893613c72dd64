"""TLS as a client: whom to trust and what to show. Knows no HTTP."""

import ssl
import tempfile
from pathlib import Path

from controller_manager.runtime.kubeconfig import Access


def context(access: Access) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=access.authority.decode() or None)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    if access.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if access.certificate:
        _show(made, access)
    return made


def _show(made: ssl.SSLContext, access: Access) -> None:
    """OpenSSL reads certificates from files alone, so they are written where nobody else can read them."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate.write_bytes(access.certificate)
        key.write_bytes(access.key)
        made.load_cert_chain(certificate, key)
