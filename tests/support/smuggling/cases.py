"""The requests of `requests.yaml`, a strict reader of what a proxy sends, and a backend that records it.

The reader is written apart from the product's: it accepts one form of a message only, so that whatever a proxy forwards can be read in
no other way.
"""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

FORBIDDEN = 403
"""What the proxies of the tests answer to requests whose path is not below /public/."""
PUBLISHER = "publisher"
BAD_REQUEST = 400
_OTHER_REFUSALS = (501, 505)
"""Statuses of a malformed request. Which one it gets depends on what a parser finds first."""
_ADDED = {
    "accept-encoding",
    "audit-id",
    "connection",
    "host",
    "traceparent",
    "upgrade",
    "x-real-ip",
    "x-scheme",
}
"""Headers that a proxy writes itself."""
_ADDED_PREFIXES = ("x-forwarded-", "x-remote-")
_FRAMING = ("content-length", "transfer-encoding")


class Case(NamedTuple):
    send: bytes
    outcome: list[Any]
    host: str = "a.example"
    """The Host header of what is forwarded."""
    original: Sequence[int] = ()
    """The statuses of the server that a proxy follows, with 200 for every response of a backend."""

    @property
    def statuses(self) -> list[int]:
        """The statuses of all responses to the client."""
        return [each if isinstance(each, int) else each.get("status", 200) for each in self.outcome]

    @property
    def forwarded(self) -> list[tuple[str, dict[str, str], bytes]]:
        """What backends get, in order."""
        return [
            (each["line"], each.get("headers", {}), each.get("body", "").encode("latin-1"))
            for each in self.outcome
            if not isinstance(each, int)
        ]


def cases(proxy: str) -> list[Any]:
    """Return the parameters of the cases for one of the proxies."""
    return [
        pytest.param(_case(case, proxy), id=f"{group}: {case['name']}")
        for group, found in _groups().items()
        for case in found
        if proxy in case.get("only", [proxy])
    ]


@cache
def _groups() -> dict[str, Any]:
    text = Path(__file__).with_name("requests.yaml").read_text()
    groups: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return groups


def _case(case: dict[str, Any], proxy: str) -> Case:
    at_api = case.get("api", without_kind_of_refusal(case["outcome"]))
    outcome = case["outcome"] if proxy == PUBLISHER else case.get(proxy, at_api)
    found = Case(case["send"].encode("latin-1"), outcome, case.get("host", "a.example"))
    statuses = [200 if status == 426 else status for status in found.statuses]
    return found._replace(original=case.get("nginx" if proxy == PUBLISHER else "go", statuses))


class Message(NamedTuple):
    first: str
    headers: list[tuple[str, str]]
    body: bytes

    def value(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def forwarded(self) -> tuple[str, dict[str, str], bytes]:
        """Return the line without the version, the headers of the client, and the body."""
        hosts = [value for key, value in self.headers if key.lower() == "host"]
        assert len(hosts) == 1
        own = {
            key.title(): value
            for key, value in self.headers
            if key.lower() not in {*_ADDED, *_FRAMING}
            and not key.lower().startswith(_ADDED_PREFIXES)
            and "_" not in key
        }
        return self.first.removesuffix(" HTTP/1.1"), own, self.body


def take_message(data: bytes, *, has_body: bool = True) -> tuple[Message, bytes] | None:
    """Return the first message in the data and the rest; None if it is not complete. Fail for one that is not in the strict form."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    assert head.count(b"\n") == head.count(b"\r") == head.count(b"\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    assert len(first.split(" ")) == 3 or first.startswith("HTTP/1.")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    assert all(re.fullmatch(r"[\w.-]+", name, re.ASCII) for name, _ in headers)
    framing = [(name.lower(), value) for name, value in headers if name.lower() in _FRAMING]
    assert len(framing) <= 1
    if not framing or not has_body:
        return Message(first, headers, b""), rest
    name, value = framing[0]
    if name == "content-length":
        assert value.isascii()
        assert value.isdigit()
        size = int(value)
        return None if len(rest) < size else (Message(first, headers, rest[:size]), rest[size:])
    assert value == "chunked"
    body = b""
    while True:
        line, end, rest = rest.partition(b"\r\n")
        if not end:
            return None
        size = int(line.decode("ascii"), 16)
        assert line == b"%x" % size
        if len(rest) < size + 2:
            return None
        assert rest[size : size + 2] == b"\r\n"
        body, rest = body + rest[:size], rest[size + 2 :]
        if not size:
            return Message(first, headers, body), rest


def without_kind_of_refusal(outcome: list[Any]) -> list[Any]:
    return [BAD_REQUEST if each in _OTHER_REFUSALS else each for each in outcome]


def statuses_in(received: bytes, methods: list[str]) -> list[int]:
    """Return the statuses of the responses to requests with these methods; the rest must be no part of a response."""
    found: list[int] = []
    while received:
        method = methods[len(found)] if len(found) < len(methods) else ""
        taken = take_message(received, has_body=method != "HEAD")
        if taken is None:
            break
        message, received = taken
        status = int(message.first.split(" ")[1])
        if status >= 200:
            found.append(status)
    return found


def methods_of(case: Case) -> list[str]:
    return ["" if isinstance(each, int) else each["line"].split(" ")[0] for each in case.outcome]


class RecordingBackend:
    """Answers each complete request, and records all of a connection."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.rests: list[bytes] = []
        """What followed the complete requests of each connection."""

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the responses to the complete requests in the data of a connection, and the rest."""
        answers = b""
        while data and (taken := take_message(data)) is not None:
            message, data = taken
            self.messages.append(message)
            status = b"426 Upgrade Required" if message.value("upgrade") else b"200 OK"
            body = b"" if message.first.startswith("HEAD ") else b"ok"
            answers += b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\n%s" % (status, body)
        return answers, data

    def forwarded(self, host: str = "") -> list[tuple[str, dict[str, str], bytes]]:
        """Return what was forwarded, all for this host, if there is one."""
        assert {host or each.value("host") for each in self.messages} == {
            each.value("host") for each in self.messages
        }
        assert not [rest for rest in self.rests if take_message(rest) is not None]
        return [message.forwarded() for message in self.messages]


@contextlib.asynccontextmanager
async def listening(backend: RecordingBackend, *, tls: Any = None):
    """Serve a backend at a port of the machine, and yield the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rest = b""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                answers, rest = backend.receive(rest + data)
                writer.write(answers)
        backend.rests.append(rest)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
