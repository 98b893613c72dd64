"""Measure the parser of HTTP/1.1 and others: CPU time in microseconds, and what each does with hostile responses.

    python benchmarks/http1.py own|h11|httptools|aiohttp

h11 and httptools are not dependencies: `pip install h11 httptools` into an environment of their own.
"""

import asyncio
import importlib
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpResponseParser

from mockube.component_base.http1.reading import END, NEED_DATA, ResponseReader

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}' * 20
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nAudit-Id: 4d6d3f2e-aaaa-bbbb-cccc-0123456789ab\r\n"
    b"X-Kubernetes-Pf-Flowschema-Uid: 4d6d3f2e-aaaa-bbbb-cccc-0123456789ab\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 4d6d3f2e-aaaa-bbbb-cccc-0123456789ab\r\n"
    b"Content-Type: application/json\r\nCache-Control: no-cache, private\r\nContent-Length: %d\r\n"
    b"Date: Fri, 27 Nov 2026 13:32:39 GMT\r\n\r\n%b" % (len(BODY), BODY)
)
EVENT = b'{"type":"MODIFIED","object":{"kind":"Pod"}}' * 20
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
CHUNKS = 1000
OK, HI = b"HTTP/1.1 200 OK\r\n", b"Content-Length: 2\r\n\r\nhi"
HOSTILE = {
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "length and chunks": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n")
    + b"2\r\nhi\r\n0\r\n\r\n",
    "continued header": OK + b"X: a\r\n b\r\n" + HI,
    "bare LF in the head": (OK + HI).replace(b"\r\n", b"\n"),
    "bare LF in a chunk": CHUNKED + b"2\nhi\r\n0\r\n\r\n",
    "bare CR in a header": OK + b"X: a\rb\r\n" + HI,
    "NUL in a header": OK + b"X: a\0b\r\n" + HI,
    "space before a colon": OK + b"X : a\r\n" + HI,
    "length +2": OK + b"Content-Length: +2\r\n\r\nhi",
    "size 0x2": CHUNKED + b"0x2\r\nhi\r\n0\r\n\r\n",
    "chunk beyond its size": CHUNKED + b"1\r\nabc\r\n0\r\n\r\n",
    "extension": CHUNKED + b"2;a=b\r\nhi\r\n0\r\n\r\n",
    "1 MB of one extension": CHUNKED + b"2;" + b"a" * (1 << 20) + b"\r\nhi\r\n0\r\n\r\n",
    "1 MB of extensions": CHUNKED + (b"1;" + b"a" * 1000 + b"\r\nx\r\n") * 1000 + b"0\r\n\r\n",
    "head of 10 MB": OK + (b"X: " + b"a" * 1000 + b"\r\n") * 10_000 + HI,
    "10,000 responses 100": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000 + OK + HI,
    "early end": OK + b"Content-Length: 9\r\n\r\nhi",
    "early end of a chunk": CHUNKED + b"5\r\nhi",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
}


class Own:
    def __init__(self) -> None:
        self._reader, self.body, self.is_complete = ResponseReader(), b"", False

    def feed(self, data: bytes) -> None:
        self._reader.receive(data)
        while (event := self._reader.next_event()) is not NEED_DATA and event is not END:
            if isinstance(event, bytes):
                self.body += event
        self.is_complete = event is END


class H11:
    def __init__(self) -> None:
        self._h11 = h11 = importlib.import_module("h11")
        self._connection = h11.Connection(h11.CLIENT)
        self._connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        self._connection.send(h11.EndOfMessage())
        self.body, self.is_complete = b"", False

    def feed(self, data: bytes) -> None:
        self._connection.receive_data(data)
        while not self.is_complete and (event := self._connection.next_event()) is not self._h11.NEED_DATA:
            if isinstance(event, self._h11.Data):
                self.body += event.data
            self.is_complete = isinstance(event, self._h11.EndOfMessage)


class Httptools:
    def __init__(self) -> None:
        self._parser = importlib.import_module("httptools").HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self.body, self.is_complete = b"", False

    def feed(self, data: bytes) -> None:
        if data:
            self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


class Aiohttp:
    def __init__(self) -> None:
        protocol = BaseProtocol(LOOP)
        sizes: dict[str, Any] = {"max_line_size": 1 << 16, "max_field_size": 1 << 16}
        self._parser = HttpResponseParser(protocol, LOOP, 1 << 26, read_until_eof=True, **sizes)
        protocol._parser = self._parser  # noqa: SLF001 - as aiohttp's own client does
        self._payload: Any = None
        self.body, self.is_complete = b"", False

    def feed(self, data: bytes) -> None:
        if not data:
            self._parser.feed_eof()
            return
        for _, payload in self._parser.feed_data(data)[0]:
            self._payload = payload
        if self._payload is not None:
            self.body += self._payload.read_nowait()
            self.is_complete = self._payload.is_eof()


PARSERS: dict[str, Callable[[], Any]] = {"own": Own, "h11": H11, "httptools": Httptools, "aiohttp": Aiohttp}
LOOP = asyncio.new_event_loop()


def microseconds(work: Callable[[], object], number: int) -> float:
    return min(timeit.repeat(work, number=number, repeat=25, timer=time.process_time)) / number * 1e6


def outcome(make: Callable[[], Any], received: bytes) -> str:
    try:
        parser = make()
        for start in range(0, len(received), 1 << 16):
            parser.feed(received[start : start + (1 << 16)])
        if not parser.is_complete:
            parser.feed(b"")
    except Exception as error:  # noqa: BLE001 - each library has its own
        return f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"
    return f"{len(parser.body)} bytes" if parser.is_complete else "incomplete"


def main() -> None:
    make = PARSERS[sys.argv[1]]

    def response() -> None:
        make().feed(RESPONSE)

    def chunks() -> None:
        parser = make()
        parser.feed(CHUNKED)
        for _ in range(CHUNKS):
            parser.feed(CHUNK)
            parser.body = b""

    print(f"a response {microseconds(response, 300):6.1f}   a chunk {microseconds(chunks, 1) / CHUNKS:5.2f}")
    for name, received in HOSTILE.items():
        print(f"{name:24} {outcome(make, received)}")


if __name__ == "__main__":
    main()
