"""The descriptors of a forked process: none of them stays shared with the parent.

A number is not closed but replaced, since the objects of the parent that use it exist in the forked process too: they would
close, or write to, the next descriptor that gets the number.
"""

import os
import socket
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

FOLDER = "/proc/self/fd"
_BACKLOG = 1024


def replace_descriptors(exceptions: Collection[int], ports: Collection[int]) -> Mapping[int, int]:
    """Replace all descriptors of this process but the `exceptions`, and return the new port of each of the `ports`.

    A listener on one of the `ports` is replaced by a listener on a free port. Another connection has ended for both sides'
    readers, what the kernel signals by a descriptor is never signalled, and a file is empty.
    """
    numbers = [int(name) for name in os.listdir(FOLDER) if int(name) not in exceptions]  # noqa: PTH208 - numbers, not paths
    new_ports: dict[int, int] = {}
    with _Replacements() as replacements:
        for number in numbers:
            with suppress(OSError):  # the descriptor with which the folder was read
                os.dup2(replacements.find(number, ports, new_ports), number, inheritable=False)
    return new_ports


class _Replacements(ExitStack):
    """Descriptors to copy; they are closed at the end, their copies stay."""

    def __init__(self) -> None:
        super().__init__()
        self._empty = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.callback(os.close, self._empty)
        ended, other = socket.socketpair()
        other.close()
        self._ended = self.enter_context(ended)
        # The other end stays open until the process ends, so that nothing is ever received.
        self._silent, other = socket.socketpair()
        other.detach()
        self.callback(self._silent.close)
        for each in (self._ended, self._silent):
            each.settimeout(0)

    def find(self, number: int, ports: Collection[int], new_ports: dict[int, int]) -> int:
        """Return what replaces a descriptor."""
        mode = os.fstat(number).st_mode
        if stat.S_ISSOCK(mode):
            return self._of_socket(number, ports, new_ports)
        if stat.S_ISFIFO(mode):
            return self._ended.fileno()
        # What has no type is an epoll, an event, a timer, a process.
        return self._empty if stat.S_IFMT(mode) else self._silent.fileno()

    def _of_socket(self, number: int, ports: Collection[int], new_ports: dict[int, int]) -> int:
        with _borrowed(number) as found:
            if found.type != socket.SOCK_STREAM:
                return self._silent.fileno()
            if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return self._ended.fileno()
            if found.family not in (socket.AF_INET, socket.AF_INET6) or found.getsockname()[1] not in ports:
                return self._silent.fileno()
            host, port = found.getsockname()[:2]
            listener = socket.create_server((host, 0), family=found.family, backlog=_BACKLOG)
        self.callback(listener.close)
        listener.settimeout(0)
        new_ports[port] = listener.getsockname()[1]
        return listener.fileno()


@contextmanager
def _borrowed(number: int) -> Iterator[socket.socket]:
    """Yield the socket of a descriptor, which is not closed."""
    found = socket.socket(fileno=number)
    try:
        yield found
    finally:
        found.detach()
