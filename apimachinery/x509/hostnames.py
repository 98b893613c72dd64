"""Whether a certificate is valid for a host: by its alternative names only, never by its common name."""

import re
from typing import Final

from .addresses import address_text, packed_ipv4, parse_address
from .certificate import Certificate

_HOST: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_][A-Za-z0-9_-]*)*")
_PATTERN: Final = re.compile(rf"{_HOST.pattern}|\*(?:\.{_HOST.pattern})")
_MAX_LISTED: Final = 100
"""The number of names from which on a message contains only their number."""


def host_problem(certificate: Certificate, host: str) -> str:
    """Return why a certificate is not valid for a name or an address; "" if it is."""
    unbracketed = host[1:-1] if len(host) >= 3 and host[0] == "[" and host[-1] == "]" else host
    address = parse_address(unbracketed)
    if address is not None:
        addresses = (packed_ipv4(packed) or packed for packed in certificate.extensions.names.addresses)
        return "" if address in addresses else _mismatch(certificate, unbracketed, is_address=True)
    name = _lower(host)
    is_host, labels = _HOST.fullmatch(name.removesuffix(".")) is not None, _labels(name)
    for pattern in certificate.extensions.names.dns:
        if is_host and _PATTERN.fullmatch(pattern):
            if _matches(_lower(pattern), labels):
                return ""
        elif _lower(pattern) == name and name not in ("", "."):
            return ""
    return _mismatch(certificate, host, is_address=False)


def _labels(name: str) -> list[str]:
    return _lower(name).removesuffix(".").split(".")


def _lower(text: str) -> str:
    """Return a text with lower-case ASCII letters."""
    return text.lower() if text.isascii() else text.encode().lower().decode()


def _matches(pattern: str, labels: list[str]) -> bool:
    """Return whether labels match a pattern in lower case, whose first label may be a wildcard."""
    parts = pattern.split(".")
    if not pattern or len(parts) != len(labels):
        return False
    return parts[1:] == labels[1:] and parts[0] in ("*", labels[0])


def _mismatch(certificate: Certificate, host: str, *, is_address: bool) -> str:
    names, extensions = certificate.extensions.names, certificate.extensions
    if not extensions.has_names and _matches(_lower(certificate.subject_name.common_name), _labels(host)):
        return "x509: certificate relies on legacy Common Name field, use SANs instead"
    if is_address and not names.addresses:
        return f"x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
    valid, kind = (
        ([*map(address_text, names.addresses)], "IP SANs") if is_address else (list(names.dns), "names")
    )
    if len(valid) >= _MAX_LISTED:
        return f"x509: certificate is valid for {len(valid)} {kind}, but none matched {host}"
    if not any(valid) and len(valid) < 2:
        return f"x509: certificate is not valid for any names, but wanted to match {host}"
    return f"x509: certificate is valid for {', '.join(valid)}, not {host}"
