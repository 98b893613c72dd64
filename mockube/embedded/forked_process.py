"""The process of a fork, as the process that holds its handle sees it: it sends commands, and ends it.

The process ends when its socket does. It cannot outlive the handle's process, whose end closes the socket.
"""

import os
import signal
import socket
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from mockube.failure import Failure
from mockube.objects.errors import InvalidValue

from .fork_messages import RESPONSES, ForkCommand, FrameBuffer, Refused, Response, Started, encode_frame

T = TypeVar("T")

START_SECONDS: Final = 30.0
END_SECONDS: Final = 5.0
"""How long a process may take to end after its socket, before it is killed."""
_READ: Final = 1 << 20

StartProcess = Callable[[socket.socket], int]
"""Forks a process that holds the socket, and returns its id."""


class ForkEnded(Failure):
    """The process of a fork has ended."""


class ForkedProcess:
    def __init__(self, start: StartProcess, *, is_child: bool, seconds: float = START_SECONDS) -> None:
        """Start a process and wait until it serves; `is_child`: it is a child of this process, which has to wait for its end."""
        self._socket, theirs = socket.socketpair()
        self._frames, self._lock = FrameBuffer(), threading.Lock()
        self._pending = 0
        """The number of responses that were not received yet: more than one after an interrupted call."""
        try:
            with theirs:
                pid = start(theirs)
        except BaseException:
            self._socket.close()
            raise
        self.stop = weakref.finalize(self, _end_process, self._socket, pid, os.getpid(), is_child=is_child)
        """End the process, if it still runs."""
        self.pid = pid
        try:
            self._socket.settimeout(seconds)
            started = self._receive()
            self._socket.settimeout(None)
        except TimeoutError:
            self.stop()
            raise Failure(
                f"the fork did not start within {seconds:g} s: a thread of this process may have held a lock that it needs"
            ) from None
        except BaseException:
            self.stop()
            raise
        if not isinstance(started, Started):
            self.stop()
            raise _error_of(started)
        self.port, self.has_steps = started.port, started.has_steps

    @property
    def is_running(self) -> bool:
        return self.stop.alive

    def call(
        self, command: ForkCommand, result: type[T] | Any = Any, descriptors: Sequence[int] = ()
    ) -> T | Any:
        """Send a command with descriptors, and return its result."""
        with self._lock:
            if not self.is_running:
                raise ForkEnded("the fork was stopped")
            try:
                socket.send_fds(self._socket, [encode_frame(command)], descriptors)
                self._pending += 1
                while self._pending > 1:
                    self._receive()
                    self._pending -= 1
                response = self._receive()
                self._pending = 0
            except OSError as error:
                raise ForkEnded(f"the fork has ended: {error}") from None
        if isinstance(response, Refused):
            raise _error_of(response)
        assert not isinstance(response, Started)
        return msgspec.msgpack.decode(response.value, type=result)

    def _receive(self) -> Response:
        data = b""
        while True:
            for body in self._frames.receive(data):
                return RESPONSES.decode(body)
            if not (data := self._socket.recv(_READ)):
                raise ForkEnded("the fork has ended")


def _error_of(response: Response) -> Exception:
    assert isinstance(response, Refused)
    return InvalidValue(response.message) if response.is_invalid else Failure(response.message)


def _end_process(ours: socket.socket, pid: int, owner: int, *, is_child: bool) -> None:
    """Close the socket of a process, and wait until it has ended, unless this is another process than the handle's."""
    if os.getpid() != owner:
        return
    with ours, suppress(OSError):
        ours.settimeout(END_SECONDS)
        ours.shutdown(socket.SHUT_WR)
        while ours.recv(_READ):
            pass
    if is_child:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)  # it has ended, unless its loop is blocked
            os.waitpid(pid, 0)
