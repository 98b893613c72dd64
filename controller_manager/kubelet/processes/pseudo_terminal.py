"""A pseudo-terminal of a process, as its owner reads and writes it."""

import asyncio
import fcntl
import os
import struct
import termios
from contextlib import suppress
from typing import Final

READ: Final = 64 << 10


class _TerminalInput:
    """What is typed into a pseudo-terminal."""

    def __init__(self, controller: int) -> None:
        self._controller = controller
        self._waiting = b""
        self._is_closed = False

    def write(self, data: bytes) -> None:
        self._waiting += data

    async def drain(self) -> None:
        """Until all of it was taken."""
        loop = asyncio.get_running_loop()
        while self._waiting and not self._is_closed:
            with suppress(BlockingIOError):
                self._waiting = self._waiting[os.write(self._controller, self._waiting) :]
            if self._waiting:
                free = asyncio.Event()
                loop.add_writer(self._controller, free.set)
                try:
                    await free.wait()
                finally:
                    loop.remove_writer(self._controller)

    def close(self) -> None:
        self._is_closed = True


class PseudoTerminal(asyncio.ReadTransport):
    """A reader of what a process writes to its terminal, up to the end of the process, and a writer of what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.controller, self.other = os.openpty()
        os.set_blocking(self.controller, False)
        self.reader = asyncio.StreamReader(limit=READ)
        self.reader.set_transport(self)
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self.input = _TerminalInput(self.controller)
        self.resume_reading()

    def pause_reading(self) -> None:
        self._loop.remove_reader(self.controller)

    def resume_reading(self) -> None:
        if not self._is_over:
            self._loop.add_reader(self.controller, self._read)

    def resize(self, width: int, height: int) -> None:
        if self.controller >= 0:
            size = struct.pack("HHHH", height, width, 0, 0)
            with suppress(OSError):
                fcntl.ioctl(self.controller, termios.TIOCSWINSZ, size)

    def finish(self) -> None:
        """Read the rest of the output of a process that has ended."""
        while not self._is_over and self._read():
            pass
        if not self._is_over:
            self._on_end()

    def close(self) -> None:
        if self.controller >= 0:
            self.pause_reading()
            os.close(self.controller)
            os.close(self.other)
            self._is_over, self.controller = True, -1

    def _read(self) -> bool:
        try:
            data = os.read(self.controller, READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self.reader.feed_data(data)
        else:
            self._on_end()
        return bool(data)

    def _on_end(self) -> None:
        self.pause_reading()
        self._is_over = True
        self.reader.feed_eof()
