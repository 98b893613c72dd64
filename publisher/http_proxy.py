"""The proxy behind the ports of Ingresses and Gateways: requests one after the other, each to the backend of its rule.

It speaks HTTP/1.1 on both sides; a connection that a backend switches to another protocol, such as WebSocket, carries any bytes.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.component_base.http1 import heads
from mockube.component_base.http1.heads import ProtocolError, RequestHead, ResponseHead
from mockube.component_base.http1.reading import END, NEED_DATA, RequestReader, ResponseReader
from mockube.component_base.http1.states import State
from mockube.component_base.http1.writing import (
    LAST_CHUNK,
    InvalidHead,
    encode_chunk,
    encode_request,
    encode_response,
)
from mockube.component_base.tls_stream import ByteStream
from mockube.container_runtime.streams import StreamsClosed

from .http_routing import FixedAnswer, Forward, Header, HttpRouter, ProxiedRequest

KEEP_ALIVE_SECONDS: Final = 75.0
_READ: Final = 32 << 10
_HOP_HEADERS: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
    }
)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Backend(Protocol):
    """A connection to a backend, as a stream."""

    async def read(self, limit: int) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def end(self) -> None:
        """Send nothing more."""

    async def close(self) -> None: ...


OpenBackend = Callable[[Forward], Awaitable["Backend | int"]]
"""Connects to a backend; returns the status of the error if that is not possible, or -1 if it is never answered."""


class HttpProxy:
    """The requests of one client."""

    def __init__(
        self, client: ByteStream, router: HttpRouter, open_backend: OpenBackend, clock: Clock
    ) -> None:
        self._client = client
        self._router = router
        self._open_backend = open_backend
        self._clock = clock
        self._reader = RequestReader()

    async def serve(self, address: str, port: int, *, uses_tls: bool) -> None:
        """Serve requests until the client leaves, or sends what is no request."""
        while (head := await self._read_head()) is not None:
            headers = {name.lower(): value for name, value in heads.pairs(head)}
            request = ProxiedRequest(
                method=head.method,
                target=head.target if head.target.startswith("/") else "/",
                host=_host(headers.get("host", "")),
                headers=headers,
                uses_tls=uses_tls,
                client=address,
                port=port,
            )
            decision = self._router.decide(request)
            if isinstance(decision, Forward):
                stays_open = await self._forward(head, request, decision)
            else:
                stays_open = await self._answer(head, decision)
            if not stays_open or self._reader.state is not State.DONE:
                return
            self._reader.expect_next()

    async def _read_head(self) -> RequestHead | None:
        try:
            while True:
                event = self._reader.next_event()
                if isinstance(event, RequestHead):
                    return event
                if event is not NEED_DATA:
                    return None
                async with supervision.timeout(self._clock, KEEP_ALIVE_SECONDS):
                    self._reader.receive(await self._client.read(_READ))
        except heads.IncompleteMessage:
            return None
        except TimeoutError:
            return None
        except ProtocolError:
            await self._write_answer(
                FixedAnswer(status=400, body=self._router.error_body(400)), keeps_open=False
            )
            return None

    async def _answer(self, head: RequestHead, answer: FixedAnswer) -> bool:
        """Answer without a backend, after the body was read; return whether the connection stays open."""
        with suppress(ProtocolError):
            async for _ in self._body():
                pass
        keeps_open = self._reader.keeps_open
        await self._write_answer(answer, keeps_open=keeps_open, is_head=head.method == "HEAD")
        return keeps_open

    async def _write_answer(self, answer: FixedAnswer, *, keeps_open: bool, is_head: bool = False) -> None:
        headers = [
            *answer.headers,
            ("Content-Length", str(len(answer.body))),
            *(() if keeps_open else (("Connection", "close"),)),
        ]
        await self._client.write(encode_response(answer.status, headers, b"" if is_head else answer.body))

    async def _body(self) -> AsyncIterator[bytes]:
        while (event := self._reader.next_event()) is not END:
            if event is NEED_DATA:
                self._reader.receive(await self._client.read(_READ))
            elif isinstance(event, bytes):
                yield event

    async def _forward(self, head: RequestHead, request: ProxiedRequest, forward: Forward) -> bool:
        """Send a request to its backend, and the response to the client; return whether the connection stays open."""
        length = request.headers.get("content-length", "")
        if forward.max_body and length.isdecimal() and int(length) > forward.max_body:
            await self._write_answer(
                FixedAnswer(status=413, body=self._router.error_body(413)), keeps_open=False
            )
            return False
        backend = await self._open_backend(forward)
        if isinstance(backend, int):
            return await self._answer(
                head, FixedAnswer(status=backend, body=self._router.error_body(backend))
            )
        exchange = _Exchange(self._client, self._reader, backend, self._clock)
        try:
            status = await exchange.run(head, request, forward, self._body)
        finally:
            await backend.close()
        if status:
            await self._write_answer(
                FixedAnswer(status=status, body=self._router.error_body(status)), keeps_open=False
            )
            return False
        return exchange.keeps_open


class _Exchange:
    """A request to a backend, and its response."""

    def __init__(self, client: ByteStream, reader: RequestReader, backend: Backend, clock: Clock) -> None:
        self._client = client
        self._reader = reader
        self._backend = backend
        self._clock = clock
        self.keeps_open = False

    async def run(
        self,
        head: RequestHead,
        request: ProxiedRequest,
        forward: Forward,
        body: Callable[[], AsyncIterator[bytes]],
    ) -> int:
        """Return the status of the error if the backend sent no response; 0 if it did."""
        is_chunked = "transfer-encoding" in request.headers
        upgrade = request.headers.get("upgrade", "")
        try:
            await self._backend.write(_request_head(head, request, forward, is_chunked=is_chunked))
        except (InvalidHead, StreamsClosed):
            return 502
        if request.headers.get("expect", "").lower() == "100-continue":
            await self._client.write(_CONTINUE)
        sender = supervision.start("the body of a request", self._send(body(), is_chunked=is_chunked))
        try:
            response = ResponseReader(head.method)
            answer = await self._read_response_head(response, forward)
            if isinstance(answer, int):
                return answer
            if answer.status == 101:
                await self._client.write(
                    _response_head(answer, forward, [("Connection", "Upgrade"), ("Upgrade", upgrade)])
                )
                await self._pump(response.take_rest())
                return 0
            await self._relay(head, answer, response, forward)
            self.keeps_open = self.keeps_open and sender.done()
            return 0
        finally:
            await supervision.cancel_and_wait([sender])

    async def _send(self, body: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        with suppress(StreamsClosed, ProtocolError):
            async for part in body:
                await self._backend.write(encode_chunk(part) if is_chunked else part)
            if is_chunked:
                await self._backend.write(LAST_CHUNK)

    async def _read_response_head(self, response: ResponseReader, forward: Forward) -> ResponseHead | int:
        try:
            while True:
                event = response.next_event()
                if isinstance(event, ResponseHead) and (event.status >= 200 or event.status == 101):
                    return event
                if event is NEED_DATA:
                    async with supervision.timeout(self._clock, forward.seconds):
                        response.receive(await self._backend.read(_READ))
        except TimeoutError:
            return 504
        except ProtocolError:
            return 502

    async def _relay(
        self, head: RequestHead, answer: ResponseHead, response: ResponseReader, forward: Forward
    ) -> None:
        """Send the response to the client, its body piece by piece."""
        length = answer.header("content-length")
        has_body = response.state is not State.DONE
        is_chunked = has_body and not (length and response.state is State.LENGTH) and not head.is_1_0
        self.keeps_open = self._reader.keeps_open and not (
            head.is_1_0 or (has_body and not length and not is_chunked)
        )
        framing: list[Header] = [("Transfer-Encoding", "chunked")] if is_chunked else []
        if length and not is_chunked:
            framing.append(("Content-Length", length))
        if not self.keeps_open:
            framing.append(("Connection", "close"))
        await self._client.write(_response_head(answer, forward, framing))
        try:
            while (event := response.next_event()) is not END:
                if event is NEED_DATA:
                    async with supervision.timeout(self._clock, forward.seconds):
                        response.receive(await self._backend.read(_READ))
                elif isinstance(event, bytes) and event:
                    await self._client.write(encode_chunk(event) if is_chunked else event)
        except (ProtocolError, TimeoutError):
            # The client sees that the body is not complete.
            self.keeps_open = False
            raise StreamsClosed from None
        if is_chunked:
            await self._client.write(LAST_CHUNK)

    async def _pump(self, first: bytes) -> None:
        """Carry bytes in both directions until one of them ends."""
        if first:
            await self._client.write(first)
        rest = self._reader.take_rest()
        if rest:
            await self._backend.write(rest)
        await supervision.wait_first(_copy(self._client, self._backend), _copy(self._backend, self._client))


async def _copy(source: ByteStream, target: ByteStream) -> None:
    with suppress(StreamsClosed):
        while data := await source.read(_READ):
            await target.write(data)


def _host(text: str) -> str:
    """Return the host in a Host header, without its port."""
    if text.startswith("["):
        return text.partition("]")[0][1:].lower()
    return text.partition(":")[0].lower()


def _request_head(head: RequestHead, request: ProxiedRequest, forward: Forward, *, is_chunked: bool) -> bytes:
    replaced = {name.lower() for name, _ in forward.headers}
    of_connection = {word.strip().lower() for word in request.headers.get("connection", "").split(",")}
    # Of two lengths of a body, only the one by which it was read must go on.
    skipped = (
        _HOP_HEADERS | replaced | of_connection | {"host"} | ({"content-length"} if is_chunked else set())
    )
    passed_headers = [(name, value) for name, value in heads.pairs(head) if name.lower() not in skipped]
    upgrade = request.headers.get("upgrade")
    connection = [("Connection", "Upgrade"), ("Upgrade", upgrade)] if upgrade else [("Connection", "close")]
    headers = [
        ("Host", forward.host or request.headers.get("host", "")),
        *passed_headers,
        *((name, value) for name, value in forward.headers if value),
        *forward.added_headers,
        *connection,
        *([("Transfer-Encoding", "chunked")] if is_chunked else []),
    ]
    return encode_request(head.method, forward.target, headers)


def _response_head(answer: ResponseHead, forward: Forward, framing: Iterable[Header]) -> bytes:
    replaced = {name.lower() for name, _ in forward.response_headers}
    passed_headers = [
        (name, value)
        for name, value in heads.pairs(answer)
        if name.lower() not in _HOP_HEADERS
        and name.lower() not in replaced
        and name.lower() != "content-length"
    ]
    headers = [
        *passed_headers,
        *((name, value) for name, value in forward.response_headers if value),
        *forward.added_response_headers,
        *framing,
    ]
    reason = answer.reason.decode("latin-1") or "Unknown"
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")
