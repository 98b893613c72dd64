"""The proxy behind the ports of Ingresses and Gateways: requests one after the other, each to the backend of its rule.

It speaks HTTP/1.1 on both sides; a connection that a backend switches to another protocol, such as WebSocket, carries any bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.component_base.http1 import heads, requests
from mockube.component_base.http1.heads import ProtocolError, RequestHead, ResponseHead
from mockube.component_base.http1.reading import END, NEED_DATA, ResponseReader, StrictRequestReader
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

from . import limits
from .http_routing import FixedAnswer, Forward, Header, HttpRouter, ProxiedRequest
from .unfinished_heads import UnfinishedHead

_READ: Final = 32 << 10
_HOP_HEADERS: Final = frozenset(
    {
        "connection",
        "expect",
        "http2-settings",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OWN_HEADERS: Final = _HOP_HEADERS | {"content-length", "host"}
"""The headers that the proxy writes itself, whatever a client says about them in Connection."""
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


class _ReadingClient:
    """The stream of a client that has to read what is written to it."""

    def __init__(self, stream: ByteStream, clock: Clock) -> None:
        self._stream, self._clock = stream, clock

    async def read(self, limit: int) -> bytes:
        return await self._stream.read(limit)

    async def write(self, data: bytes) -> None:
        """Write, or raise StreamsClosed if the client does not read in time."""
        try:
            async with supervision.timeout(self._clock, limits.RESPONSE_SECONDS):
                await self._stream.write(data)
        except TimeoutError:
            raise StreamsClosed from None


class HttpProxy:
    """The requests of one client."""

    def __init__(
        self,
        client: ByteStream,
        router: HttpRouter,
        open_backend: OpenBackend,
        clock: Clock,
        head: UnfinishedHead,
    ) -> None:
        self._client = _ReadingClient(client, clock)
        self._router = router
        self._open_backend = open_backend
        self._clock = clock
        self._head = head
        self._idle_seconds = limits.HEAD_SECONDS
        self._reader = StrictRequestReader()

    async def serve(self, address: str, port: int, *, uses_tls: bool) -> None:
        """Serve requests until the client leaves, or sends what is no request."""
        while (head := await self._read_head()) is not None:
            request = _proxied_request(head, address, port, uses_tls=uses_tls)
            decision = self._router.decide(request)
            if isinstance(decision, Forward):
                stays_open = await self._forward(head, request, decision)
            else:
                stays_open = await self._answer(head, decision)
            if not stays_open or self._reader.state is not State.DONE:
                return
            self._reader.expect_next()

    async def _read_head(self) -> RequestHead | None:
        """Return the next head; None if there is none in time, or one that is refused."""
        self._head.begin()
        try:
            return await self._receive_head()
        except (heads.IncompleteMessage, TimeoutError):
            return None
        except ProtocolError as error:
            await self._write_answer(self._error(error.status), keeps_open=False)
            return None
        finally:
            self._head.end()
            self._idle_seconds = limits.KEEP_ALIVE_SECONDS

    async def _receive_head(self) -> RequestHead | None:
        deadline, has_begun = self._clock.monotonic() + self._idle_seconds, False
        while (event := self._reader.next_event()) is NEED_DATA:
            if self._reader.unread and not has_begun:
                has_begun = True
                deadline = min(deadline, self._clock.monotonic() + limits.HEAD_SECONDS)
            if not self._head.has_room(self._reader.unread):
                raise heads.MessageTooLong("there is no memory for the head of a request", 431)
            async with supervision.timeout(self._clock, deadline - self._clock.monotonic()):
                self._reader.receive(await self._client.read(_READ))
        return event if isinstance(event, RequestHead) else None

    async def _answer(self, head: RequestHead, answer: FixedAnswer, *, keeps_open: bool = True) -> bool:
        """Answer without a backend, and read what follows of the body; return whether the connection stays open."""
        # A client that waits for "100 Continue" may send its body or not, and the next request would be the one or the other.
        keeps_open = keeps_open and self._reader.keeps_open and b"expect" not in head.fields
        await self._write_answer(answer, keeps_open=keeps_open, is_head=head.method == "HEAD")
        with suppress(ProtocolError, TimeoutError):
            async with supervision.timeout(self._clock, limits.LINGER_SECONDS):
                async for _ in self._body():
                    pass
        return keeps_open

    def _error(self, status: int) -> FixedAnswer:
        return FixedAnswer(status=status, body=self._router.error_body(status))

    async def _write_answer(self, answer: FixedAnswer, *, keeps_open: bool, is_head: bool = False) -> None:
        headers = [
            *answer.headers,
            ("Content-Length", str(len(answer.body))),
            *(() if keeps_open else (("Connection", "close"),)),
        ]
        await self._client.write(encode_response(answer.status, headers, b"" if is_head else answer.body))

    async def _body(self, maximum: int = 0) -> AsyncIterator[bytes]:
        """Yield the parts of the body; raise ProtocolError if it is malformed, longer than a maximum, or does not arrive."""
        size, seconds = 0, limits.BODY_SECONDS
        while (event := self._reader.next_event()) is not END:
            if event is NEED_DATA:
                began = self._clock.monotonic()
                try:
                    async with supervision.timeout(self._clock, seconds):
                        data = await self._client.read(_READ)
                except TimeoutError:
                    raise ProtocolError("the body of a request does not arrive", 408) from None
                self._reader.receive(data)
                seconds += len(data) / limits.MIN_BODY_RATE - (self._clock.monotonic() - began)
                seconds = min(seconds, limits.BODY_SECONDS)
            elif isinstance(event, bytes):
                size += len(event)
                if maximum and size > maximum:
                    raise ProtocolError("the body of a request is too long", 413)
                yield event

    async def _forward(self, head: RequestHead, request: ProxiedRequest, forward: Forward) -> bool:
        """Send a request to its backend, and the response to the client; return whether the connection stays open."""
        length = request.headers.get("content-length", "")
        if forward.max_body and length.isdecimal() and int(length) > forward.max_body:
            return await self._answer(head, self._error(413), keeps_open=False)
        backend = await self._open_backend(forward)
        if isinstance(backend, int):
            return await self._answer(head, self._error(backend))
        exchange = _Exchange(self._client, self._reader, backend, self._clock, self._head.begin)
        try:
            status = await exchange.run(head, request, forward, self._body(forward.max_body))
        except InvalidHead:
            status = 502
        finally:
            await backend.close()
        if status:
            return await self._answer(head, self._error(status), keeps_open=False)
        return exchange.keeps_open


class _Exchange:
    """A request to a backend, and its response."""

    def __init__(
        self,
        client: ByteStream,
        reader: StrictRequestReader,
        backend: Backend,
        clock: Clock,
        on_switch: Callable[[], None],
    ) -> None:
        """`on_switch` is called when the connection has another protocol from then on."""
        self._on_switch = on_switch
        self._client = client
        self._reader = reader
        self._backend = backend
        self._clock = clock
        self._body_error = 0
        """The status for a body that is malformed or does not arrive."""
        self.keeps_open = False

    async def run(
        self,
        head: RequestHead,
        request: ProxiedRequest,
        forward: Forward,
        body: AsyncIterator[bytes],
    ) -> int:
        """Return the status of the error if the backend sent no response; 0 if it did."""
        is_chunked = "transfer-encoding" in request.headers
        protocols = _protocols(head, request)
        try:
            await self._backend.write(_request_head(head, request, forward, protocols))
        except StreamsClosed:
            return 502
        if request.headers.get("expect", "").lower() == "100-continue":
            await self._client.write(_CONTINUE)
        sender = supervision.start("the body of a request", self._send(body, is_chunked=is_chunked))
        try:
            response = ResponseReader(head.method)
            answer = await self._read_response_head(response, forward, sender)
            if self._body_error:
                return self._body_error
            if isinstance(answer, int):
                return answer
            if answer.status == 101:
                protocol = answer.header("upgrade")
                if not protocol or protocol.lower() not in protocols.lower().split(", "):
                    return 502
                await sender
                switch = [("Connection", "Upgrade"), ("Upgrade", protocol)]
                await self._client.write(_response_head(answer, forward, switch))
                await self._pump(response.take_rest())
                return 0
            await self._relay(head, answer, response, forward)
            return 0
        finally:
            await supervision.cancel_and_wait([sender])

    async def _send(self, body: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        try:
            async for part in body:
                await self._backend.write(encode_chunk(part) if is_chunked else part)
            if is_chunked:
                await self._backend.write(LAST_CHUNK)
        except StreamsClosed:
            pass
        except ProtocolError as error:
            self._body_error = error.status
            await self._backend.close()

    async def _read_response_head(
        self, response: ResponseReader, forward: Forward, sender: "asyncio.Task[None]"
    ) -> ResponseHead | int:
        """Return the head of the response, or the status of an error. A backend has time once the body was sent to it."""
        try:
            while True:
                event = response.next_event()
                if isinstance(event, ResponseHead) and (event.status >= 200 or event.status == 101):
                    return event
                if event is NEED_DATA:
                    is_sent = sender.done()
                    try:
                        async with supervision.timeout(self._clock, forward.seconds):
                            response.receive(await self._backend.read(_READ))
                    except TimeoutError:
                        if is_sent:
                            return 504
        except ProtocolError:
            return 502

    async def _relay(
        self, head: RequestHead, answer: ResponseHead, response: ResponseReader, forward: Forward
    ) -> None:
        """Send the response to the client, its body piece by piece."""
        length, *others = {each.strip() for each in answer.header("content-length").split(",")}
        is_chunked = response.state not in (State.LENGTH, State.DONE) and not head.is_1_0
        self.keeps_open = self._reader.keeps_open
        framing: list[Header] = [("Transfer-Encoding", "chunked")] if is_chunked else []
        if response.state is State.LENGTH or (
            response.state is State.DONE and length.isdecimal() and not others
        ):
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
        self._on_switch()
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


def _proxied_request(head: RequestHead, client: str, port: int, *, uses_tls: bool) -> ProxiedRequest:
    """Return what rules see of a request: of headers that are repeated all values, of a URL its own host."""
    headers = dict[str, str]()
    for name, value in heads.pairs(head):
        key = name.lower()
        headers[key] = f"{headers[key]},{value}" if key in headers else value
    target = head.target
    if not target.startswith("/"):
        headers["host"], target = requests.split_url(target)
    return ProxiedRequest(
        method=head.method,
        target=target,
        host=_host(headers.get("host", "")),
        headers=headers,
        uses_tls=uses_tls,
        client=client,
        port=port,
    )


def _host(text: str) -> str:
    """Return the host in a Host header, without its port and the dot of a name that is complete."""
    if text.startswith("["):
        return text.partition("]")[0][1:].lower()
    return text.partition(":")[0].lower().removesuffix(".")


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in text.split(","))


def _protocols(head: RequestHead, request: ProxiedRequest) -> str:
    """Return the protocols to which a client asks to switch, with commas between them; "" for none."""
    if head.is_1_0 or "upgrade" not in _words(request.headers.get("connection", "")):
        return ""
    return requests.protocols(request.headers.get("upgrade", ""))


def _request_head(head: RequestHead, request: ProxiedRequest, forward: Forward, protocols: str) -> bytes:
    """Return the head for the backend. Nothing that a client sends decides how it ends, but the body that was read."""
    present = request.headers
    skipped = (
        _OWN_HEADERS | _words(present.get("connection", "")) | {name.lower() for name, _ in forward.headers}
    )
    framing: list[Header] = []
    if "transfer-encoding" in present:
        framing = [("Transfer-Encoding", "chunked")]
    elif "content-length" in present:
        framing = [("Content-Length", present["content-length"])]
    headers = [
        ("Host", forward.host or present.get("host") or "_"),  # the name of nginx's server for any host
        *((name, value) for name, value in heads.pairs(head) if name.lower() not in skipped),
        *_of_rules(forward.headers),
        *_of_rules(forward.added_headers),
        *([("Connection", "Upgrade"), ("Upgrade", protocols)] if protocols else [("Connection", "close")]),
        *framing,
    ]
    return encode_request(head.method, forward.target, headers)


def _of_rules(headers: Iterable[Header]) -> Iterable[Header]:
    """Return the headers that rules set, without those that only the proxy may write."""
    return ((name, value) for name, value in headers if value and name.lower() not in _OWN_HEADERS)


def _response_head(answer: ResponseHead, forward: Forward, framing: Iterable[Header]) -> bytes:
    replaced = {name.lower() for name, _ in forward.response_headers}
    skipped = _OWN_HEADERS | _words(answer.header("connection")) | replaced
    headers = [
        *((name, value) for name, value in heads.pairs(answer) if name.lower() not in skipped),
        *_of_rules(forward.response_headers),
        *_of_rules(forward.added_response_headers),
        *framing,
    ]
    return encode_response(
        answer.status, headers, reason=answer.reason.decode("utf-8", "surrogateescape") or "Unknown"
    )
