"""Certificates, byte by byte: with any version, signature, extension or defect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BEFORE, AFTER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
ATTRIBUTES = {
    "CN": "2.5.4.3",
    "O": "2.5.4.10",
    "OU": "2.5.4.11",
    "C": "2.5.4.6",
    "UID": "1.3.6.1.4.1.57683.2",
}
SERVER, CLIENT, ANY = "1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2", "2.5.29.37.0"
CODE_SIGNING, UNKNOWN_USAGE = "1.3.6.1.5.5.7.3.3", "1.2.3.4.5"
CERT_SIGN, DIGITAL_SIGNATURE = 5, 0


# --- DER


def tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def sequence(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def integer(value: int, tag: int = 0x02) -> bytes:
    return tlv(tag, value.to_bytes(value.bit_length() // 8 + 1, signed=True))


def identifier_content(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    encoded = b""
    for number in (first * 40 + second, *rest):
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        encoded += bytes(reversed(groups))
    return encoded


def identifier(dotted: str) -> bytes:
    return tlv(0x06, identifier_content(dotted))


def bit_string(data: bytes, padding_bits: int = 0) -> bytes:
    return tlv(0x03, bytes((padding_bits,)), data)


def name(text: str) -> bytes:
    """Encode a name like `O=one,CN=two`; "" is an empty name."""
    attributes = [part.split("=", 1) for part in text.split(",")] if text else []
    return sequence(
        *(
            tlv(0x31, sequence(identifier(ATTRIBUTES[kind]), tlv(0x0C, value.encode())))
            for kind, value in attributes
        )
    )


def time(value: datetime) -> bytes:
    if 1950 <= value.year < 2050:
        return tlv(0x17, value.strftime("%y%m%d%H%M%SZ").encode())
    return tlv(0x18, f"{value.year:04}{value.strftime('%m%d%H%M%SZ')}".encode())


# --- extensions


def extension(dotted: str, value: bytes, *, critical: bool = False) -> bytes:
    return sequence(identifier(dotted), tlv(0x01, b"\xff") if critical else b"", tlv(0x04, value))


def basic_constraints(*, ca: bool, path: int | None = None) -> bytes:
    fields = sequence(tlv(0x01, b"\xff") if ca else b"", b"" if path is None else integer(path))
    return extension("2.5.29.19", fields, critical=True)


def key_usage(*bits: int) -> bytes:
    value = sum(0x8000 >> bit for bit in bits).to_bytes(2)
    length = max(bits, default=0)
    used = value[: length // 8 + 1]
    return extension("2.5.29.15", bit_string(used, 7 - length % 8), critical=True)


def general_names(
    dns: Sequence[str] = (), ips: Sequence[str] = (), emails: Sequence[str] = (), uris: Sequence[str] = ()
) -> bytes:
    return b"".join(
        (
            *(tlv(0x81, one.encode("latin-1")) for one in emails),
            *(tlv(0x82, one.encode("latin-1")) for one in dns),
            *(tlv(0x86, one.encode("latin-1")) for one in uris),
            *(tlv(0x87, ip_address(one).packed) for one in ips),
        )
    )


def subtrees(tag: int, names: Sequence[bytes]) -> bytes:
    return tlv(tag, *(sequence(one) for one in names)) if names else b""


def dns_subtree(text: str) -> bytes:
    return tlv(0x82, text.encode())


def email_subtree(text: str) -> bytes:
    return tlv(0x81, text.encode())


def uri_subtree(text: str) -> bytes:
    return tlv(0x86, text.encode())


def ip_subtree(address: str, bits: int) -> bytes:
    packed = ip_address(address).packed
    size = len(packed) * 8
    return tlv(0x87, packed, ((1 << size) - (1 << size - bits)).to_bytes(len(packed)))


def name_constraints(
    permitted: Sequence[bytes] = (), excluded: Sequence[bytes] = (), *, critical: bool = True
) -> bytes:
    value = sequence(subtrees(0xA0, permitted), subtrees(0xA1, excluded))
    return extension("2.5.29.30", value, critical=critical)


def policies(*dotted: str) -> bytes:
    return extension("2.5.29.32", sequence(*(sequence(identifier(one)) for one in dotted)))


def policy_mappings(*pairs: tuple[str, str]) -> bytes:
    return extension("2.5.29.33", sequence(*(sequence(identifier(a), identifier(b)) for a, b in pairs)))


def policy_constraints(explicit: int | None = None, mapping: int | None = None) -> bytes:
    fields = (
        b"" if value is None else integer(value, 0x80 | tag) for tag, value in ((0, explicit), (1, mapping))
    )
    return extension("2.5.29.36", sequence(*fields), critical=True)


def inhibit_any_policy(value: int) -> bytes:
    return extension("2.5.29.54", integer(value), critical=True)


# --- keys and signatures


@cache
def key(kind: str) -> Any:
    """Return a private key; the text before the first `-` is its type, and the same text is always the same key."""
    family = kind.partition("-")[0]
    curves = {
        "p224": ec.SECP224R1,
        "p256": ec.SECP256R1,
        "p384": ec.SECP384R1,
        "p521": ec.SECP521R1,
        "k256": ec.SECP256K1,
    }
    if family in curves:
        return ec.generate_private_key(curves[family]())
    if family == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if family == "dsa":
        return dsa.generate_private_key(2048)
    return rsa.generate_private_key(65537, int(family.removeprefix("rsa")))


def public(private: Any) -> bytes:
    encoded: bytes = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


def rsa_public(modulus: int, exponent: int = 65537) -> bytes:
    algorithm = sequence(identifier("1.2.840.113549.1.1.1"), tlv(0x05))
    return sequence(algorithm, bit_string(sequence(integer(modulus), integer(exponent))))


_NULL = tlv(0x05)
_RSA_OIDS = {"sha256": "11", "sha384": "12", "sha512": "13", "sha1": "5", "md5": "4"}
_ECDSA_OIDS = {"sha256": "3.2", "sha384": "3.3", "sha512": "3.4", "sha1": "1"}
_HASHES = {
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
    "sha1": hashes.SHA1(),
    "md5": hashes.MD5(),
}
_HASH_OIDS = {
    "sha256": "2.16.840.1.101.3.4.2.1",
    "sha384": "2.16.840.1.101.3.4.2.2",
    "sha512": "2.16.840.1.101.3.4.2.3",
}


def pss_parameters(digest: str, mask: str, salt: int) -> bytes:
    hash_, mask_hash = (sequence(identifier(_HASH_OIDS[one]), _NULL) for one in (digest, mask))
    return sequence(
        tlv(0xA0, hash_),
        tlv(0xA1, sequence(identifier("1.2.840.113549.1.1.8"), mask_hash)),
        tlv(0xA2, integer(salt)),
    )


def signature_scheme(private: Any, digest: str) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return the encoded algorithm, and the function that signs. `digest` may be `pss-sha256`."""
    scheme, _, hash_name = digest.rpartition("-")
    algorithm = _HASHES[hash_name]
    if isinstance(private, ed25519.Ed25519PrivateKey):
        return sequence(identifier("1.3.101.112")), private.sign
    if isinstance(private, dsa.DSAPrivateKey):
        return sequence(identifier("2.16.840.1.101.3.4.3.2")), lambda data: private.sign(data, algorithm)
    if isinstance(private, ec.EllipticCurvePrivateKey):
        encoded = sequence(identifier(f"1.2.840.10045.4.{_ECDSA_OIDS[hash_name]}"))
        return encoded, lambda data: private.sign(data, ec.ECDSA(algorithm))
    if scheme == "pss":
        parameters = pss_parameters(hash_name, hash_name, algorithm.digest_size)
        pss = padding.PSS(padding.MGF1(algorithm), algorithm.digest_size)
        encoded = sequence(identifier("1.2.840.113549.1.1.10"), parameters)
        return encoded, lambda data: private.sign(data, pss, algorithm)
    encoded = sequence(identifier(f"1.2.840.113549.1.1.{_RSA_OIDS[hash_name]}"), _NULL)
    return encoded, lambda data: private.sign(data, padding.PKCS1v15(), algorithm)


