"""The certificates that control-plane nodes show: those of the API server, and for each node one with its name and its address."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mockube.kubelet.installation import Installation

if TYPE_CHECKING:
    from cryptography import x509

API_SERVER: Final = "/etc/kubernetes/pki/apiserver.crt"
_LOCAL_NAME: Final = "localhost"
_SERIAL_BYTES: Final = 16


class NodeCertificates:
    def __init__(self, installation: Installation) -> None:
        self._paths = installation.certificates
        self._authority = installation.authority
        self._read: dict[str, str] = {}
        """The certificates that were read, by their paths on control-plane nodes."""
        self._issued: dict[tuple[str, str, Sequence[str]], str] = {}
        """The certificates of nodes, by that of the API server, the name and the addresses."""

    def of_node(self, name: str, addresses: Sequence[str]) -> Mapping[str, str]:
        """Return the certificates of a control-plane node by their paths there.

        `addresses` are its own one, and that of the endpoint of the control plane.
        """
        for place in self._paths.keys() - self._read.keys():
            with suppress(OSError, UnicodeDecodeError):
                self._read[place] = Path(self._paths[place]).read_text(encoding="ascii")
        served = self._read.get(API_SERVER)
        if not served or not all(addresses) or self._authority is None:
            return self._read
        key = served, name, tuple(addresses)
        if key not in self._issued:
            self._issued[key] = self._issue(served, name, addresses)
        return {**self._read, API_SERVER: self._issued[key]}

    def _issue(self, served: str, name: str, addresses: Sequence[str]) -> str:
        """Return the certificate of a node; that of the API server if another CA has signed it."""
        assert self._authority is not None
        certificate, key = self._authority
        try:
            pair = Path(certificate).read_bytes(), Path(key).read_bytes()
            return node_certificate(served.encode(), pair, name, addresses).decode()
        except (OSError, ValueError, TypeError):
            return served


def node_certificate(
    served: bytes, authority: tuple[bytes, bytes], name: str, addresses: Sequence[str]
) -> bytes:
    """Return the certificate of an API server as kubeadm issues it for a node, in PEM; raise `ValueError` if the CA is another one.

    It has the key of the one that is `served`, and the names that others than its machine know it by.
    """
    from cryptography import x509  # noqa: PLC0415 - for few
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - for few
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - for few
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415 - for few

    old, issuer = x509.load_pem_x509_certificate(served), x509.load_pem_x509_certificate(authority[0])
    if old.issuer != issuer.subject:
        raise ValueError("another CA has signed the certificate")
    key: Any = serialization.load_pem_private_key(authority[1], password=None)
    digest = hashlib.sha256(b"\0".join((served, name.encode(), *map(str.encode, addresses)))).digest()
    builder = x509.CertificateBuilder(
        issuer.subject, old.subject, old.public_key(), int.from_bytes(digest[:_SERIAL_BYTES]) >> 1 | 1
    )
    builder = builder.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    builder = builder.add_extension(_usage(), critical=True)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = builder.add_extension(usage, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    builder = builder.add_extension(_alternative_names(old, name, addresses), critical=False)
    is_elliptic = isinstance(key, ec.EllipticCurvePrivateKey)
    signed = builder.sign(key, hashes.SHA256(), ecdsa_deterministic=is_elliptic or None)
    return signed.public_bytes(serialization.Encoding.PEM)


def _usage() -> "x509.KeyUsage":
    from cryptography import x509  # noqa: PLC0415 - for few

    others = ("content_commitment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
    return x509.KeyUsage(digital_signature=True, key_encipherment=True, **dict.fromkeys(others, False))


def _alternative_names(
    old: "x509.Certificate", name: str, addresses: Sequence[str]
) -> "x509.SubjectAlternativeName":
    """Return the names of a certificate, with those of the node, and without those by which its machine alone knows it."""
    from cryptography import x509  # noqa: PLC0415 - for few

    present = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    names = [name, *present.get_values_for_type(x509.DNSName)]
    all_addresses = [
        *(each for each in present.get_values_for_type(x509.IPAddress) if not _is_local(each)),
        *map(ip_address, addresses),
    ]
    return x509.SubjectAlternativeName(
        [
            *(x509.DNSName(each) for each in dict.fromkeys(names) if each != _LOCAL_NAME),
            *map(x509.IPAddress, dict.fromkeys(all_addresses)),
        ]
    )


def _is_local(address: Any) -> bool:
    return bool(getattr(address, "is_loopback", False))
