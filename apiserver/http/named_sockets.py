"""Sockets of connections to other servers, whose addresses Go's errors name after the connection was lost."""

import socket
from contextvars import ContextVar
from typing import Any

from mockube.apimachinery.hosts import join_host_port


class NamedSocket(socket.socket):
    """A socket that remembers the addresses of its connection."""

    names = ""

    def connect(self, address: Any) -> None:
        try:
            super().connect(address)
        finally:  # a connection that is still being made has both addresses as well
            self.names = f"{_text(self.getsockname())}->{_text(address)}"


_latest: ContextVar[NamedSocket | None] = ContextVar("latest", default=None)


def named_socket(address_info: tuple[Any, ...]) -> socket.socket:
    """Return a socket for a result of getaddrinfo; it is the latest one of its task."""
    family, kind, protocol, *_ = address_info
    created = NamedSocket(family, kind, protocol)
    _latest.set(created)
    return created


def forget_socket() -> None:
    """Begin a request, which may use a connection that exists."""
    _latest.set(None)


def connection_names() -> str:
    """Return the addresses of the connection that the task has made for its request; "" if it has made none."""
    latest = _latest.get()
    return "" if latest is None else latest.names


def _text(address: Any) -> str:
    host, port, *_ = address
    return join_host_port(str(host), int(port))
