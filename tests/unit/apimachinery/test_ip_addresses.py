"""Texts of IP addresses, and which of them a proxy may call."""

import socket

import pytest

from mockube.apimachinery import ip_addresses

SAME = {
    "::ffff:127.0.0.1": "127.0.0.1",
    "0:0:0:0:0:ffff:7f00:1": "127.0.0.1",
    "::FFFF:a9fe:a9fe": "169.254.169.254",
    "[::ffff:127.0.0.1]": "127.0.0.1",
    "fe80::1%eth0": "fe80::1",
    "2130706433": "127.0.0.1",
    "0x7f.1": "127.0.0.1",
    "0177.0.0.01": "127.0.0.1",
    "169.254.43518": "169.254.169.254",
    "0": "0.0.0.0",
    "64:ff9b::7f00:1": "64:ff9b::7f00:1",
    "10.0.0.7": "10.0.0.7",
}


@pytest.mark.parametrize("text", SAME)
def test_address_has_one_form(text):
    assert str(ip_addresses.parse(text)) == SAME[text]


@pytest.mark.parametrize("text", ["2130706433", "0x7f.1", "0177.0.0.01", "169.254.43518", "0", "1.2.3"])
def test_numbers_are_read_as_by_the_system(text):
    assert ip_addresses.parse(text).packed == socket.inet_aton(text)


@pytest.mark.parametrize(
    "text", ["", ".", "a", "1.2.3.4.5", "256.1.1.1", "4294967296", "08.1.1.1", "1..2", "9" * 5000, "::g"]
)
def test_name_is_no_address(text):
    assert ip_addresses.parse(text) is None


@pytest.mark.parametrize(
    ("text", "is_global"),
    [
        ("::ffff:127.0.0.1", False),
        ("::ffff:0.0.0.0", False),
        ("::ffff:224.0.0.1", False),
        ("::ffff:255.255.255.255", False),
        ("ff02::1", False),
        ("::1", False),
        ("fe80::1%1", False),
        ("10.0.0.1", True),
        ("::ffff:10.0.0.1", True),
        ("2001:db8::1", True),
        ("64:ff9b::7f00:1", True),  # as for upstream, a translator's address is one like others
        ("::127.0.0.1", True),
    ],
)
def test_global_addresses_are_those_of_go(text, is_global):
    assert ip_addresses.is_global_unicast(ip_addresses.parse(text)) is is_global
