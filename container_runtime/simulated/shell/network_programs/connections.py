"""ping."""

from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.simulated.network.calls import Connect
from mockube.container_runtime.simulated.shell.options import simulated_options
from mockube.container_runtime.simulated.shell.process import (
    Process,
    Run,
    Sleep,
    UnknownProgram,
    write_text,
)

from . import network

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
