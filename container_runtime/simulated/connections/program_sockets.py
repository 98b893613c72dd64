"""The sockets that programs of simulated containers use themselves, as nc does: they listen, and keep connections open."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.component_base.http1 import heads
from mockube.component_base.http1.heads import ProtocolError, ResponseHead
from mockube.component_base.http1.reading import END, NEED_DATA, ResponseReader
from mockube.component_base.http1.writing import encode_request
from mockube.container_runtime import limits
from mockube.container_runtime.images.table import HTTP
from mockube.container_runtime.port_connections import relay
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.simulated.network.calls import (
    WAITING,
    Accept,
    Exchange,
    HttpRequest,
    ListenOn,
    Reply,
    SocketCall,
    TakeReply,
)
from mockube.container_runtime.simulated.network.open_sockets import OPEN_SOCKETS, OpenSockets
from mockube.container_runtime.streams import ClientConnection, StreamsClosed
from mockube.network.services import Outcome

from .flows import Flow, FlowClient, ProgramConnection
from .port_listeners import ListeningSocket, PortListeners

_READ: Final = 64 * 1024
_OPEN: Final = Outcome.OPEN.value
_CLOSED: Final = Reply(outcome=_OPEN, is_ended=True, has_room=False)
REFUSED: Final = Reply(outcome=Outcome.REFUSED.value)
Server = Callable[[ClientConnection], Coroutine[Any, Any, Any]]


class _ServedConnection(ProgramConnection):
    """A connection to a server within this process, which sees the end of its client."""

    def __init__(self, notify: Callable[[], None], serve: Server) -> None:
        super().__init__(Flow(), Flow(), notify)
        self._task = supervision.start("a connection of a program", self._serve(serve))

    async def _serve(self, serve: Server) -> None:
        try:
            with suppress(StreamsClosed):
                await serve(FlowClient(self.outgoing, self.incoming))
        finally:
            self.incoming.end()
            self.outgoing.leave()


class _LateReply:
    """The reply to a call, which waits for another program."""

    def __init__(self, notify: Callable[[], None], work: Awaitable[Reply]) -> None:
        self.reply = Reply(outcome=WAITING)
        self._task = supervision.start("a call of a program", self._run(notify, work))

    async def _run(self, notify: Callable[[], None], work: Awaitable[Reply]) -> None:
        self.reply = await work
        notify()

    def close(self) -> None:
        self._task.cancel()


def reply_later(work: Coroutine[Any, Any, Reply]) -> Awaitable[Reply]:
    """Let a program of the same container go on that has to answer a call; return what the call returns at once."""
    sockets = OPEN_SOCKETS.get()
    if sockets is None:
        return work
    number = sockets.add(_LateReply(sockets.notify, work))
    return _ready(Reply(outcome=WAITING, socket=number))


async def _ready(reply: Reply) -> Reply:
    return reply


def answer_about_socket(pod: ReadOnlyTree, call: SocketCall, listeners: PortListeners) -> Reply:
    """Answer a call about a socket of the program."""
    sockets = OPEN_SOCKETS.get()
    if sockets is None:
        return REFUSED
    match call:
        case ListenOn(port=port):
            return _listen(sockets, listeners, meta.uid(pod), port)
        case Accept(socket=number):
            return _accept(sockets, number)
        case TakeReply(socket=number):
            late = sockets.find(number, _LateReply)
            return REFUSED if late is None else late.reply
        case Exchange():
            connection = sockets.find(call.socket, ProgramConnection)
            return _CLOSED if connection is None else _exchange(connection, call)


def _listen(sockets: OpenSockets, listeners: PortListeners, uid: str, port: int) -> Reply:
    opened = listeners.open(uid, port)
    if opened is not None:
        sockets.add(opened)
    listener = listeners.listen(uid, port, sockets.notify)
    return REFUSED if listener is None else Reply(outcome=_OPEN, socket=sockets.add(listener))


def _accept(sockets: OpenSockets, number: int) -> Reply:
    listener = sockets.find(number, ListeningSocket)
    flows = None if listener is None else listener.accept()
    if flows is None:
        return Reply(outcome=WAITING)
    incoming, outgoing = flows
    return Reply(outcome=_OPEN, socket=sockets.add(ProgramConnection(incoming, outgoing, sockets.notify)))


def _exchange(connection: ProgramConnection, call: Exchange) -> Reply:
    incoming, outgoing = connection.incoming, connection.outgoing
    outgoing.put(call.data)
    if call.is_last:
        outgoing.end()
    body = incoming.take(_READ)
    is_ended = incoming.is_over or (outgoing.is_left and not body)
    return Reply(outcome=_OPEN, body=body, has_room=outgoing.has_room, is_ended=is_ended)


# --- connections of programs


def serve_program(serve: Server) -> Reply:
    """Open a connection of a program to a server within this process."""
    sockets = OPEN_SOCKETS.get()
    if sockets is None:
        return Reply(outcome=_OPEN)
    return Reply(outcome=_OPEN, socket=sockets.add(_ServedConnection(sockets.notify, serve)))


async def connect_to_program(listeners: PortListeners, uid: str, port: int) -> Reply:
    """Open a connection of a program to another one that listens."""
    flows = await listeners.connect(uid, port)
    if flows is None:
        return REFUSED
    sent, received = flows
    sockets = OPEN_SOCKETS.get()
    if sockets is None:
        return Reply(outcome=_OPEN)
    return Reply(outcome=_OPEN, socket=sockets.add(ProgramConnection(received, sent, sockets.notify)))


async def connect_to_process(port: ProcessPort, clock: Clock) -> Reply:
    """Open a connection of a program to a process."""
    try:
        reader, writer = await port.connect()
    except OSError:
        return REFUSED
    return serve_program(partial(relay, reader, writer, clock))


async def send_to_program(listeners: PortListeners, uid: str, port: int, request: HttpRequest) -> Reply:
    """Send an HTTP request to a program that listens; return its response, without a status if it is none."""
    flows = await listeners.connect(uid, port)
    if flows is None:
        return REFUSED
    sent, received = flows
    length = [("Content-Length", str(len(request.body)))] if request.body else []
    headers = [header for header in request.headers if header[0].lower() != "content-length"]
    sent.put(encode_request(request.method, request.path, [*headers, *length], request.body))
    try:
        head, body = await _read_response(received, request.method)
    except ProtocolError:
        return Reply(outcome=_OPEN)
    finally:
        sent.end()
        received.leave()
    return Reply(
        outcome=_OPEN,
        speaks=HTTP,
        status=head.status,
        reason=head.reason.decode("latin-1"),
        headers=tuple(heads.pairs(head)),
        body=body,
    )


async def _read_response(received: Flow, method: str) -> tuple[ResponseHead, bytes]:
    """Read a response to its end; raise a `ProtocolError` for anything else."""
    reader, head, body = ResponseReader(method), None, bytearray()
    while (event := reader.next_event()) is not END:
        if event is NEED_DATA:
            reader.receive(await received.read(_READ))
        elif isinstance(event, bytes):
            body += event
            if len(body) > limits.MAX_LOCAL_RESPONSE:
                break
        elif isinstance(event, ResponseHead):
            head = event
    assert head is not None
    return head, bytes(body)
