"""`ip`, which shows the network of a container, and of which changes are denied, and `nnp` of Kubernetes' tests, which prints its user."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    Run,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

_NET_ADMIN: Final = 12
"""The bit of the capability that changes interfaces need."""
_PREFIX: Final = 24
"""The size of the network of a node's pods."""
_CHANGES: Final = frozenset({"add", "a", "del", "delete", "d", "set", "change", "replace", "flush"})


def _status_of(process: Process) -> Mapping[str, str]:
    """Return the fields of the first process, which those of all others are like."""
    try:
        text = process.host.files.read("/proc/1/status").decode()
    except FileError:
        raise UnknownProgram(process.name) from None
    fields = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in fields}


def _network_text(process: Process, words: list[str]) -> str:
    try:
        address = IPv4Address(process.host.address)
    except ValueError:
        raise UnknownProgram(process.name) from None
    subject = words[0] if words else ""
    network = IPv4Network(f"{address}/{_PREFIX}", strict=False)
    gateway = network.network_address + 1
    if subject and "route".startswith(subject):
        return (
            f"default via {gateway} dev eth0 \n{network} via {gateway} dev eth0  src {address} \n"
            f"{gateway} dev eth0 scope link  src {address} \n"
        )
    if not subject or not any(name.startswith(subject) for name in ("address", "link")):
        raise UnknownProgram(" ".join(process.argv))
    inet = "    inet {} scope {}\n       valid_lft forever preferred_lft forever\n"
    has_addresses = "address".startswith(subject)
    broadcast = network.broadcast_address
    return "".join(
        [
            "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\n",
            "    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n",
            inet.format("127.0.0.1/8", "host lo") if has_addresses else "",
            "2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1500 qdisc noqueue state UP qlen 1000\n",
            f"    link/ether 0a:58:{address.packed.hex(':')} brd ff:ff:ff:ff:ff:ff\n",
            inet.format(f"{address}/{_PREFIX} brd {broadcast}", "global eth0") if has_addresses else "",
        ]
    )


def ip(process: Process) -> Run:
    """Print the addresses or routes of a container with an address of IPv4; refuse a change without the capability for it."""
    words = [word for word in process.arguments if not word.startswith("-")]
    if len(words) < 2 or words[1] not in _CHANGES:
        yield write_text(_network_text(process, words))
        return 0
    if int(_status_of(process).get("CapEff", "0"), 16) >> _NET_ADMIN & 1:
        raise UnknownProgram(" ".join(process.argv))
    yield Output(2, b"ip: RTNETLINK answers: Operation not permitted\n")
    return 2


def print_effective_user(process: Process) -> Run:
    """Print the user of a program that is root's by its mode, unless new privileges are forbidden."""
    is_root = _status_of(process).get("NoNewPrivs") != "1"
    yield write_text(f"Effective uid: {0 if is_root else process.host.user}\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"ip": ip, "nnp": print_effective_user}
