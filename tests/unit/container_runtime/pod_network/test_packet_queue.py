"""What the queue reads of the packets that begin connections."""

import struct
from ipaddress import ip_address

import pytest

from mockube.container_runtime.pod_network.netlink import attribute, message
from mockube.container_runtime.pod_network.packet_queue import ICMP, NewConnection, read

TCP, UDP, ICMP_NUMBER = 6, 17, 1
PORTS = struct.pack("!HH", 40000, 80)


class Queue:
    """A socket with one message of the kernel."""

    def __init__(self, payload, packet=7, link=3):
        body = attribute(1, struct.pack("!IHB", packet, 0x0800, 0)) + attribute(5, struct.pack("!I", link))
        self._data = message(3 << 8, bytes(4) + body + attribute(10, payload))

    def recv(self, _):
        return self._data


def ipv4(protocol, rest, options=b""):
    length = 5 + len(options) // 4
    head = struct.pack("!BxHHHBBH", 0x40 | length, 20 + len(options) + len(rest), 0, 0, 64, protocol, 0)
    return head + ip_address("10.244.0.2").packed + ip_address("10.0.0.1").packed + options + rest


def ipv6(protocol, rest):
    head = struct.pack("!IHBB", 6 << 28, len(rest), protocol, 64)
    return head + ip_address("fd00::2").packed + ip_address("fd00::3").packed + rest


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (ipv4(TCP, PORTS), (7, 3, "TCP", "10.244.0.2", 40000, "10.0.0.1", 80)),
        (ipv4(UDP, PORTS, options=bytes(8)), (7, 3, "UDP", "10.244.0.2", 40000, "10.0.0.1", 80)),
        (ipv4(ICMP_NUMBER, bytes(8)), (7, 3, ICMP, "10.244.0.2", 0, "10.0.0.1", 0)),
        (ipv6(TCP, PORTS), (7, 3, "TCP", "fd00::2", 40000, "fd00::3", 80)),
        (ipv6(0, bytes([UDP, 0]) + bytes(6) + PORTS), (7, 3, "UDP", "fd00::2", 40000, "fd00::3", 80)),
    ],
)
def test_connection_is_read_from_headers(payload, expected):
    assert [*read(Queue(payload))] == [NewConnection(*expected)]


@pytest.mark.parametrize(
    "payload", [b"", b"\x45", ipv4(99, PORTS), ipv4(TCP, b"\x00"), ipv6(0, b"\x00"), b"\x60" + bytes(10)]
)
def test_other_packets_have_only_a_number(payload):
    assert [*read(Queue(payload))] == [7]
