"""The rules of the cluster's namespace, as messages of nf_tables: new connections wait for a verdict, whose mark leads them to their target.

A packet that begins a connection goes to a queue. The verdict gives it a mark: `REFUSED` and `UNREACHABLE` reject it, any other one is the
number of a target in a map, to which the kernel translates the connection's destination. All further packets are the kernel's.
"""

import socket
import struct
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from .netlink import CREATE, REQUEST, attribute, message, nested, send

TABLE: Final = b"mockube\0"
TARGETS: Final = b"targets\0"
REFUSED, UNREACHABLE = 1, 2
FIRST_TARGET: Final = 16
HAIRPIN: Final = 1 << 30
"""Added to the mark of a connection whose target is its source: its source address becomes the gateway's."""
SEEN_FROM: Final = 1 << 31
"""Added to the mark of a connection of this process whose source address becomes that of the target with the number."""
TARGET_MASK: Final = HAIRPIN - 1
_SUBSYSTEM: Final = 10
_BATCH_BEGIN, _BATCH_END = 16, 17
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE, _NEW_SET, _NEW_ELEMENT, _DELETE_ELEMENT = 0, 3, 6, 9, 12, 14
_CONNTRACK, _DELETE_CONNECTION = 1, 2
_CTA_MARK, _CTA_MARK_MASK = 8, 21
_IPV4, _IPV6 = 2, 10
_PREROUTING, _POSTROUTING = 0, 4
_MAP: Final = 0x8
_VERDICT, _R1, _R2, _R1_SECOND_WORD = 0, 1, 2, 9
_META_MARK, _META_IIFNAME, _META_L4PROTO = 3, 6, 16
_CT_STATE, _CT_MARK = 0, 3
_NEW_STATE: Final = 8
_EQUAL, _UNEQUAL = 0, 1
_SOURCE_NAT, _TARGET_NAT = 0, 1
_ACCEPT: Final = 1
_PORT_UNREACHABLE: Final = {_IPV4: 3, _IPV6: 4}
_HOST_UNREACHABLE: Final = {_IPV4: 1, _IPV6: 3}
"""Codes of ICMP and ICMPv6."""
_CLOSED_PORT: Final = 1
ICMP, ICMPV6 = 1, 58
_ICMPV6_ECHO_REQUEST: Final = 128
_TRANSPORT_HEADER: Final = 2


def install(connection: socket.socket, gateways: Mapping[int, str], *, by_target: bool) -> None:
    """Add the rules; `gateways` has the gateway's address by version. `by_target`: the queue is a target of x_tables."""
    texts = []
    for version, gateway in gateways.items():
        texts += _family_rules(_IPV4 if version == 4 else _IPV6, gateway, by_target=by_target)
    _send_batch(connection, texts)
    for gateway in gateways.values():  # which resets a connection to a closed port
        add_target(connection, REFUSED, gateway, _CLOSED_PORT)


def add_target(connection: socket.socket, number: int, address: str, port: int) -> None:
    _change_target(connection, _NEW_ELEMENT, number, address, port)


def remove_target(connection: socket.socket, number: int, address: str, port: int) -> None:
    _change_target(connection, _DELETE_ELEMENT, number, address, port)


def forget_connections(connection: socket.socket, number: int) -> None:
    """Forget the connections to a target, so that the packets of their clients get another verdict."""
    body = struct.pack("!BBH", 0, 0, 0) + _number(_CTA_MARK, number) + _number(_CTA_MARK_MASK, 0xFFFFFFFF)
    send(connection, message(_CONNTRACK << 8 | _DELETE_CONNECTION, body))


def _change_target(connection: socket.socket, kind: int, number: int, address: str, port: int) -> None:
    parsed = ip_address(address)
    element = nested(
        1,
        _value(1, struct.pack("=I", number)),
        _value(2, parsed.packed + struct.pack("!Hxx", port)),
    )
    family = _IPV4 if parsed.version == 4 else _IPV6
    body = attribute(1, TABLE) + attribute(2, TARGETS) + nested(3, element)
    _send_batch(connection, [_message(kind, family, body)])


def _send_batch(connection: socket.socket, texts: list[bytes]) -> None:
    limits = [
        message(kind, struct.pack("!BBH", 0, 0, _SUBSYSTEM), flags=REQUEST)
        for kind in (_BATCH_BEGIN, _BATCH_END)
    ]
    send(connection, limits[0], *texts, limits[1])


