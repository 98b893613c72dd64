"""IP addresses as the system's resolver reads them, in one form: for checks of addresses that objects name.

The same address has many texts: an IPv4 address may be mapped into IPv6 (`::ffff:127.0.0.1`, `::ffff:7f00:1`), and the
resolver of the C library takes numbers such as `2130706433`, `127.1` and `0x7f.0.0.1` for IPv4 addresses. Python's own
properties of mapped addresses differ between its versions.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

_BROADCAST: Final = IPv4Address("255.255.255.255")
_DNS_NUMBER: Final = 10
"""The number of the name server's address in the range of Services."""
_PART: Final = re.compile(r"0[xX](?P<hexadecimal>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_MAX_TEXT: Final = 64
"""Characters; a longer text is a name."""


def parse(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a connection to a host would use without a name server; None if the host is a name.

    An IPv4 address in IPv6 is an IPv4 address, and a zone is ignored.
    """
    text = text.strip("[]").partition("%")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return _parse_numbers(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _parse_numbers(text: str) -> IPv4Address | None:
    """Return the address of up to four decimal, octal or hexadecimal numbers, of which the last fills the rest (inet_aton)."""
    if len(text) > _MAX_TEXT:
        return None
    parts = [_PART.fullmatch(part) for part in text.rstrip(".").split(".")]
    if len(parts) > 4:
        return None
    value = 0
    for index, part in enumerate(parts):
        if part is None:
            return None
        number, is_last = _number(part), index == len(parts) - 1
        if number >= (1 << 8 * (4 - index) if is_last else 1 << 8):
            return None
        value |= number if is_last else number << 8 * (3 - index)
    return IPv4Address(value)


def _number(part: re.Match[str]) -> int:
    if part["hexadecimal"]:
        return int(part["hexadecimal"], 16)
    return int(part["octal"], 8) if part["octal"] else int(part["decimal"])


def is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Return what net.IP.IsGlobalUnicast returns: whether it is none of this machine, of a link, or of many machines."""
    return not (
        address.is_loopback
        or address.is_unspecified
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


def is_link_local(host: str) -> bool:
    """Return whether a host is a link-local address; a name is not."""
    address = parse(host)
    return address is not None and address.is_link_local


def dns_address(service_network: str) -> str:
    """Return the address of the Service kube-dns; raise `ValueError` for a network that is too small."""
    network = ip_network(service_network.partition(",")[0])
    if network.num_addresses <= _DNS_NUMBER:
        raise ValueError(f"{network} has no room for the address of kube-dns")
    return str(network[_DNS_NUMBER])
