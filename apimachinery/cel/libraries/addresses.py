"""IP addresses and networks: `ip('10.0.0.1')`, `cidr('10.0.0.0/8')`. Errors are those of Go's package net/netip."""

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError, Opaque

DECLARED: Final = declare(
    """
    ip string_to_ip (string) -> net.IP
    ip cidr_ip net.CIDR.() -> net.IP
    family ip_family net.IP.() -> int
    ip.isCanonical ip_is_canonical (string) -> bool
    isIP is_ip (string) -> bool
    isUnspecified ip_is_unspecified net.IP.() -> bool
    isLoopback ip_is_loopback net.IP.() -> bool
    isLinkLocalMulticast ip_is_link_local_multicast net.IP.() -> bool
    isLinkLocalUnicast ip_is_link_local_unicast net.IP.() -> bool
    isGlobalUnicast ip_is_global_unicast net.IP.() -> bool
    string ip_to_string (net.IP) -> string
    cidr string_to_cidr (string) -> net.CIDR
    containsIP cidr_contains_ip_string net.CIDR.(string) -> bool
    containsIP cidr_contains_ip_ip net.CIDR.(net.IP) -> bool
    containsCIDR cidr_contains_cidr_string net.CIDR.(string) -> bool
    containsCIDR cidr_contains_cidr net.CIDR.(net.CIDR) -> bool
    prefixLength cidr_prefix_length net.CIDR.() -> int
    masked cidr_masked net.CIDR.() -> net.CIDR
    isCIDR is_cidr (string) -> bool
    string cidr_to_string (net.CIDR) -> string
    """
)
Address = IPv4Address | IPv6Address


class IP(Opaque):
    __slots__ = ("address",)
    type_name = "net.IP"

    def __init__(self, address: Address) -> None:
        self.address = address

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, IP):
            raise CelError("no such overload")
        return self.address == other.address

    def __str__(self) -> str:
        return str(self.address)

    @property
    def size(self) -> int:
        return 4 if self.address.version == 4 else 16


