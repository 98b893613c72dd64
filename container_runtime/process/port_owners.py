"""Whether a port of this machine is one of a pod's processes, and not one of another program, such as the machine's own SSH server.

A pod may declare any port. Without this check, whoever may create pods reached the services of the machine by its proxies and Services.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"
_PROC: Final = Path("/proc")


class PortOwners:
    """The listening sockets that are known to be a pod's own."""

    def __init__(self, marker: str) -> None:
        """`marker` is a text that the variables of all processes of the pod have, also of those in other sessions."""
        self._marker = marker.encode()
        self._own = set[str]()

    def has(self, port: int) -> bool:
        """Return whether the sockets that listen on a port are the pod's; True where the system does not say whose they are."""
        if sys.platform != "linux":
            return True
        inodes = {*_listening(port)}
        if not inodes <= self._own:
            self._own |= {*_sockets(self._marker)}
        return inodes <= self._own


def _listening(port: int) -> Iterator[str]:
    """Yield the inodes of the sockets that listen on a port."""
    suffix = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and fields[1].endswith(suffix):
                    yield fields[9]


def _sockets(marker: bytes) -> Iterator[str]:
    """Yield the inodes of the sockets of all processes whose variables have a text."""
    for process in _PROC.iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if marker in (process / "environ").read_bytes():
                    yield from _sockets_of(process)


def _sockets_of(process: Path) -> Iterator[str]:
    for descriptor in (process / "fd").iterdir():
        with suppress(OSError):
            kind, _, inode = str(descriptor.readlink()).partition(":")
            if kind == "socket":
                yield inode.strip("[]")
