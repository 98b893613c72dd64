"""How OpenSSL 3 shows a certificate. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

_COLUMNS: Final = 18
_KEY_COLUMNS: Final = 15
"""The bytes in a line of a signature, and of a public key."""
_NAMES: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "serialNumber": "serialNumber",
}
_SIGNATURES: Final = {
    "ecdsa-with-SHA256": "ecdsa-with-SHA256",
    "ecdsa-with-SHA384": "ecdsa-with-SHA384",
    "sha256WithRSAEncryption": "sha256WithRSAEncryption",
}
_CURVES: Final = {"secp256r1": ("prime256v1", "P-256"), "secp384r1": ("secp384r1", "P-384")}
_USAGES: Final = (
    ("digital_signature", "Digital Signature"),
    ("content_commitment", "Non Repudiation"),
    ("key_encipherment", "Key Encipherment"),
    ("data_encipherment", "Data Encipherment"),
    ("key_agreement", "Key Agreement"),
    ("key_cert_sign", "Certificate Sign"),
    ("crl_sign", "CRL Sign"),
)
_PURPOSES: Final = {
    "serverAuth": "TLS Web Server Authentication",
    "clientAuth": "TLS Web Client Authentication",
}


def load_certificate(data: bytes) -> "x509.Certificate | None":
    """Return the first certificate in PEM; None if there is none."""
    from cryptography import x509  # noqa: PLC0415 - for few

    try:
        return x509.load_pem_x509_certificate(data)
    except ValueError:
        return None


def time_text(time: datetime) -> str:
    return f"{time:%b} {time.day:2} {time:%H:%M:%S %Y} GMT"


def name_text(name: "x509.Name") -> str:
    return ", ".join(f"{label} = {value}" for label, value in _attributes(name))


def _attributes(name: "x509.Name") -> "Iterator[tuple[str, str]]":
    for each in name:
        label = _NAMES.get(each.oid._name, each.oid.dotted_string)  # noqa: SLF001 - cryptography shows it nowhere else
        yield label, each.value if isinstance(each.value, str) else each.value.hex()


def alternative_names(certificate: "x509.Certificate") -> str:
    """Return all names for which a certificate is valid, besides its subject."""
    from cryptography import x509  # noqa: PLC0415 - for few

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    return ", ".join(map(_alternative_name, names))


def _alternative_name(name: "x509.GeneralName") -> str:
    from cryptography import x509  # noqa: PLC0415 - for few

    match name:
        case x509.DNSName(value=value):
            return f"DNS:{value}"
        case x509.IPAddress(value=value):
            return f"IP Address:{_address(str(value))}"
        case x509.RFC822Name(value=value):
            return f"email:{value}"
        case x509.UniformResourceIdentifier(value=value):
            return f"URI:{value}"
        case x509.DirectoryName(value=value):
            return f"DirName:{''.join(f'/{label}={text}' for label, text in _attributes(value))}"
        case x509.RegisteredID(value=value):
            return f"Registered ID:{value.dotted_string}"
        case _:
            return "othername:<unsupported>"


def _address(text: str) -> str:
    """Return an address as OpenSSL shows it: that of IPv6 without zeros, and without ::."""
    from ipaddress import IPv6Address, ip_address  # noqa: PLC0415 - for few

    address = ip_address(text)
    if not isinstance(address, IPv6Address):
        return text
    return ":".join(f"{int(group, 16):X}" for group in address.exploded.split(":"))


def certificate_text(certificate: "x509.Certificate") -> str:
    """Return what `openssl x509 -text` prints."""
    return "".join(f"{line}\n" for line in _lines(certificate))


def _lines(certificate: "x509.Certificate") -> Iterator[str]:
    algorithm = certificate.signature_algorithm_oid._name  # noqa: SLF001 - as above
    yield "Certificate:"
    yield "    Data:"
    yield "        Version: 3 (0x2)"
    yield "        Serial Number:"
    yield f"            {_hex(_integer(certificate.serial_number).removeprefix(bytes(1)))}"
    yield f"        Signature Algorithm: {_SIGNATURES.get(algorithm, algorithm)}"
    yield f"        Issuer: {name_text(certificate.issuer)}"
    yield "        Validity"
    yield f"            Not Before: {time_text(certificate.not_valid_before_utc)}"
    yield f"            Not After : {time_text(certificate.not_valid_after_utc)}"
    yield f"        Subject: {name_text(certificate.subject)}"
    yield "        Subject Public Key Info:"
    yield from _key_lines(certificate)
    yield "        X509v3 extensions:"
    yield from _extension_lines(certificate)
    yield f"    Signature Algorithm: {_SIGNATURES.get(algorithm, algorithm)}"
    yield "    Signature Value:"
    yield from _columns(certificate.signature, _COLUMNS, "        ")


def _key_lines(certificate: "x509.Certificate") -> Iterator[str]:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415 - for few
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - for few
        Encoding,
        PublicFormat,
    )

    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        number = key.public_numbers()
        yield "            Public Key Algorithm: rsaEncryption"
        yield f"                Public-Key: ({key.key_size} bit)"
        yield "                Modulus:"
        yield from _columns(_integer(number.n), _KEY_COLUMNS, "                    ")
        yield f"                Exponent: {number.e} ({number.e:#x})"
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return
    name, curve = _CURVES.get(key.curve.name, (key.curve.name, ""))
    yield "            Public Key Algorithm: id-ecPublicKey"
    yield f"                Public-Key: ({key.curve.key_size} bit)"
    yield "                pub:"
    point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    yield from _columns(point, _KEY_COLUMNS, "                    ")
    yield f"                ASN1 OID: {name}"
    if curve:
        yield f"                NIST CURVE: {curve}"


def _extension_lines(certificate: "x509.Certificate") -> Iterator[str]:
    from cryptography import x509  # noqa: PLC0415 - for few

    for extension in certificate.extensions:
        value, title, text = extension.value, "", ""
        match value:
            case x509.KeyUsage():
                title = "X509v3 Key Usage"
                text = ", ".join(word for field, word in _USAGES if getattr(value, field))
            case x509.ExtendedKeyUsage():
                title = "X509v3 Extended Key Usage"
                text = ", ".join(_PURPOSES.get(each._name, each.dotted_string) for each in value)  # noqa: SLF001 - as above
            case x509.BasicConstraints():
                title, text = "X509v3 Basic Constraints", f"CA:{str(value.ca).upper()}"
            case x509.SubjectKeyIdentifier():
                title, text = "X509v3 Subject Key Identifier", _hex(value.digest).upper()
            case x509.AuthorityKeyIdentifier():
                title = "X509v3 Authority Key Identifier"
                text = _hex(value.key_identifier or b"").upper()
            case x509.SubjectAlternativeName():
                title, text = "X509v3 Subject Alternative Name", alternative_names(certificate)
            case _:
                continue
        yield f"            {title}: {'critical' if extension.critical else ''}"
        yield f"                {text}"


def _integer(number: int) -> bytes:
    """Return a number in the bytes of DER, whose first bit is the sign."""
    return number.to_bytes(number.bit_length() // 8 + 1)


def _hex(data: bytes) -> str:
    return ":".join(f"{byte:02x}" for byte in data)


def _columns(data: bytes, width: int, indent: str) -> Iterator[str]:
    for begin in range(0, len(data), width):
        part = data[begin : begin + width]
        is_last = begin + width >= len(data)
        yield f"{indent}{_hex(part)}{'' if is_last else ':'}"
