"""The one place where requests and responses of aiohttp become those of the handler, and back."""

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from mockube.apiserver.authn.credentials import DistinguishedName
from mockube.apiserver.http.body import read
from mockube.apiserver.http.connection import Connection
from mockube.apiserver.http.response import Answer
from mockube.apiserver.http.streams import Chunks, Messages
from mockube.apiserver.request.filter import Handle
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.wire.negotiation import Format


def adapt_handler(handle: Handle) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Return the handler as aiohttp calls it."""

    async def answer(http: web.BaseRequest) -> web.StreamResponse:
        client = SocketClient(http)
        request = Request(
            http.method, http.path, http.query_string, http.headers, client, version=http.version
        )
        response = await handle(request)
        return client.answer_to(response)

    return answer


class SocketClient:
    """The client of a request that came over a socket."""

    __slots__ = ("_answer", "_connection", "_http", "_sink", "headers")

    def __init__(self, http: web.BaseRequest) -> None:
        self._http = http
        self._connection: Connection = http.protocol  # type: ignore[assignment]
        self._answer: Answer | None = None
        self._sink: Chunks | Messages | None = None
        self.headers: dict[str, str] = {}

    @property
    def uri(self) -> str:
        return self._http.path_qs

    @property
    def address(self) -> str:
        return self._http.remote or ""

    @property
    def certificate(self) -> tuple[DistinguishedName, float, str]:
        return self._connection.certificate

    @property
    def has_body(self) -> bool:
        return self._http.can_read_body

    @property
    def is_cut(self) -> bool:
        return self._connection.is_cut

    def set_authenticated(self) -> None:
        self._connection.is_authenticated = True

    def on_lost(self, callback: Callable[[], None] | None) -> None:
        self._connection.on_lost = callback

    def abort(self) -> None:
        transport = self._http.transport
        if transport is not None:
            transport.abort()

    async def read(self, limit: int) -> bytes:
        return await read(self._http, limit)

    async def write(self, response: Response) -> None:
        self._answer = Answer(response, self.headers)
        await self._answer.prepare(self._http)
        await self._answer.write_eof()

    def stream(self, response: Response) -> Chunks:
        self._sink = sink = Chunks(self._http, response, self.headers)
        return sink

    def messages(self, protocols: Sequence[str], written: Format, on_closed: Callable[[], None]) -> Messages:
        self._sink = sink = Messages(self._http, protocols, written, on_closed)
        sink.response.headers.update(self.headers)
        return sink

    def answer_to(self, response: Response) -> web.StreamResponse:
        """Return what aiohttp writes; nothing more if it was written already."""
        if self._sink is not None and self._sink.response.prepared:
            if not self._sink.has_ended:
                self.abort()  # a stream that ends too early must not look whole
            return self._sink.response
        return self._answer or Answer(response, self.headers)
