"""Hosts in HTTP: parsing of a Host header, and hosts with ports in URLs. Independent of servers."""

from ipaddress import ip_address
from typing import Final

from . import ip_addresses

LOCAL: Final = "localhost"


def host_name(header: str) -> str | None:
    """Return the name or address of a Host header in lower case, without port, zone and last dot; None if malformed."""
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        name = name.partition("%")[0]
        if not bracket or not is_address(name):
            return None
    elif header.count(":") > 1:
        name, port = header, ""
    else:
        name, colon, rest = header.partition(":")
        port = colon + rest
    if port and not (port[0] == ":" and (port == ":" or port[1:].isdecimal())):
        return None
    name = name.lower()
    return name.removesuffix(".")


def url_host(host: str) -> str:
    """Return a name or an address as URLs have it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def join_host_port(host: str, port: int | str) -> str:
    """Join a name or an address with a port (net.JoinHostPort)."""
    return f"{url_host(host)}:{port}"


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    address = ip_addresses.parse(name) if is_address(name) else None
    return address is not None and address.is_loopback


def is_local_or_address(header: str) -> bool:
    """Return whether a Host header is empty, localhost or an IP address: names that no name server resolves."""
    name = host_name(header)
    return name is not None and (name in ("", LOCAL) or is_address(name))
