"""nc, as busybox has it: a client, and a server for one connection, or for one after the other.

What it reads goes over the connection, and what comes back to its output, until the other side ends the connection. At the end of its
input it sends no more, and goes on receiving.
"""

import re
from collections.abc import Generator
from math import inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.simulated.network.calls import (
    WAITING,
    Accept,
    Connect,
    Exchange,
    ListenOn,
    Open,
    Reply,
)
from mockube.container_runtime.simulated.network.open_sockets import close_socket
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import ProgramOptions, simulated_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
    UnknownProgram,
    read_input,
)
from mockube.container_runtime.simulated.shell.streams import has_input

from . import network

_CLIENT: Final = {
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
_SERVER: Final = {
    "-l": "listen",
    "--listen": "listen",
    "-k": "again",
    "--keep-open": "again",
    "-p": "port=",
    "-v": "verbose",
    "-n": "ignored",
    "-N": "ignored",
    "-4": "ignored",
    "-t": "ignored",
    "-w": "timeout=",
    "-q": "quit=",
    "-s": "address=",
}
_LISTENS: Final = re.compile(r"--listen$|-[a-zA-Z46]*l")
_NO_LIMIT: Final = 1e9
_MAX_READ: Final = 64 * 1024
_MIN_QUIT: Final = 0.1
"""The seconds after the end of its input for which nc receives at least: other machines are further away, and send later."""


class _Limits(Struct, frozen=True):
    """When nc ends a connection that the other side does not end."""

    idle: float
    """The seconds in which nothing happens."""
    after_input: float
    """The seconds after the end of the input."""


def nc(process: Process) -> Run:
    if any(_LISTENS.match(argument) for argument in process.arguments):
        return (yield from _serve(process))
    options = simulated_options(process, _CLIENT)
    if len(options.arguments) != 2:
        raise UnknownProgram(" ".join(process.argv))
    name, port_text = options.arguments
    ports = _ports(port_text, scans="scan" in options)
    if not ports:
        yield process.error(f"bad port '{port_text}'")
        return 1
    limit = _seconds(options, "timeout") or _NO_LIMIT
    resolution = yield from network.resolve(process, name, limit=limit)
    if not resolution.addresses:
        yield process.error(f"bad address '{name}'")
        return 1
    code = 1
    for port in ports:
        code = yield from _connect(process, options, (name, resolution.addresses[0], port))
    return code


def _ports(text: str, *, scans: bool) -> range:
    """Return the ports in an argument; none if it is invalid."""
    first_text, _, last_text = text.partition("-")
    first, last = int_or_none(first_text) or 0, int_or_none(last_text or first_text) or 0
    return range(first, last + 1) if 0 < first <= last < 65536 and (scans or not last_text) else range(0)


def _seconds(options: ProgramOptions, name: str) -> float:
    return float(int_or_none(options.get(name, "")) or 0)


def _limits(options: ProgramOptions) -> _Limits:
    after_input = max(_seconds(options, "quit"), _MIN_QUIT) if "quit" in options else inf
    return _Limits(_seconds(options, "timeout") or inf, after_input)


# --- a client


def _connect(process: Process, options: ProgramOptions, target: tuple[str, str, int]) -> Run:
    name, address, port = target
    limit, scans, is_udp = _seconds(options, "timeout") or _NO_LIMIT, "scan" in options, "udp" in options
    data = (yield from _input()) if is_udp and not scans else b""
    if scans or is_udp:
        protocol = "UDP" if is_udp else "TCP"
        request: Connect | Open = Connect(address=address, port=port, protocol=protocol, data=data)
    else:
        request = Open(address=address, port=port)
    reply = yield from network.call(process, request)
    if not reply.is_open and not (is_udp and reply.outcome != "refused"):
        if (yield from network.wait_for_failure(reply, limit)):
            yield process.error("timed out")
            return 1
        if "verbose" in options or not scans:
            yield process.error(f"can't connect to remote host ({address}): {network.REASONS[reply.outcome]}")
        return 1
    if "verbose" in options:
        yield Output(2, f"{name} ({address}:{port}) open\n".encode())
    if reply.socket:
        yield from _relay(process, reply.socket, _limits(options))
    if is_udp:
        yield from _receive_datagram(reply, limit if data else _NO_LIMIT)
    return 0


def _receive_datagram(reply: Reply, limit: float) -> Generator[Effect, bytes | None, None]:
    if reply.body:
        yield Output(1, reply.body)
    if limit < _NO_LIMIT:
        yield Sleep(limit)  # Datagrams have no end: the client waits for another one.


def _input() -> Generator[Effect, bytes | None, bytes]:
    content = bytearray()
    while len(content) < limits.MAX_SENT and (data := (yield from read_input(65536))):
        content += data
    return bytes(content)


# --- a server


def _serve(process: Process) -> Run:
    options = simulated_options(process, _SERVER)
    texts = [options.get("port", ""), *options.arguments[-1:]]
    port = next((number for text in texts if (number := int_or_none(text))), 0)
    if not 0 < port < 65536:
        raise UnknownProgram(" ".join(process.argv))
    while True:
        listener = None
        if port not in process.host.occupied_ports:
            listener = yield from network.call(process, ListenOn(port=port))
        if listener is None or not listener.is_open:
            yield process.error("bind: Address already in use")
            return 1
        try:
            client = yield from _accept(process, listener.socket)
        finally:
            close_socket(listener.socket)
        yield from _relay(process, client, _limits(options))
        if "again" not in options:
            return 0


def _accept(process: Process, listener: int) -> Generator[Effect, bytes | None, int]:
    """Wait for a client; return the socket of its connection."""
    while True:
        wakes = process.processes.wakes
        reply = yield from network.call(process, Accept(socket=listener))
        if reply.outcome != WAITING:
            return reply.socket
        yield from network.wait_for_news(process, wakes)


# --- both


def _relay(process: Process, socket: int, ends: _Limits) -> Generator[Effect, bytes | None, None]:
    """Send the input and write what comes back, until the other side ends the connection, or it takes too long."""
    relay = _Relay(process, socket, ends)
    try:
        while True:
            wakes = process.processes.wakes
            has_moved = yield from relay.move()
            if relay.is_ended:
                break
            if not has_moved:
                yield from relay.wait(wakes)
            if relay.is_ended:
                break
    finally:
        close_socket(socket)


class _Relay:
    def __init__(self, process: Process, socket: int, ends: _Limits) -> None:
        self._process = process
        self._socket = socket
        self._ends = ends
        self._is_reading = True
        self._has_room = True
        self._input_ended = inf
        """When the input has ended."""
        self.is_ended = False

    def move(self) -> Generator[Effect, bytes | None, bool]:
        """Move what is there in both directions; return whether anything was."""
        data, is_last = b"", False
        if self._may_read():
            data = yield from read_input(_MAX_READ)
            is_last = not data
        if is_last:
            self._is_reading, self._input_ended = False, self._process.processes.time
        exchange = Exchange(socket=self._socket, data=data, is_last=is_last)
        reply = yield from network.call(self._process, exchange)
        self._has_room, self.is_ended = reply.has_room, reply.is_ended
        if reply.body:
            yield Output(1, reply.body)
        return bool(data or is_last or reply.body)

    def _may_read(self) -> bool:
        return self._is_reading and self._has_room and has_input(self._process)

    def wait(self, wakes: int) -> Generator[Effect, bytes | None, None]:
        """Wait until something may be moved; the connection ends if that takes too long."""
        processes = self._process.processes
        begin = processes.time
        seconds = min(self._ends.idle, self._input_ended + self._ends.after_input - begin)
        yield from network.wait_for_news(self._process, wakes, seconds, self._may_read)
        self.is_ended = processes.wakes == wakes and processes.time >= begin + seconds
