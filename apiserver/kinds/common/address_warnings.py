"""Warnings about IP addresses and CIDRs that are valid but not in canonical form."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Final

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree

from .addresses import Address, Network, parse_sloppily

_MAPPED_PREFIX: Final = 96


def _unmap_ipv4(address: Address) -> Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 address; return other addresses as they are."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def ip_warnings(value: str, path: Path) -> Iterator[str]:
    address = parse_sloppily(value)
    if address is None or str(address) == value:
        return
    plain = _unmap_ipv4(address)
    if isinstance(plain, IPv4Address):
        yield f"{path}: non-standard IP address {quote(value)} is invalid: use {quote(str(plain))}"
    else:
        yield f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(str(plain))})"


def ips_warnings(values: Iterable[str] | None, path: Path) -> Iterator[str]:
    for index, value in enumerate(values or ()):
        yield from ip_warnings(value, path.index(index))


def cidr_warnings(value: str, path: Path) -> Iterator[str]:
    text, _, length = value.partition("/")
    address = parse_sloppily(text)
    if address is None or not (length.isascii() and length.isdigit()):
        return
    network = ip_network((address, int(length)), strict=False)
    network_text, has_warned = _go_text(network), False
    if network.network_address != address:
        single = f"{_unmap_ipv4(address)}/{network.max_prefixlen}"
        yield f"{path}: CIDR value {quote(value)} is ambiguous in this context (should be {quote(network_text)} or {quote(single)}?)"
        has_warned = True
    if _is_sloppy(address, text) or (length[0] == "0" and length != "0"):
        yield f"{path}: non-standard CIDR value {quote(value)} is invalid: use {quote(network_text)}"
        has_warned = True
    if not has_warned and f"{address}/{length}" != value:
        yield f"{path}: IPv6 CIDR value {quote(value)} should be in RFC 5952 canonical format ({quote(network_text)})"


def cidrs_warnings(values: Iterable[str] | None, path: Path) -> Iterator[str]:
    for index, value in enumerate(values or ()):
        yield from cidr_warnings(value, path.index(index))


def _is_sloppy(address: Address, text: str) -> bool:
    plain = _unmap_ipv4(address)
    return plain != address or (isinstance(plain, IPv4Address) and str(plain) != text)


def _go_text(network: Network) -> str:
    """Format a network like Go, which formats one of IPv4-mapped addresses as IPv4."""
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_PREFIX:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return f"{mapped}/{network.prefixlen - _MAPPED_PREFIX}"
    return str(network)


def ingress_point_warnings(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[str]:
    """Yield the warnings about the ingress addresses of a load balancer."""
    path = ROOT.child("status", "loadBalancer", "ingress")
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for index, point in enumerate(points):
        if address := point.get("ip"):
            yield from ip_warnings(address, path.index(index))
