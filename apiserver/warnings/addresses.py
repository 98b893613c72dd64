"""Addresses and networks that are valid, and not written as everybody writes them."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Final

from apimachinery.gotext import quote
from apimachinery.paths import Path
from apiserver.allocation.addresses import Network
from apiserver.validation.addresses import Address, parse_sloppily

_MAPPED_PREFIX: Final = 96


def _plain(address: Address) -> Address:
    """An IPv4 address, even if it is written as one of IPv6."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def of_ip(value: str, path: Path) -> Iterator[str]:
    address = parse_sloppily(value)
    if address is None or str(address) == value:
        return
    plain = _plain(address)
    if isinstance(plain, IPv4Address):
        yield f"{path}: non-standard IP address {quote(value)} is invalid: use {quote(str(plain))}"
    else:
        yield f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(str(plain))})"


def of_ips(values: Iterable[str] | None, path: Path) -> Iterator[str]:
    for index, value in enumerate(values or ()):
        yield from of_ip(value, path.index(index))


def of_cidr(value: str, path: Path) -> Iterator[str]:
    text, _, length = value.partition("/")
    address = parse_sloppily(text)
    if address is None or not (length.isascii() and length.isdigit()):
        return
    network = ip_network((address, int(length)), strict=False)
    shown, found = _shown(network), False
    if network.network_address != address:
        single = f"{_plain(address)}/{network.max_prefixlen}"
        yield f"{path}: CIDR value {quote(value)} is ambiguous in this context (should be {quote(shown)} or {quote(single)}?)"
        found = True
    if _is_sloppy(address, text) or (length[0] == "0" and length != "0"):
        yield f"{path}: non-standard CIDR value {quote(value)} is invalid: use {quote(shown)}"
        found = True
    if not found and f"{address}/{length}" != value:
        yield f"{path}: IPv6 CIDR value {quote(value)} should be in RFC 5952 canonical format ({quote(shown)})"


def of_cidrs(values: Iterable[str] | None, path: Path) -> Iterator[str]:
    for index, value in enumerate(values or ()):
        yield from of_cidr(value, path.index(index))


def _is_sloppy(address: Address, text: str) -> bool:
    plain = _plain(address)
    return plain != address or (isinstance(plain, IPv4Address) and str(plain) != text)


def _shown(network: Network) -> str:
    """As Go shows it: a network of mapped addresses as one of IPv4."""
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_PREFIX:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return f"{mapped}/{network.prefixlen - _MAPPED_PREFIX}"
    return str(network)
