"""What agnhost's commands send over the network: `connect`, and the registration of a guestbook's replica at its primary."""

from collections.abc import Generator, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

import orjson

from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.hosts import join_host_port
from mockube.container_runtime.simulated.network.calls import Connect, HttpRequest
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
    UnknownProgram,
)

from . import network

_REGISTRATION_SECONDS: Final = 15
_NO_LIMIT: Final = 1e9
_GUESTBOOK_PORT: Final = "6379"
_LOCAL: Final = "127.0.0.1"


def connect(process: Process, destination: str, options: Mapping[str, str]) -> Run:
    """Connect to a host and a port; the output says why that failed."""
    protocol = options.get("protocol", "") or "tcp"
    if protocol not in ("tcp", "udp", "sctp"):
        yield Output(2, f"Unsupported protocol\n{protocol}".encode())
        return 1
    try:
        limit = parse_duration(options.get("timeout", "0")) / 10**9 or _NO_LIMIT
    except DurationError as error:
        yield Output(2, f'Error: invalid argument for "--timeout" flag: {error}\n'.encode())
        return 1
    host, colon, port = destination.rpartition(":")
    number = int_or_none(port)
    if not colon or number is None or not 0 <= number < 65536:
        problem = "missing port in address" if not colon else "invalid port"
        yield Output(2, f"UNKNOWN: address {destination}: {problem}\n".encode())
        return 1
    resolution = yield from network.resolve(process, host.strip("[]") or _LOCAL, limit=limit)
    if not resolution.addresses:
        yield Output(2, f"DNS: lookup {host}: no such host\n".encode())
        return 1
    data = f"{options.get(f'{protocol}-data', 'hostname')}\n".encode() if protocol != "tcp" else b""
    request = Connect(address=resolution.addresses[0], port=number, protocol=protocol.upper(), data=data)
    reply = yield from network.call(process, request)
    if reply.is_open and (protocol == "tcp" or reply.body):
        return 0
    if reply.outcome == "refused":
        problem = "REFUSED"
    elif reply.outcome == "unreachable":
        yield from network.wait_for_failure(reply, limit)
        problem = f"OTHER: dial {protocol} {join_host_port(resolution.addresses[0], number)}: connect: no route to host"
    else:
        yield Sleep(min(limit, network.CONNECT_SECONDS) if protocol == "tcp" else limit)
        problem = "TIMEOUT"
    yield Output(2, f"{problem}\n".encode())
    return 1


def register_at_primary(
    process: Process, options: Mapping[str, str]
) -> Generator[Effect, bytes | None, bool]:
    """Register a guestbook as a replica, and set in it what its primary has; return whether that worked in time."""
    primary = options["replicaof"]
    port = int_or_none(options.get("backend-port", _GUESTBOOK_PORT)) or 0
    for _ in range(_REGISTRATION_SECONDS):
        resolution = yield from network.resolve(process, primary)
        if resolution.addresses:
            path = f"/register?host={process.host.address}"
            yield from _log(process, f"Registering to primary: {primary}:{port}{path}")
            data = yield from _get(process, resolution.addresses[0], port, path)
            if data is not None:
                yield from _log(process, f"Registered to node: {primary}")
                own = int_or_none(options.get("http-port", "80")) or 0
                for key, value in data.items():
                    yield from _get(process, _LOCAL, own, f"/set?{urlencode({'key': key, 'value': value})}")
                return True
        text = f"unable to get IP {primary}:{port}: lookup {primary}: no such host. Retrying in 1s."
        yield from _log(
            process,
            text
            if not resolution.addresses
            else "encountered error while registering to primary. Retrying in 1s.",
        )
        yield Sleep(1.0)
    yield from _log(process, "Timed out while registering to primary.")
    return False


def _get(
    process: Process, address: str, port: int, path: str
) -> Generator[Effect, bytes | None, dict[str, str] | None]:
    """Return the data in a response; None if there is none."""
    headers = (("Host", join_host_port(address, port)), ("User-Agent", "Go-http-client/1.1"))
    request = HttpRequest(address=address, port=port, method="GET", path=path, headers=headers)
    reply = yield from network.call(process, request)
    if reply.status != 200:
        return None
    try:
        document = orjson.loads(reply.body)
    except ValueError:
        raise UnknownProgram(
            f"the server at {join_host_port(address, port)}, which is no guestbook,"
        ) from None
    data = document.get("data") if isinstance(document, dict) else None
    return data if isinstance(data, dict) else {}


def log_line(now: datetime, text: str) -> str:
    """Return a line of agnhost's log: Go's package log writes to klog, whose lines name the place of that call."""
    return f"I{now:%m%d %H:%M:%S.%f}       1 log.go:245] {text}"


def _log(process: Process, text: str) -> Generator[Effect, bytes | None, None]:
    yield Output(2, f"{log_line(process.host.now_running(is_shown=True), text)}\n".encode())
