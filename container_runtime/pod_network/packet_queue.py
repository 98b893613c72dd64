"""The queue of packets that begin a connection: its set-up, its packets, and the verdicts."""

import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from .netlink import RECEIVE, REQUEST, attribute, attributes, message, messages, send

_SUBSYSTEM: Final = 3 << 8
_PACKET, _VERDICT, _CONFIG = 0, 1, 2
_CFG_CMD, _CFG_PARAMS, _CFG_MAXLEN = 1, 2, 3
_BIND, _COPY_PACKET = 1, 2
_HEADER, _VERDICT_HEADER, _MARK, _INDEV, _PAYLOAD = 1, 2, 3, 5, 10
_COPIED: Final = 128
"""The bytes of a packet that are read: its headers."""
MAX_WAITING: Final = 4096
"""The packets that wait for a verdict; the kernel drops further ones, and their senders try again."""
_SOL_NETLINK, _NETLINK_NO_ENOBUFS = 270, 5
DROP, ACCEPT = 0, 1
ICMP: Final = "ICMP"
_PROTOCOLS: Final = {1: ICMP, 6: "TCP", 17: "UDP", 58: ICMP, 132: "SCTP"}
_IPV6_EXTENSIONS: Final = (0, 43, 60)
_WITH_PORTS: Final = ("TCP", "UDP", "SCTP")


class NewConnection(NamedTuple):
    """The first packet of a connection."""

    packet: int
    """The packet's number in the queue."""
    link: int
    """The index of the link over which it came."""
    protocol: str
    source: str
    source_port: int
    address: str
    port: int


def bind(connection: socket.socket) -> None:
    """Make the socket the reader of the queue."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    # An event loop would take a lost packet for the end of the socket, and libuv never poll it again.
    connection.setsockopt(_SOL_NETLINK, _NETLINK_NO_ENOBUFS, 1)
    parts = (
        attribute(_CFG_CMD, struct.pack("!BxH", _BIND, 0)),
        attribute(_CFG_PARAMS, struct.pack("!IB", _COPIED, _COPY_PACKET)),
        attribute(_CFG_MAXLEN, struct.pack("!I", MAX_WAITING)),
    )
    for part in parts:
        send(connection, message(_SUBSYSTEM | _CONFIG, _generic() + part))


def read(connection: socket.socket) -> Iterator[NewConnection | int]:
    """Yield the waiting packets: what is known of each, or only its number."""
    for kind, _, body in messages(connection.recv(RECEIVE)):
        if kind != _SUBSYSTEM | _PACKET:
            continue
        fields = attributes(body[4:])
        packet = int.from_bytes(fields[_HEADER][:4], "big")
        link = int.from_bytes(fields[_INDEV], "big") if _INDEV in fields else 0
        yield _parse(packet, link, bytes(fields.get(_PAYLOAD, b""))) or packet


def give_verdict(connection: socket.socket, packet: int, verdict: int, mark: int = 0) -> None:
    body = _generic() + attribute(_VERDICT_HEADER, struct.pack("!II", verdict, packet))
    if mark:
        body += attribute(_MARK, struct.pack("!I", mark))
    connection.send(message(_SUBSYSTEM | _VERDICT, body, flags=REQUEST))


def _generic() -> bytes:
    return struct.pack("!BBH", socket.AF_UNSPEC, 0, 0)


def _parse(packet: int, link: int, data: bytes) -> NewConnection | None:
    """Return what the headers of an IP packet say; None if it has no known protocol."""
    try:
        if data[0] >> 4 == 4:
            number, start = data[9], (data[0] & 15) * 4
            source, target = str(IPv4Address(data[12:16])), str(IPv4Address(data[16:20]))
        else:
            number, start = data[6], 40
            source, target = str(IPv6Address(data[8:24])), str(IPv6Address(data[24:40]))
            while number in _IPV6_EXTENSIONS:
                number, start = data[start], start + 8 + data[start + 1] * 8
        protocol = _PROTOCOLS[number]
        ports = struct.unpack_from("!HH", data, start) if protocol in _WITH_PORTS else (0, 0)
    except (IndexError, KeyError, ValueError, struct.error):
        return None
    return NewConnection(packet, link, protocol, source, ports[0], target, ports[1])
