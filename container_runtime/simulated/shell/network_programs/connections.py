"""nc and ping."""

import re
from collections.abc import Generator
from math import inf
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.simulated.network.calls import Connect
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import has_letter, simulated_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
    UnknownProgram,
    read_input,
    write_text,
)

from . import network

_NC: Final = {
    "-z": "scan",
    "-v": "verbose",
    "-w": "timeout=",
    "-u": "udp",
    "-n": "numeric",
    "-q": "quit=",
    "-N": "shutdown",
    "-4": "ignored",
    "-t": "ignored",
}
_PING: Final = {
    "-c": "count=",
    "-W": "wait=",
    "-w": "deadline=",
    "-i": "interval=",
    "-q": "quiet",
    "-4": "ignored",
    "-n": "ignored",
    "-s": "size=",
}
_NO_LIMIT: Final = 1e9


def nc(process: Process) -> Run:
    """Connect to a port; one that listens waits for clients, which `listeners` knows by its arguments."""
    if any(argument == "--listen" or has_letter(argument, "l") for argument in process.arguments):
        numbers = {
            int(digits) for argument in process.arguments for digits in re.findall(r"\d{1,5}", argument)
        }
        if numbers & process.host.occupied_ports:
            yield process.error("bind: Address already in use")
            return 1
        yield Sleep(inf)
        return 0
    options = simulated_options(process, _NC)
    if len(options.arguments) != 2:
        raise UnknownProgram(" ".join(process.argv))
    name, port_text = options.arguments
    first, _, last = port_text.partition("-")
    ports = [int_or_none(first), int_or_none(last or first)]
    if (
        None in ports
        or not 0 < (ports[0] or 0) <= (ports[1] or 0) < 65536
        or (last and "scan" not in options)
    ):
        yield process.error(f"bad port '{port_text}'")
        return 1
    limit = float(int_or_none(options.get("timeout", "")) or 0) or _NO_LIMIT
    resolution = yield from network.resolve(process, name, limit=limit)
    if not resolution.addresses:
        yield process.error(f"bad address '{name}'")
        return 1
    code = 1
    for port in range(ports[0] or 0, (ports[1] or 0) + 1):
        code = yield from _connect(
            process, (name, resolution.addresses[0], port), limit, "UDP" if "udp" in options else "TCP",
            scans="scan" in options, is_verbose="verbose" in options,
        )  # fmt: skip
    return code


def _connect(
    process: Process,
    target: tuple[str, str, int],
    limit: float,
    protocol: str,
    *,
    scans: bool,
    is_verbose: bool,
) -> Run:
    name, address, port = target
    data = b"" if scans else (yield from _input())
    reply = yield from network.call(
        process, Connect(address=address, port=port, protocol=protocol, data=data)
    )
    if not reply.is_open and not (protocol == "UDP" and reply.outcome != "refused"):
        if (yield from network.wait_for_failure(reply, limit)):
            yield process.error("timed out")
            return 1
        if is_verbose or not scans:
            yield process.error(f"can't connect to remote host ({address}): {network.REASONS[reply.outcome]}")
        return 1
    if is_verbose:
        yield Output(2, f"{name} ({address}:{port}) open\n".encode())
    if reply.body:
        yield Output(1, reply.body)
    if protocol == "UDP" and data and limit < _NO_LIMIT:
        yield Sleep(limit)  # Datagrams have no end: the client waits for another one.
    return 0


def _input() -> Generator[Effect, bytes | None, bytes]:
    content = bytearray()
    while len(content) < limits.MAX_SENT and (data := (yield from read_input(65536))):
        content += data
    return bytes(content)


def ping(process: Process) -> Run:
    options = simulated_options(process, _PING)
    if len(options.arguments) != 1:
        raise UnknownProgram(" ".join(process.argv))
    name = options.arguments[0]
    resolution = yield from network.resolve(process, name)
    if not resolution.addresses:
        yield process.error(f"bad address '{name}'")
        return 1
    address = resolution.addresses[0]
    count = int_or_none(options.get("count", "")) or 0
    wait = float(int_or_none(options.get("wait", "")) or 10)
    deadline = float(int_or_none(options.get("deadline", "")) or 0) or _NO_LIMIT
    yield write_text(f"PING {name} ({address}): 56 data bytes\n")
    sent = received = 0
    elapsed = 0.0
    while (not count or sent < count) and elapsed < deadline:
        reply = yield from network.call(process, Connect(address=address, protocol="ICMP"))
        if reply.is_open:
            received += 1
            if "quiet" not in options:
                yield write_text(f"64 bytes from {address}: seq={sent} ttl=63 time=0.100 ms\n")
        sent += 1
        is_last = bool(count) and sent == count
        pause = (0.0 if reply.is_open else wait) if is_last else 1.0
        pause = min(pause, deadline - elapsed)
        elapsed += pause
        if pause:
            yield Sleep(pause)
    lost = 100 * (sent - received) // sent if sent else 0
    yield write_text(
        f"\n--- {name} ping statistics ---\n"
        f"{sent} packets transmitted, {received} packets received, {lost}% packet loss\n"
    )
    if received:
        yield write_text("round-trip min/avg/max = 0.100/0.100/0.100 ms\n")
    return 0 if received else 1
