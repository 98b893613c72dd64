"""IP addresses in certificates, in Go's notation. An IPv4 address in 16 bytes is the same as one in four."""

from ipaddress import IPv6Address, ip_address
from typing import Final

_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The first bytes of an IPv4 address in 16 bytes."""


def packed_ipv4(address: bytes) -> bytes | None:
    """Return the four bytes of an IPv4 address; None for another address."""
    if len(address) == 4:
        return address
    return address[12:] if address.startswith(_MAPPED) else None


def parse_address(text: str) -> bytes | None:
    """Return the bytes of an address, the fewest for an IPv4 address; None if the text is no address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return None
    return packed_ipv4(address.packed) or address.packed


def address_text(address: bytes) -> str:
    return str(ip_address(packed_ipv4(address) or address))


def network_text(address: bytes, mask: bytes) -> str:
    if packed_ipv4(address) is not None:
        mask = mask[-4:]
    return f"{address_text(address)}/{int.from_bytes(mask).bit_count()}"
