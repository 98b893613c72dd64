"""TLS contexts of clients that verify servers as Go's package crypto/tls does.

OpenSSL verifies nothing. The check is a part of the handshake: it runs as soon as the server's certificates have arrived,
before anything is sent in reply, such as a client certificate. If it fails, so does the handshake, and no transport
gets to see a connection.
"""

import re
import ssl
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from . import keys
from .certificate import parse_certificate
from .der import CertificateError
from .pool import CertificatePool
from .verify import Options, verify

MAX_CHAINS: Final = 100
"""The number of valid chains that a context remembers."""
_DER: Final = 2
"""OpenSSL's number of the encoding, for the private method before Python 3.13."""
_KEY_TYPES: Final = (keys.RSA, keys.ECDSA, keys.ED25519)


class VerificationError(ssl.SSLCertVerificationError):
    """The handshake failed because of the server's certificates; the message is Go's."""

    def __str__(self) -> str:
        return str(self.args[0])


_ALERT: Final = re.compile(r"(?:SSLV3|TLSV1|TLSV13|SSL/TLS)_(?:ALERT_)?(\w+)")
"""OpenSSL's name of an alert that the other side has sent."""
_ALERT_TEXTS: Final = {
    "BAD_RECORD_MAC": "bad record MAC",
    "CERTIFICATE_EXPIRED": "expired certificate",
    "CERTIFICATE_REVOKED": "revoked certificate",
    "CERTIFICATE_UNKNOWN": "unknown certificate",
    "DECODE_ERROR": "error decoding message",
    "DECRYPT_ERROR": "error decrypting message",
    "INSUFFICIENT_SECURITY": "insufficient security level",
    "PROTOCOL_VERSION": "protocol version not supported",
    "UNKNOWN_CA": "unknown certificate authority",
    "UNKNOWN_PSK_IDENTITY": "unknown PSK identity",
    "USER_CANCELLED": "user canceled",
}
"""Go's texts of the alerts that have another name in OpenSSL."""


def alert_problem(error: ssl.SSLError) -> str:
    """Return Go's message for an alert of the other side; "" for another error."""
    match = _ALERT.fullmatch(error.reason or "")
    if not match:
        return ""
    return f"remote error: tls: {_ALERT_TEXTS.get(match[1]) or match[1].replace('_', ' ').lower()}"


class ServerVerifier:
    """Verifies the certificates of servers, and remembers the valid chains until one of their certificates expires."""

    def __init__(self, roots: CertificatePool, now: Callable[[], datetime]) -> None:
        self._roots = roots
        self._now = now
        self._valid: OrderedDict[tuple[str, tuple[bytes, ...]], tuple[datetime, datetime]] = OrderedDict()
        """By host and certificates: the time from which and the time until which all certificates are valid."""

    def check(self, chain: Sequence[bytes], host: str) -> None:
        """Raise VerificationError unless the certificates, from the server's own upwards, are trusted for the host."""
        if not host:
            raise VerificationError(
                "tls: either ServerName or InsecureSkipVerify must be specified in the tls.Config"
            )
        now, chain_key = self._now(), (host, tuple(chain))
        valid = self._valid.get(chain_key)
        if valid is None or not valid[0] <= now <= valid[1]:
            self._valid[chain_key] = _verify_server(chain, host, self._roots, now)
            if len(self._valid) > MAX_CHAINS:
                self._valid.popitem(last=False)
        self._valid.move_to_end(chain_key)


def _verify_server(
    chain: Sequence[bytes], host: str, roots: CertificatePool, now: datetime
) -> tuple[datetime, datetime]:
    """Return the times between which a server's certificates are valid, or raise VerificationError."""
    try:
        leaf, *others = map(parse_certificate, chain)
    except CertificateError as error:
        raise VerificationError(f"tls: failed to parse certificate from server: {error}") from error
    if max(certificate.key.rsa_bits for certificate in (leaf, *others)) > keys.MAX_RSA_BITS:
        raise VerificationError(
            f"tls: server sent certificate containing RSA key larger than {keys.MAX_RSA_BITS} bits"
        )
    try:
        chains = verify(leaf, Options(roots=roots, intermediates=CertificatePool(others), now=now, host=host))
    except CertificateError as error:
        raise VerificationError(f"tls: failed to verify certificate: {error}") from error
    if leaf.key.key_type not in _KEY_TYPES:
        type_name = keys.GO_TYPES.get(leaf.key.key_type, "<nil>")
        raise VerificationError(
            f"tls: server's certificate contains an unsupported type of public key: {type_name}"
        )
    return (
        max(certificate.not_before for certificate in chains[0]),
        min(certificate.not_after for certificate in chains[0]),
    )


class _VerifiedObject(ssl.SSLObject):
    """A TLS connection whose handshake includes the check of its context."""

    _is_verified = False

    def read(self, *arguments: Any) -> Any:
        self._require_verification()
        return super().read(*arguments)

    def write(self, data: Any) -> int:
        self._require_verification()
        return super().write(data)

    def _require_verification(self) -> None:
        if not self._is_verified:
            raise VerificationError("tls: the handshake is not complete")

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLWantReadError:
            self._verify(is_complete=False)
            raise
        self._verify(is_complete=True)

    def _verify(self, *, is_complete: bool) -> None:
        if self._is_verified:
            return
        chain = received_chain(self)
        if chain or is_complete:
            context = self.context
            assert isinstance(context, ClientContext)
            context.verifier.check(chain, self.server_hostname or "")
            self._is_verified = True


def received_chain(connection: Any) -> list[bytes]:
    """Return the certificates that the other side has sent; none before they have arrived. None is verified.

    `ssl` returns None for the certificate of a client that has sent none.
    """
    if hasattr(connection, "get_unverified_chain"):
        return [certificate for certificate in connection.get_unverified_chain() or () if certificate]
    received = connection._sslobj.get_unverified_chain()  # noqa: SLF001 - public since Python 3.13
    return [certificate.public_bytes(_DER) for certificate in received or () if certificate]


class ClientContext(ssl.SSLContext):
    """A TLS context whose handshakes fail unless `verifier` accepts the server's certificates."""

    verifier: ServerVerifier

    def wrap_socket(self, *_arguments: Any, **_options: Any) -> ssl.SSLSocket:
        """Refuse: a connection of a socket would not be verified."""
        raise NotImplementedError("connections of this context are made by wrap_bio")


def client_context(roots: CertificatePool | None, now: Callable[[], datetime]) -> ssl.SSLContext:
    """Return the context of a client that trusts `roots`; None: it verifies nothing."""
    context = (
        ClientContext(ssl.PROTOCOL_TLS_CLIENT)
        if roots is not None
        else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # a later handshake could present other certificates
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if isinstance(context, ClientContext) and roots is not None:
        context.verifier = ServerVerifier(roots, now)
        context.sslobject_class = _VerifiedObject
    return context
