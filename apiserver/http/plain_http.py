"""HTTP requests that a client has sent without TLS to a port that needs it: the client reads why it gets no response."""

import asyncio
import socket
from contextlib import ExitStack
from typing import Final

ANSWER: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
"""Go's answer, to the byte."""
_BEGINNINGS: Final = frozenset({b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"})
"""The beginnings of requests that Go recognises. Others, such as those of PATCH and DELETE, end the handshake."""
_SIZE: Final = 5
_MAX_REST: Final = 1 << 20
"""The most bytes of a request that are read before its connection is closed, since unread ones would reset it."""


async def refuse_plain_http(accepted: socket.socket) -> bool:
    """Answer and close a connection that begins with an HTTP request, or with nothing; return whether it does."""
    with ExitStack() as stack:
        stack.callback(accepted.close)
        if not _may_be_http(await _peek(accepted)):
            stack.pop_all()
            return False
        await _answer(accepted)
    return True


async def _answer(accepted: socket.socket) -> None:
    loop, received = asyncio.get_running_loop(), b""
    while len(received) < _SIZE and _may_be_http(received):
        data = await loop.sock_recv(accepted, _SIZE - len(received))
        if not data:
            return
        received += data
    if received in _BEGINNINGS:
        await loop.sock_sendall(accepted, ANSWER)
        _skip_rest(accepted)


def _may_be_http(received: bytes) -> bool:
    return any(beginning.startswith(received) for beginning in _BEGINNINGS)


async def _peek(accepted: socket.socket) -> bytes:
    """Return the first bytes that arrive; they stay in the socket."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return accepted.recv(_SIZE, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            readable = loop.create_future()
            loop.add_reader(accepted, _set_done, readable)
            try:
                await readable
            finally:
                loop.remove_reader(accepted)


def _set_done(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def _skip_rest(accepted: socket.socket) -> None:
    try:
        accepted.shutdown(socket.SHUT_WR)
        for _ in range(_MAX_REST // 65536):
            if not accepted.recv(65536):
                return
    except OSError:
        return  # nothing more has arrived, or the client has closed it
