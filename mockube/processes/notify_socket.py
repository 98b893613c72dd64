"""Hear of a process that it is ready, as systemd does."""

import asyncio
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def readiness() -> Iterator[tuple[asyncio.Event, Mapping[str, str]]]:
    """Yield an event that is set once the process is ready, and the environment by which the process reports it."""
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    with (
        tempfile.TemporaryDirectory(prefix="mockube-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver,
    ):
        address = str(Path(folder, "ready"))
        receiver.bind(address)

        def hear() -> None:
            receiver.recv(4096)
            ready.set()

        loop.add_reader(receiver, hear)
        try:
            yield ready, {"NOTIFY_SOCKET": address}
        finally:
            loop.remove_reader(receiver)
