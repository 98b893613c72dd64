"""Netlink: its messages, and those that make the links, addresses and routes of a network namespace.

The holder of the namespaces imports this module as a script, so it imports nothing of mockube.
"""

import os
import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

NETLINK_ROUTE, NETLINK_NETFILTER = 0, 12
RTMGRP_LINK: Final = 1
REQUEST, ACK, EXCL, CREATE = 0x1, 0x4, 0x200, 0x400
NEW_LINK, DELETE_LINK = 16, 17
_SET_LINK, _NEW_ADDRESS, _NEW_ROUTE, _NEW_NEIGHBOUR, _NEW_RULE, _DELETE_RULE = 19, 20, 24, 28, 32, 33
_ERROR: Final = 2
_NESTED: Final = 0x8000
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_IFINFO: Final = struct.Struct("=BxHiII")
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 18, 28
_INFO_KIND, _INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_NO_DAD = 1, 2, 0x02
_RTA_DESTINATION, _RTA_OIF, _RTA_GATEWAY, _RTN_UNICAST, _RT_TABLE_MAIN, _RT_TABLE_LOCAL = 1, 4, 5, 1, 254, 255
_RTNH_ONLINK: Final = 4
_FRA_DESTINATION, _FRA_IIFNAME, _FRA_PRIORITY, _FRA_TABLE, _TO_TABLE = 1, 3, 6, 15, 1
_RULE: Final = struct.Struct("=BBBBBxxBI")
_TABLE_OF_GATEWAY: Final = 100
_NDA_ADDRESS, _NDA_LINK_ADDRESS, _NUD_PERMANENT = 1, 2, 0x80
_IFF_UP: Final = 1
RECEIVE: Final = 1 << 16


def attribute(kind: int, data: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(data)
    return _ATTRIBUTE.pack(length, kind) + data + bytes(-length % 4)


def nested(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(attributes))


def message(kind: int, body: bytes, *, flags: int = REQUEST | ACK, sequence: int = 0) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, sequence, 0) + body


def messages(data: bytes) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the type, the sequence number and the body of each message."""
    view, offset = memoryview(data), 0
    while offset + _HEADER.size <= len(view):
        length, kind, _, sequence, _ = _HEADER.unpack_from(view, offset)
        if length < _HEADER.size:
            return
        yield kind, sequence, view[offset + _HEADER.size : offset + length]
        offset += length + (-length % 4)


def attributes(view: memoryview) -> dict[int, memoryview]:
    """Return the attributes at the end of a message, by type."""
    found, offset = {}, 0
    while offset + _ATTRIBUTE.size <= len(view):
        length, kind = _ATTRIBUTE.unpack_from(view, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = view[offset + _ATTRIBUTE.size : offset + length]
        offset += length + (-length % 4)
    return found


def open_socket(protocol: int, groups: int = 0) -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    opened.bind((0, groups))
    return opened


def send(connection: socket.socket, *texts: bytes) -> None:
    """Send messages, and raise the first error; the kernel has answered when the call returns."""
    connection.send(b"".join(texts))
    failure = 0
    while True:
        try:
            data = connection.recv(RECEIVE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
        for kind, _, body in messages(data):
            if kind == _ERROR:
                failure = failure or -struct.unpack_from("=i", body)[0]
    if failure:
        raise OSError(failure, os.strerror(failure))


def new_veth(name: str, address: bytes, namespace: int, peer_name: str, peer_address: bytes) -> bytes:
    """Return the message for a pair of links, one of them in the namespace with a file descriptor."""
    peer = nested(
        _VETH_INFO_PEER,
        _IFINFO.pack(0, 0, 0, 0, 0)
        + attribute(_IFLA_IFNAME, peer_name.encode() + b"\0")
        + attribute(_IFLA_ADDRESS, peer_address)
        + attribute(_IFLA_NET_NS_FD, struct.pack("=I", namespace)),
    )
    body = (
        _IFINFO.pack(0, 0, 0, 0, 0)
        + attribute(_IFLA_IFNAME, name.encode() + b"\0")
        + attribute(_IFLA_ADDRESS, address)
        + nested(_IFLA_LINKINFO, attribute(_INFO_KIND, b"veth"), nested(_INFO_DATA, peer))
    )
    return message(NEW_LINK, body, flags=REQUEST | ACK | CREATE | EXCL)


def link_up(index: int) -> bytes:
    return message(_SET_LINK, _IFINFO.pack(0, 0, index, _IFF_UP, _IFF_UP))


def delete_link(index: int) -> bytes:
    return message(DELETE_LINK, _IFINFO.pack(0, 0, index, 0, 0))


def add_address(index: int, address: str) -> bytes:
    """Return the message that gives a link an address, without a network."""
    parsed = ip_address(address)
    body = struct.pack("=BBBBi", _family(address), parsed.max_prefixlen, _IFA_NO_DAD, 0, index)
    body += attribute(_IFA_LOCAL, parsed.packed) + attribute(_IFA_ADDRESS, parsed.packed)
    return message(_NEW_ADDRESS, body, flags=REQUEST | ACK | CREATE | EXCL)


def add_route(index: int, *, destination: str = "", gateway: str = "", table: int = _RT_TABLE_MAIN) -> bytes:
    """Return the message for a route to one address, or to all, over a link."""
    one = ip_address(destination or gateway)
    length = one.max_prefixlen if destination else 0
    flags = _RTNH_ONLINK if gateway else 0
    scope = 0 if gateway or one.version == 6 else 253
    body = struct.pack("=BBBBBBBBI", _family(str(one)), length, 0, 0, table, 4, scope, _RTN_UNICAST, flags)
    body += attribute(_RTA_OIF, struct.pack("=i", index))
    if destination:
        body += attribute(_RTA_DESTINATION, one.packed)
    if gateway:
        body += attribute(_RTA_GATEWAY, ip_address(gateway).packed)
    return message(_NEW_ROUTE, body, flags=REQUEST | ACK | CREATE | EXCL)


def add_route_before_own_addresses(index: int, destination: str, gateway: str) -> bytes:
    """Return the message for a route to a range that the kernel would count as this machine's own, such as one of loopback addresses."""
    address, _, length = destination.partition("/")
    body = struct.pack(
        "=BBBBBBBBI", _family(address), int(length), 0, 0, _RT_TABLE_LOCAL, 4, 0, _RTN_UNICAST, _RTNH_ONLINK
    )
    body += attribute(_RTA_OIF, struct.pack("=i", index))
    body += attribute(_RTA_DESTINATION, ip_address(address).packed)
    body += attribute(_RTA_GATEWAY, ip_address(gateway).packed)
    return message(_NEW_ROUTE, body, flags=REQUEST | ACK | CREATE | EXCL)


