"""A simulated terminal between a client and a command: it echoes input, edits lines, and translates line ends."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from mockube.component_base.supervision import run_with, start
from mockube.container_runtime.streams import STDOUT, InputStream, Streams, StreamsClosed

T = TypeVar("T")
MAX_LINE: Final = 4096
"""Linux' buffer of a line (N_TTY_BUF_SIZE): further characters are dropped."""
_ERASE: Final = frozenset({0x7F, 0x08})
_INTERRUPT, _END_OF_TRANSMISSION, _RETURN, _NEWLINE = 0x03, 0x04, 0x0D, 0x0A


class Terminal:
    """The streams of a command with a terminal."""

    def __init__(self, streams: Streams, on_interrupt: Callable[[], bool] = lambda: False) -> None:
        """`on_interrupt` is called when the user interrupts what runs, and returns whether something did."""
        self._streams = streams
        self._on_interrupt = on_interrupt
        self.stdin: InputStream | None = InputStream() if streams.stdin is not None else None
        self.sizes = streams.sizes
        self.departure = streams.departure

    async def write(self, _: int, data: bytes) -> None:
        await self._streams.write(STDOUT, data.replace(b"\n", b"\r\n"))

    async def finish(self, status: bytes) -> None:
        await self._streams.finish(status)

    async def forward_input(self) -> None:
        """Forward the input line by line until it ends."""
        raw, line = self._streams.stdin, bytearray()
        assert raw is not None
        assert self.stdin is not None
        while data := await raw.read(MAX_LINE):
            for byte in data:
                await self._handle_byte(byte, line)
        await self.stdin.feed(bytes(line))
        await self.stdin.end()

    async def _handle_byte(self, byte: int, line: bytearray) -> None:
        assert self.stdin is not None
        if byte in (_RETURN, _NEWLINE):
            await self._echo(b"\r\n")
            await self.stdin.feed(bytes(line) + b"\n")
            line.clear()
        elif byte in _ERASE:
            if line:
                del line[-1]
                await self._echo(b"\b \b")
        elif byte == _INTERRUPT:
            line.clear()
            await self._echo(b"^C\r\n")
            if not self._on_interrupt():
                await self.stdin.feed(b"\n")
        elif byte == _END_OF_TRANSMISSION:
            if not line:
                await self.stdin.end()
            await self.stdin.feed(bytes(line))
            line.clear()
        elif len(line) < MAX_LINE:
            line.append(byte)
            await self._echo(bytes([byte]))

    async def _echo(self, data: bytes) -> None:
        with suppress(StreamsClosed):  # the command still reads its input
            await self._streams.write(STDOUT, data)


async def with_terminal(
    work: Callable[[Streams], Coroutine[Any, Any, T]],
    streams: Streams,
    *,
    has_terminal: bool,
    on_interrupt: Callable[[], bool] = lambda: False,
) -> T:
    """Do the work with the streams, or with a terminal between them and the client."""
    if not has_terminal:
        return await work(streams)
    terminal = Terminal(streams, on_interrupt)
    if terminal.stdin is None:
        return await work(terminal)
    input_task = start("input of a terminal", terminal.forward_input())
    return await run_with(work(terminal), background_tasks=[input_task])
