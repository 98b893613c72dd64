"""The certificates of Ingresses and Gateways: of the Secrets that they name, or a fake one, as ingress-nginx has."""

import base64
import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from mockube.apimachinery.randomness import Random
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.serving_certificates import self_signed_pair, tls_context_of_pair

FAKE_NAME: Final = "Kubernetes Ingress Controller Fake Certificate"


class Certificate(NamedTuple):
    """The certificate of a Secret: its TLS, and the names that it is for; or what is wrong with it."""

    context: ssl.SSLContext | None
    names: frozenset[str]
    problem: str = ""

    def is_for(self, host: str) -> bool:
        host = host.lower()
        return host in self.names or f"*.{host.partition('.')[2]}" in self.names


def certificate_of(secret: ReadOnlyTree | None) -> Certificate:
    """Read the certificate and the key of a Secret."""
    if secret is None:
        return Certificate(None, frozenset(), "does not exist")
    data = secret.get("data") or {}
    if not data.get("tls.crt") or not data.get("tls.key"):
        return Certificate(None, frozenset(), "has no tls.crt or no tls.key")
    try:
        chain, key = (base64.b64decode(data[name], validate=True) for name in ("tls.crt", "tls.key"))
        if b"ENCRYPTED" in key:  # OpenSSL would ask for the password at the terminal
            return Certificate(None, frozenset(), "has an encrypted key")
        names = _names(x509.load_pem_x509_certificates(chain)[0])
        return Certificate(tls_context_of_pair(chain, key), names)
    except (ValueError, IndexError, ssl.SSLError) as error:
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            return Certificate(None, frozenset(), "has a key that is not that of its certificate")
        return Certificate(None, frozenset(), f"is no certificate with its key: {error}")


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = extension.value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        names = [str(each.value) for each in common]
    return frozenset(name.lower() for name in names)


def server_context(
    choose: Callable[[str], ssl.SSLContext | None], now: datetime, random: Random
) -> ssl.SSLContext:
    """Return the TLS of a server that chooses the certificate by the name that a client sends; without one it has a fake one."""

    def select(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        chosen = choose(name or "")
        if chosen is not None:
            connection.context = chosen

    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Acme Co"),
            x509.NameAttribute(NameOID.COMMON_NAME, FAKE_NAME),
        ]
    )
    hosts = x509.SubjectAlternativeName([x509.DNSName("ingress.local")])
    context = tls_context_of_pair(*self_signed_pair(subject, hosts, now=now, random=random))
    setattr(context, "sni_callback", select)  # noqa: B010 - the standard library has no argument for it
    return context
