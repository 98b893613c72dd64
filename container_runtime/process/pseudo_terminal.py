"""The controlling side of a process's pseudo-terminal."""

import asyncio
import fcntl
import os
import struct
import termios
from contextlib import suppress
from typing import Final

READ: Final = 64 << 10


class _TerminalInput:
    """Writes the input of a pseudo-terminal."""

    def __init__(self, controller: int) -> None:
        self._controller = controller
        self._unsent = b""
        self._is_closed = False
        self.has_open_line = False

    def write(self, data: bytes) -> None:
        self._unsent += data
        self.has_open_line = not data.endswith((b"\n", b"\r"))

    def is_closing(self) -> bool:
        return self._is_closed

    async def drain(self) -> None:
        """Wait until all data is written to the terminal."""
        loop = asyncio.get_running_loop()
        while self._unsent and not self._is_closed:
            with suppress(BlockingIOError):
                self._unsent = self._unsent[os.write(self._controller, self._unsent) :]
            if self._unsent:
                writable = asyncio.Event()
                loop.add_writer(self._controller, writable.set)
                try:
                    await writable.wait()
                finally:
                    loop.remove_writer(self._controller)

    def close(self) -> None:
        self._is_closed = True


class PseudoTerminal(asyncio.ReadTransport):
    """Reads the output of a process from its terminal until the process ends, and writes its input."""

    def __init__(self) -> None:
        super().__init__()
        self.controller, self.process_side = os.openpty()
        os.set_blocking(self.controller, False)
        self.reader = asyncio.StreamReader(limit=READ)
        self.reader.set_transport(self)
        self._loop = asyncio.get_running_loop()
        self._has_ended = False
        self.input = _TerminalInput(self.controller)
        self.resume_reading()

    def pause_reading(self) -> None:
        self._loop.remove_reader(self.controller)

    def resume_reading(self) -> None:
        if not self._has_ended:
            self._loop.add_reader(self.controller, self._read)

    def resize(self, width: int, height: int) -> None:
        if self.controller >= 0:
            size = struct.pack("HHHH", height, width, 0, 0)
            with suppress(OSError):
                fcntl.ioctl(self.controller, termios.TIOCSWINSZ, size)

    async def end_input(self) -> None:
        """Send the character that ends the input at the begin of a line, and elsewhere only the line."""
        if self.controller >= 0:
            end = termios.tcgetattr(self.controller)[6][termios.VEOF]
            self.input.write(end * 2 if self.input.has_open_line else end)
            await self.input.drain()

    def finish(self) -> None:
        """Read the rest of the output after the end of the process."""
        while not self._has_ended and self._read():
            pass
        if not self._has_ended:
            self._on_end()

    def close(self) -> None:
        if self.controller >= 0:
            self.pause_reading()
            os.close(self.controller)
            os.close(self.process_side)
            self._has_ended, self.controller = True, -1

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
        self._has_ended = True
        self.reader.feed_eof()
