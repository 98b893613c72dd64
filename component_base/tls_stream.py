"""TLS over any stream of bytes, such as a connection inside of this process that has no socket."""

import ssl
from contextlib import suppress
from typing import Final, Protocol

_READ: Final = 16 << 10


class ByteStream(Protocol):
    async def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes; b"" at the end."""

    async def write(self, data: bytes) -> None:
        """Write the data; wait while the other side does not read."""


class TlsStream:
    """One side of a connection with TLS, which is a stream of bytes itself."""

    def __init__(
        self, stream: ByteStream, context: ssl.SSLContext, *, is_server: bool, host: str = ""
    ) -> None:
        """`host` is the name that a client sends."""
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=is_server, server_hostname=host or None
        )

    async def handshake(self) -> None:
        """Complete the handshake; raise `ssl.SSLError` if it fails, after the other side got the alert."""
        try:
            while True:
                try:
                    self._tls.do_handshake()
                except ssl.SSLWantReadError:
                    await self._receive()
                else:
                    return
        finally:
            await self._flush()

    async def read(self, limit: int) -> bytes:
        while True:
            try:
                data = self._tls.read(limit)
            except ssl.SSLWantReadError:
                await self._receive()
            except ssl.SSLError:  # the other side ended, with or without saying so
                return b""
            else:
                return data

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def end(self) -> None:
        """Say that nothing more is sent."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        await self._flush()

    async def _receive(self) -> None:
        await self._flush()
        data = await self._stream.read(_READ)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._stream.write(self._outgoing.read())
