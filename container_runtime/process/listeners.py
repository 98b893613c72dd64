"""The addresses on which processes of this machine listen, as /proc tells them."""

import struct
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"


def listens_on_loopback_only(process: int, port: int) -> str:
    """Return the loopback address on which a port is open in the network of a process; "" if it is open on others, or closed."""
    addresses = {address for address, number in _listeners(process) if number == port}
    if not addresses or not all(address.is_loopback for address in addresses):
        return ""
    return str(min(addresses, key=str))


def _listeners(process: int) -> Iterator[tuple[IPv4Address | IPv6Address, int]]:
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    yield parse_address(fields[1])


def parse_address(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    """Return the address and the port that a line of /proc/net/tcp or tcp6 has."""
    digits, _, port = text.partition(":")
    words = [int(digits[index : index + 8], 16) for index in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return (IPv4Address(packed) if len(words) == 1 else IPv6Address(packed)), int(port, 16)
