"""Keys, certificates and requests of pods' certificates."""

import base64
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ed25519.Ed25519PrivateKey.generate()
SIGNER = "example.com/signer"


def digest_of(key):
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()


def stub_request(key=KEY):
    """Return an empty certificate request in base64, as a kubelet sends it."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return base64.b64encode(
        builder.sign(key, digest_of(key)).public_bytes(serialization.Encoding.DER)
    ).decode()


def small_rsa_key():
    return rsa.generate_private_key(65537, 2048)


def certificate(begin, end, *, key=KEY, of=None, is_authority=False, basic=True, dns=(), mail=()):
    """Return a certificate in PEM, of the public key `of` or else of `key`, which signs it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(of or key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )
    if basic:
        builder = builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    names = [*map(x509.DNSName, dns), *map(x509.RFC822Name, mail)]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, digest_of(key)).public_bytes(serialization.Encoding.PEM).decode()


def authority(now):
    return certificate(now - timedelta(hours=1), now + timedelta(days=1), is_authority=True)


def spec(**changes):
    return {
        "signerName": SIGNER, "podName": "p", "podUID": "1", "serviceAccountName": "s", "serviceAccountUID": "2",
        "nodeName": "n", "nodeUID": "3", "maxExpirationSeconds": 86400, "stubPKCS10Request": stub_request(),
        **changes,
    }  # fmt: skip