class CIDR(Opaque):
    __slots__ = ("address", "length")
    type_name = "net.CIDR"

    def __init__(self, address: Address, length: int) -> None:
        self.address = address
        self.length = length

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, CIDR):
            raise CelError("no such overload")
        return (self.address, self.length) == (other.address, other.length)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    @property
    def size(self) -> int:
        return -(-self.length // 8)

    def mask(self) -> "CIDR":
        return CIDR(ip_network((self.address, self.length), strict=False).network_address, self.length)

    def contains(self, address: Address) -> bool:
        if address.version != self.address.version:
            return False
        return address in ip_network((self.address, self.length), strict=False)


def _problem(text: str, reason: str, remainder: str = "") -> CelError:
    place = f" (at {gotext.quote(remainder)})" if remainder else ""
    return CelError(f"ParseAddr({gotext.quote(text)}): {reason}{place}")


def _parse_address(text: str) -> tuple[Address, str]:
    """Return the address and its zone, or raise the error of Go's `netip.ParseAddr`."""
    for char in text:
        if char == ".":
            return IPv4Address(_octets(text, text)), ""
        if char == ":":
            return _parse_v6(text)
        if char == "%":
            raise _problem(text, "missing IPv6 address")
    raise _problem(text, "unable to parse IP")


def _octets(text: str, address_text: str) -> bytes:
    """Parse an IPv4 address in dotted decimal notation."""
    octets: list[int] = []
    value = digits = 0
    for i, char in enumerate(text):
        if "0" <= char <= "9":
            if digits == 1 and value == 0:
                raise _problem(address_text, "IPv4 field has octet with leading zero")
            value = value * 10 + int(char)
            digits += 1
            if value > 255:
                raise _problem(address_text, "IPv4 field has value >255")
        elif char == ".":
            if i in (0, len(text) - 1) or text[i - 1] == ".":
                raise _problem(address_text, "IPv4 field must have at least one digit", text[i:])
            if len(octets) == 3:
                raise _problem(address_text, "IPv4 address too long")
            octets.append(value)
            value = digits = 0
        else:
            raise _problem(address_text, "unexpected character", text[i:])
    if len(octets) < 3:
        raise _problem(address_text, "IPv4 address too short")
    return bytes([*octets, value])


def _parse_v6(address_text: str) -> tuple[IPv6Address, str]:
    text, percent, zone = address_text.partition("%")
    if percent and not zone:
        raise _problem(address_text, "zone must be a non-empty string")
    data = bytearray()
    ellipsis = -1
    if text.startswith("::"):
        ellipsis = 0
        text = text[2:]
        if not text:
            return IPv6Address(0), zone
    while len(data) < 16:
        digits = _group(text, address_text)
        after = text[digits : digits + 1]
        if after == ".":
            data += _parse_embedded_ipv4(text, address_text, len(data), ellipsis)
            text = ""
            break
        data += int(text[:digits], 16).to_bytes(2, "big")
        text = text[digits:]
        if not text:
            break
        text = _after_group(text, address_text)
        if text.startswith(":"):
            if ellipsis >= 0:
                raise _problem(address_text, "multiple :: in address", text)
            ellipsis = len(data)
            text = text[1:]
            if not text:
                break
    return _expand_ellipsis(data, ellipsis, text, address_text), zone


def _group(text: str, address_text: str) -> int:
    """Return the number of hexadecimal digits at the start of a group."""
    digits = 0
    while digits < len(text) and text[digits] in "0123456789abcdefABCDEF":
        digits += 1
        if digits > 4:
            raise _problem(address_text, "each group must have 4 or less digits", text)
    if not digits:
        raise _problem(address_text, "each colon-separated field must have at least one digit", text)
    return digits


def _after_group(text: str, address_text: str) -> str:
    if text[0] != ":":
        raise _problem(address_text, "unexpected character, want colon", text)
    if len(text) == 1:
        raise _problem(address_text, "colon must be followed by more characters", text)
    return text[1:]


def _parse_embedded_ipv4(text: str, address_text: str, length: int, ellipsis: int) -> bytes:
    """Parse an IPv4 address at the end of an IPv6 address."""
    if ellipsis < 0 and length != 12:
        raise _problem(
            address_text, "embedded IPv4 address must replace the final 2 fields of the address", text
        )
    if length + 4 > 16:
        raise _problem(
            address_text, "too many hex fields to fit an embedded IPv4 at the end of the address", text
        )
    return _octets(text, address_text)


def _expand_ellipsis(data: bytearray, ellipsis: int, rest: str, address_text: str) -> IPv6Address:
    if rest:
        raise _problem(address_text, "trailing garbage after address", rest)
    if len(data) < 16:
        if ellipsis < 0:
            raise _problem(address_text, "address string too short")
        data[ellipsis:ellipsis] = bytes(16 - len(data))
    elif ellipsis >= 0:
        raise _problem(address_text, "the :: must expand to at least one field of zeros")
    return IPv6Address(bytes(data))


def parse_ip(text: str) -> IP:
    try:
        address, zone = _parse_address(text)
    except CelError as error:
        quoted = gotext.quote(text)
        raise CelError(f"IP Address {quoted} parse error during conversion from string: {error}") from error
    if zone:
        raise CelError(f"IP address {gotext.quote(text)} with zone value is not allowed")
    _refuse_mapped(text, address)
    return IP(address)


def _refuse_mapped(text: str, address: Address) -> None:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {gotext.quote(text)} is not allowed")


_PARSE_ERROR_PREFIX = "network address parse error during conversion from string: "


def parse_cidr(text: str) -> CIDR:
    try:
        cidr = _parse_prefix(text)
    except CelError as error:
        raise CelError(
            f"{_PARSE_ERROR_PREFIX}{_PARSE_ERROR_PREFIX}netip.ParsePrefix({gotext.quote(text)}): {error}"
        ) from error
    try:
        _refuse_mapped(text, cidr.address)
    except CelError as error:
        raise CelError(f"{_PARSE_ERROR_PREFIX}{error}") from error
    return cidr


def _parse_prefix(text: str) -> CIDR:
    before, slash, length = text.rpartition("/")
    if not slash:
        raise CelError("no '/'")
    address, zone = _parse_address(before)
    if zone:
        raise CelError("IPv6 zones cannot be present in a prefix")
    if (len(length) > 1 and (length[0] < "1" or length[0] > "9")) or not re.fullmatch(r"[+-]?[0-9]+", length):
        raise CelError(f"bad bits after slash: {gotext.quote(length)}")
    if not 0 <= int(length) <= address.max_prefixlen:
        raise CelError("prefix length out of range")
    return CIDR(address, int(length))


def _is_valid(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return check


def _is_global_unicast(value: IP) -> bool:
    address = value.address
    is_broadcast = address == ip_address("255.255.255.255")
    return not (
        is_broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _is_link_local_multicast(value: IP) -> bool:
    address = value.address
    if isinstance(address, IPv4Address):
        return address in ip_network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        address = parse_ip(text).address
    except CelError:
        raise CelError("no such overload") from None
    return cidr.contains(address)


def _contains_cidr(outer: CIDR, inner: CIDR) -> bool:
    return outer.length <= inner.length and outer.contains(inner.address)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_ip": parse_ip,
    "cidr_ip": lambda cidr: IP(cidr.address),
    "ip_family": lambda ip: ip.address.version,
    "ip_is_canonical": lambda text: str(parse_ip(text)) == text,
    "is_ip": _is_valid(parse_ip),
    "ip_is_unspecified": lambda ip: ip.address.is_unspecified,
    "ip_is_loopback": lambda ip: ip.address.is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": lambda ip: ip.address.is_link_local,
    "ip_is_global_unicast": _is_global_unicast,
    "ip_to_string": str,
    "string_to_cidr": parse_cidr,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_ip_ip": lambda cidr, ip: cidr.contains(ip.address),
    "cidr_contains_cidr_string": lambda cidr, text: _contains_cidr(cidr, parse_cidr(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_prefix_length": lambda cidr: cidr.length,
    "cidr_masked": lambda cidr: cidr.mask(),
    "is_cidr": _is_valid(parse_cidr),
    "cidr_to_string": str,
}
