"""`/dev/tcp/HOST/PORT` and `/dev/udp/HOST/PORT`, which bash opens as connections."""

import re
from collections.abc import Generator
from math import inf
from typing import Final

from msgspec.structs import replace

from mockube.container_runtime.simulated.network.calls import Connect
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.process import Effect, Process, Steps, UnknownProgram
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from . import network

_PATH: Final = re.compile(r"/dev/(tcp|udp)/([^/]+)/([0-9]{1,5})")
_HTTP: Final = re.compile(rb"[A-Z]{3,7} \S+ HTTP/1")


class ConnectionStream:
    """A connection: what is read after a write is the reply of the server."""

    def __init__(self, process: Process, request: Connect) -> None:
        self._process = process
        self._request = request
        self._sent = b""
        self._received = b""

    def read(self, limit: int) -> Generator[Effect, bytes | None, bytes]:
        if self._sent and not self._received:
            if _HTTP.match(self._sent):
                raise UnknownProgram("an HTTP request to /dev/tcp")
            request = replace(self._request, data=self._sent)
            self._sent = b""
            self._received = (yield from network.call(self._process, request)).body
        data, self._received = self._received[:limit], self._received[limit:]
        return data

    def unread(self, data: bytes) -> None:
        self._received = data + self._received

    def write(self, data: bytes) -> Steps:
        self._sent += data[: limits.MAX_SENT - len(self._sent)]
        return
        yield


def is_connection(target: str) -> bool:
    return _PATH.fullmatch(target) is not None


def open_connection(process: Process, target: str) -> Generator[Effect, bytes | None, ConnectionStream]:
    """Connect to the host and the port in a path; raise `FileError`."""
    match = _PATH.fullmatch(target)
    assert match is not None
    protocol, name, port = match[1].upper(), match[2], int(match[3])
    resolution = yield from network.resolve(process, name)
    if not resolution.addresses:
        raise FileError(f"{name}: Name or service not known")
    request = Connect(address=resolution.addresses[0], port=port, protocol=protocol)
    if protocol == "TCP":
        reply = yield from network.call(process, request)
        if not reply.is_open:
            yield from network.wait_for_failure(reply, inf)
            raise FileError(f"connect: {network.REASONS[reply.outcome]}")
    return ConnectionStream(process, request)