def send_to_own_address_by_gateway(index: int, address: str, gateway: str) -> list[bytes]:
    """Return the messages by which what this machine sends to its own address goes to a gateway, and what comes from there arrives.

    The kernel looks for own addresses before all other rules, so this rule comes later then.
    """
    create = REQUEST | ACK | CREATE | EXCL
    by_gateway = attribute(_FRA_DESTINATION, ip_address(address).packed) + attribute(_FRA_IIFNAME, b"lo\0")
    length = ip_address(address).max_prefixlen
    return [
        add_route(index, gateway=gateway, table=_TABLE_OF_GATEWAY),
        _rule(_NEW_RULE, address, 1, _TABLE_OF_GATEWAY, by_gateway, length=length, flags=create),
        _rule(_NEW_RULE, address, 2, _RT_TABLE_LOCAL, flags=create),
        _rule(_DELETE_RULE, address, 0, _RT_TABLE_LOCAL, flags=REQUEST | ACK),
    ]


def _rule(  # noqa: PLR0913 - the fields of the message
    kind: int, address: str, priority: int, table: int, condition: bytes = b"", *, length: int = 0, flags: int
) -> bytes:
    body = _RULE.pack(_family(address), length, 0, 0, table, _TO_TABLE, 0) + condition
    body += attribute(_FRA_PRIORITY, struct.pack("=I", priority))
    return message(kind, body + attribute(_FRA_TABLE, struct.pack("=I", table)), flags=flags)


def add_neighbour(index: int, address: str, link_address: bytes) -> bytes:
    body = struct.pack("=BxxxiHBB", _family(address), index, _NUD_PERMANENT, 0, 0)
    body += attribute(_NDA_ADDRESS, ip_address(address).packed) + attribute(_NDA_LINK_ADDRESS, link_address)
    return message(_NEW_NEIGHBOUR, body, flags=REQUEST | ACK | CREATE)


def changed_links(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the type of each message about a link, and the link's index."""
    for kind, _, body in messages(data):
        if kind in (NEW_LINK, DELETE_LINK):
            yield kind, _IFINFO.unpack_from(body)[2]


def _family(address: str) -> int:
    return socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6