def _family_rules(family: int, gateway: str, *, by_target: bool) -> list[bytes]:
    size = 4 if family == _IPV4 else 16
    target_map = (
        attribute(1, TABLE) + attribute(2, TARGETS) + _number(3, _MAP) + _number(4, 0) + _number(5, 4)
        + _number(6, 1) + _number(7, size + 4) + _number(10, 1)
    )  # fmt: skip
    icmp = ICMP if family == _IPV4 else ICMPV6
    texts = [
        _message(_NEW_TABLE, family, attribute(1, TABLE)),
        _message(_NEW_SET, family, target_map),
        _chain(family, b"new\0", b"filter\0", _PREROUTING, -150),
        _chain(family, b"refused\0", b"filter\0", _PREROUTING, -140),
        _chain(family, b"translated\0", b"nat\0", _PREROUTING, -100),
        _chain(family, b"source\0", b"nat\0", _POSTROUTING, 100),
        _rule(family, b"new\0", _meta(_META_IIFNAME), _compare(b"lo".ljust(16, b"\0")), _accept()),
    ]
    if family == _IPV6:  # neighbours are found, and errors reported, without a verdict
        texts.append(
            _rule(family, b"new\0", _meta(_META_L4PROTO), _compare(bytes([ICMPV6])), _icmp_type(),
                  _compare(bytes([_ICMPV6_ECHO_REQUEST]), _UNEQUAL), _accept())
        )  # fmt: skip
    texts += [
        _rule(family, b"new\0", *_is_new(), _x_tables_queue() if by_target else _queue()),
        _rule(family, b"refused\0", *_has_mark(REFUSED), *_is_udp(), _reject(_PORT_UNREACHABLE[family])),
        _rule(family, b"refused\0", *_has_mark(UNREACHABLE), _reject(_HOST_UNREACHABLE[family])),
        _rule(family, b"refused\0", *_is_new(), _meta(_META_MARK), _and(TARGET_MASK), _expression(b"ct", _number(2, _CT_MARK), _number(4, _R1))),
        _rule(family, b"translated\0", _meta(_META_L4PROTO), _compare(bytes([icmp])), _meta(_META_MARK),
              _and(TARGET_MASK), _look_up(), _translate(family, _TARGET_NAT)),
        _rule(family, b"translated\0", _meta(_META_MARK), _and(TARGET_MASK), _look_up(),
              _translate(family, _TARGET_NAT, port=_R1_SECOND_WORD if family == _IPV4 else _R2)),
        _rule(family, b"source\0", _meta(_META_MARK), _and(HAIRPIN), _compare(struct.pack("=I", HAIRPIN)),
              _immediate(ip_address(gateway).packed), _translate(family, _SOURCE_NAT)),
        _rule(family, b"source\0", _meta(_META_MARK), _and(SEEN_FROM), _compare(struct.pack("=I", SEEN_FROM)),
              _meta(_META_MARK), _and(TARGET_MASK), _look_up(), _translate(family, _SOURCE_NAT)),
    ]  # fmt: skip
    return texts


def _message(kind: int, family: int, body: bytes) -> bytes:
    flags = REQUEST | 4 | CREATE
    return message(_SUBSYSTEM << 8 | kind, struct.pack("!BBH", family, 0, 0) + body, flags=flags)


def _chain(family: int, name: bytes, kind: bytes, hook: int, priority: int) -> bytes:
    place = nested(4, _number(1, hook), attribute(2, struct.pack("!i", priority)))
    return _message(_NEW_CHAIN, family, attribute(1, TABLE) + attribute(3, name) + place + attribute(7, kind))


def _rule(family: int, chain: bytes, *expressions: bytes) -> bytes:
    return _message(_NEW_RULE, family, attribute(1, TABLE) + attribute(2, chain) + nested(4, *expressions))


def _expression(name: bytes, *data: bytes) -> bytes:
    return nested(1, attribute(1, name + b"\0"), nested(2, *data))


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("!I", value))


def _value(kind: int, data: bytes) -> bytes:
    return nested(kind, attribute(1, data))


def _meta(key: int) -> bytes:
    return _expression(b"meta", _number(1, _R1), _number(2, key))


def _compare(data: bytes, operator: int = _EQUAL) -> bytes:
    return _expression(b"cmp", _number(1, _R1), _number(2, operator), _value(3, data))


def _and(mask: int) -> bytes:
    return _expression(
        b"bitwise", _number(1, _R1), _number(2, _R1), _number(3, 4),
        _value(4, struct.pack("=I", mask)), _value(5, bytes(4)),
    )  # fmt: skip


def _is_new() -> tuple[bytes, ...]:
    state = _expression(b"ct", _number(1, _R1), _number(2, _CT_STATE))
    return state, _and(_NEW_STATE), _compare(bytes(4), _UNEQUAL)


def _has_mark(mark: int) -> tuple[bytes, ...]:
    return _meta(_META_MARK), _compare(struct.pack("=I", mark))


def _is_udp() -> tuple[bytes, ...]:
    return _meta(_META_L4PROTO), _compare(bytes([socket.IPPROTO_UDP]))


def _icmp_type() -> bytes:
    return _expression(
        b"payload", _number(1, _R1), _number(2, _TRANSPORT_HEADER), _number(3, 0), _number(4, 1)
    )


def _accept() -> bytes:
    return _expression(b"immediate", _number(1, _VERDICT), nested(2, nested(2, _number(1, _ACCEPT))))


def _immediate(data: bytes) -> bytes:
    return _expression(b"immediate", _number(1, _R1), _value(2, data))


def _queue() -> bytes:
    return _expression(b"queue", attribute(1, struct.pack("!H", 0)), attribute(2, struct.pack("!H", 1)))


def _x_tables_queue() -> bytes:
    return _expression(b"target", attribute(1, b"NFQUEUE\0"), _number(2, 0), attribute(3, bytes(8)))


def _reject(code: int) -> bytes:
    return _expression(b"reject", _number(1, 0), attribute(2, bytes([code])))


def _look_up() -> bytes:
    return _expression(b"lookup", attribute(1, TARGETS), _number(2, _R1), _number(3, _R1), _number(4, 1))


def _translate(family: int, kind: int, port: int | None = None) -> bytes:
    ports = b"" if port is None else _number(5, port)
    return _expression(b"nat", _number(1, kind), _number(2, family), _number(3, _R1), ports)
