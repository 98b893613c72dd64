"""The sockets of one command: it closes them one by one, and all of them at its end."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Protocol, TypeVar

_S = TypeVar("_S", bound="OpenSocket")


class OpenSocket(Protocol):
    def close(self) -> None:
        """Close it; a second time has no effect."""


class OpenSockets:
    def __init__(self, wake: Callable[[], None], has_input: Callable[[], bool]) -> None:
        """`wake` is called when something has happened on a socket, for a command that sleeps.

        `has_input` returns whether a read of the standard input of the command does not wait.
        """
        self._wake = wake
        self.has_input = has_input
        self._sockets: dict[int, OpenSocket] = {}
        self._number = 0
        self._has_news = False

    def add(self, socket: OpenSocket) -> int:
        """Keep a socket; return its number."""
        self._number += 1
        self._sockets[self._number] = socket
        return self._number

    def find(self, number: int, kind: type[_S]) -> _S | None:
        socket = self._sockets.get(number)
        return socket if isinstance(socket, kind) else None

    def notify(self) -> None:
        """Let the command look at its sockets."""
        self._has_news = True
        self._wake()

    def note_input(self) -> None:
        """Let a command look at its input that waits for it and for its sockets."""
        if self.is_used():
            self.notify()

    def take_news(self) -> bool:
        """Return whether anything has happened on a socket since the last time."""
        has_news, self._has_news = self._has_news, False
        return has_news

    def is_used(self) -> bool:
        return bool(self._sockets)

    def close(self, number: int) -> None:
        socket = self._sockets.pop(number, None)
        if socket is not None:
            socket.close()

    def close_all(self) -> None:
        for number in list(self._sockets):
            self.close(number)


OPEN_SOCKETS: Final[ContextVar[OpenSockets | None]] = ContextVar("open_sockets", default=None)
"""The sockets of the command that is executed."""


def close_socket(number: int) -> None:
    """Close a socket of the command that is executed; a program that is killed cannot call the network any more."""
    sockets = OPEN_SOCKETS.get()
    if sockets is not None:
        sockets.close(number)


def has_input() -> bool:
    """Return whether a read of the standard input of the command does not wait, as far as that is known."""
    sockets = OPEN_SOCKETS.get()
    return sockets is None or sockets.has_input()
