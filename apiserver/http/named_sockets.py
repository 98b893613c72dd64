"""Connections to other servers, whose addresses Go's errors name after the connection was lost."""

import socket
from contextvars import ContextVar
from typing import Any

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from mockube.apimachinery.hosts import join_host_port

_names: ContextVar[list[str] | None] = ContextVar("names", default=None)


class _NamedSocket(socket.socket):
    def connect(self, address: Any) -> None:
        try:
            super().connect(address)
        finally:  # a connection that is still being made has both addresses as well
            _record(self.getsockname(), address)


class NamedConnector(TCPConnector):
    """A connector that records the addresses of the connection of a request, whether it is new or not."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, socket_factory=_named_socket)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 - aiohttp calls it so
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if connection.transport is not None:
            addresses = [connection.transport.get_extra_info(name) for name in ("sockname", "peername")]
            if all(addresses):
                _record(*addresses)
        return connection


def _named_socket(address_info: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address_info
    return _NamedSocket(family, kind, protocol)


def begin_request() -> None:
    """Forget the connection of the task's earlier request."""
    _names.set([])


def connection_names() -> str:
    """Return the addresses of the connection of the task's request; "" if there was none."""
    return next(reversed(_names.get() or ()), "")


def _record(local: Any, remote: Any) -> None:
    if (names := _names.get()) is not None:
        names.append(f"{_text(local)}->{_text(remote)}")


def _text(address: Any) -> str:
    host, port, *_ = address
    return join_host_port(str(host), int(port))
