"""IP addresses, networks and ports.

New values must be valid by strict rules since 1.36. An update may keep a sloppy value, so the checks take the values of the
old object. Upstream's parser accepts more than its validation, so that its errors can name what is wrong.
"""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.paths import Path

from .checks import one_of, port_number, report
from .validation_context import is_before

Network: TypeAlias = IPv4Network | IPv6Network


PROTOCOLS: Final = ("SCTP", "TCP", "UDP")

check_protocol: Final = one_of(*PROTOCOLS)

_check_name: Final = report(names.check_port_name)


def check_port(port: IntOrString, path: Path) -> Iterable[FieldError]:
    """Check a port number, or the name of a container port."""
    return port_number(port, path) if isinstance(port, int) else _check_name(port, path)


Address: TypeAlias = IPv4Address | IPv6Address

_ZERO: Final = re.compile(r"\b0\d")
_DOTTED: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+){3}$")

_NO_OLD_VALUES: Final[AbstractSet[str]] = frozenset()


def parse_sloppily(text: str) -> Address | None:
    """Return the address in a text, or None; the numbers of an IPv4 address may have leading zeros."""
    return _parse_usual(text) if len(text) <= _USUAL_LENGTH else _parse(text)


def _parse(text: str) -> Address | None:
    try:
        address = ip_address(_without_leading_zeros(text))
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id is not None else address


# The same addresses are parsed often. A longer text is no address, and must not fill the cache.
_USUAL_LENGTH: Final = 45
_parse_usual = lru_cache(maxsize=16384)(_parse)


def _without_leading_zeros(text: str) -> str:
    if not _ZERO.search(text):
        return text
    return _DOTTED.sub(
        lambda match: re.sub(r"\d+", lambda digits: digits[0].lstrip("0") or "0", match[0]), text
    )


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


_STRICT_SINCE: Final = "1.36"
"""The first minor whose gate StrictIPCIDRValidation is on."""


def check_ip(
    value: str, path: Path, valid_old_ips: AbstractSet[str] = _NO_OLD_VALUES
) -> Iterator[FieldError]:
    if value in valid_old_ips:
        return
    yield from _check_ip(value, path, is_strict=not is_before(_STRICT_SINCE))


def check_strict_ip(
    value: str, path: Path, valid_old_ips: AbstractSet[str] = _NO_OLD_VALUES
) -> Iterator[FieldError]:
    """Check an address by the rules of 1.36, in older minors, too."""
    if value not in valid_old_ips:
        yield from _check_ip(value, path, is_strict=True)


def _check_ip(value: str, path: Path, *, is_strict: bool) -> Iterator[FieldError]:
    address = parse_sloppily(value)
    if address is None:
        yield errors.invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif is_strict and _without_leading_zeros(value) != value:
        yield errors.invalid(path, value, "must not have leading 0s")
    elif is_strict and _is_mapped(address):
        yield errors.invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def check_canonical_ip(value: str, path: Path) -> Iterator[FieldError]:
    """Check an address of a field that never allowed another form than the canonical one."""
    field_errors = [*check_strict_ip(value, path)]
    yield from field_errors
    if not field_errors and value != (canonical_text := str(parse_sloppily(value))):
        yield errors.invalid(path, value, f'must be in canonical form ("{canonical_text}")')


def check_cidr(
    value: str, path: Path, valid_old_cidrs: AbstractSet[str] = _NO_OLD_VALUES
) -> Iterator[FieldError]:
    if value in valid_old_cidrs:
        return
    problem = _cidr_problem(value, is_strict=not is_before(_STRICT_SINCE))
    if problem:
        yield errors.invalid(path, value, problem)


def check_strict_cidr(value: str, path: Path) -> Iterator[FieldError]:
    """Check a CIDR by the rules of 1.36, in older minors, too."""
    problem = _cidr_problem(value, is_strict=True)
    if problem:
        yield errors.invalid(path, value, problem)


def _cidr_problem(value: str, *, is_strict: bool) -> str:
    text, slash, length = value.partition("/")
    address = parse_sloppily(text)
    if address is None or not (
        slash and re.fullmatch("0*[0-9]{1,3}", length) and int(length[-3:]) <= address.max_prefixlen
    ):
        return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    if not is_strict:
        return ""
    if _without_leading_zeros(text) != text or (length[0] == "0" and length != "0"):
        return "must not have leading 0s in IP or prefix length"
    if _is_mapped(address):
        return "must not have an IPv4-mapped IPv6 address"
    if ip_network((address, int(length)), strict=False).network_address != address:
        return "must not have bits set beyond the prefix length"
    return ""


def cidr_family(value: str) -> int:
    """Return the version of a CIDR's first address, whose numbers may have leading zeros; 0 for an invalid one."""
    if _cidr_problem(value, is_strict=False):
        return 0
    text, _, length = value.partition("/")
    network = ip_network((str(parse_sloppily(text)), int(length)), strict=False)
    return 4 if _is_mapped(network.network_address) else network.version


_LINK_LOCAL_MULTICAST: Final = (ip_network("224.0.0.0/24"), IPv6Network("ff02::/16"))


def check_endpoint_ip(value: str, path: Path) -> Iterator[FieldError]:
    """Check the address of an endpoint, to which traffic may be sent."""
    address = parse_sloppily(value)
    if address is None:
        yield errors.invalid(path, value, "must be a valid IP address")
        return
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_unspecified:
        yield errors.invalid(path, value, f"may not be unspecified ({value})")
    if address.is_loopback:
        yield errors.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield errors.invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if any(address in network for network in _LINK_LOCAL_MULTICAST):
        problem = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield errors.invalid(path, value, problem)


def is_ipv6(text: str) -> bool:
    address = parse_sloppily(text)
    return isinstance(address, IPv6Address) and address.ipv4_mapped is None


def is_dual_stack(texts: Iterable[str]) -> bool:
    """Return whether the addresses are of both families."""
    return len({is_ipv6(text) for text in texts}) > 1
