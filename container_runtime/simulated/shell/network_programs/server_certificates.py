"""Whether a client trusts the certificate of a server, with the words of curl."""

from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509


def problem_of(chain: bytes, authorities: bytes, host: str) -> str:
    """Return why a client with some CA certificates does not trust a server of this name; "" if it does. All are PEM."""
    from cryptography import x509  # noqa: PLC0415 - for few

    served = x509.load_pem_x509_certificates(chain)
    try:
        trusted = x509.load_pem_x509_certificates(authorities) if authorities else []
    except ValueError:
        trusted = []
    if not any(_is_issued_by(each, authority) for each in served for authority in trusted):
        is_alone = len(served) == 1 and served[0].issuer == served[0].subject
        problem = "self-signed certificate" if is_alone else "unable to get local issuer certificate"
        return f"SSL certificate problem: {problem}"
    return _problem_of_name(served[0], host)


def _is_issued_by(certificate: "x509.Certificate", authority: "x509.Certificate") -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - for few

    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _problem_of_name(certificate: "x509.Certificate", host: str) -> str:
    from cryptography import x509  # noqa: PLC0415 - for few
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - for few

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        subject = next(
            (str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)), ""
        )
        if _matches(subject, host):
            return ""
        return f"SSL: certificate subject name '{subject}' does not match target host name '{host}'"
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    found = any(_matches(name, host) for name in names.get_values_for_type(x509.DNSName))
    if found or (_is_address(host) and host in addresses):
        return ""
    return f"SSL: no alternative certificate subject name matches target host name '{host}'"


def _matches(pattern: str, host: str) -> bool:
    pattern, host = pattern.lower(), host.lower()
    first, dot, rest = host.partition(".")
    return bool(host) and (pattern == host or bool(first and dot and pattern == f"*.{rest}"))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