# --- certificates


@dataclass(kw_only=True)
class Certificate:
    """The fields of a certificate; those that are not set make an ordinary one that signed itself."""

    subject: str = "CN=root"
    issuer: str | None = None
    key: Any = field(default_factory=lambda: key("p256-root"))
    signer: Any = None
    digest: str = "sha256"
    version: int = 3
    serial: int = 1
    not_before: bytes | datetime = BEFORE
    not_after: bytes | datetime = AFTER
    extensions: Sequence[bytes] = ()
    dns: Sequence[str] = ()
    ips: Sequence[str] = ()
    emails: Sequence[str] = ()
    uris: Sequence[str] = ()
    names_are_critical: bool = False
    usages: Sequence[str] = ()
    key_id: bytes = b""
    issuer_key_id: bytes = b""
    ca: bool | None = None
    path: int | None = None
    public_key: bytes = b""
    outer_algorithm: bytes = b""
    signature: bytes = b""
    raw_subject: bytes = b""

    def _extensions(self) -> list[bytes]:
        found = list(self.extensions)
        if self.ca is not None:
            found.append(basic_constraints(ca=self.ca, path=self.path))
        names = general_names(self.dns, self.ips, self.emails, self.uris)
        if names:
            found.append(extension("2.5.29.17", sequence(names), critical=self.names_are_critical))
        if self.usages:
            found.append(extension("2.5.29.37", sequence(*map(identifier, self.usages))))
        if self.key_id:
            found.append(extension("2.5.29.14", tlv(0x04, self.key_id)))
        if self.issuer_key_id:
            found.append(extension("2.5.29.35", sequence(tlv(0x80, self.issuer_key_id))))
        return found

    def der(self) -> bytes:
        algorithm, sign = signature_scheme(self.signer or self.key, self.digest)
        extensions = self._extensions()
        times = (one if isinstance(one, bytes) else time(one) for one in (self.not_before, self.not_after))
        signed = sequence(
            tlv(0xA0, integer(self.version - 1)) if self.version > 1 else b"",
            integer(self.serial),
            algorithm,
            name(self.subject if self.issuer is None else self.issuer),
            sequence(*times),
            self.raw_subject or name(self.subject),
            self.public_key or public(self.key),
            tlv(0xA3, sequence(*extensions)) if extensions else b"",
        )
        return sequence(signed, self.outer_algorithm or algorithm, bit_string(self.signature or sign(signed)))
