"""A connection to a server that tests can break: cut connections, a server that is away or replaced."""

import asyncio
import contextlib
from urllib.parse import urlsplit


class Relay:
    """Listens at one address, and forwards bytes to its current destination."""

    def __init__(self, url):
        self.set_target(url)
        self._listening = None
        self._port = 0
        self._writers = set()
        self._tasks = set()
        self._bytes_left = None
        self._passes = asyncio.Event()
        self._passes.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def set_target(self, url):
        self._target = (urlsplit(url).hostname, urlsplit(url).port)

    async def listen(self):
        self._listening = await asyncio.start_server(self._relay_connection, "127.0.0.1", self._port)
        self._port = self._listening.sockets[0].getsockname()[1]

    def refuse(self):
        """Stop listening, and cut open connections."""
        self._listening.close()
        self.cut()

    def withhold_answers(self):
        """Withhold the server's bytes until all connections are cut."""
        self._passes.clear()

    def cut(self):
        self._bytes_left = None
        self._passes.set()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def cut_after(self, count):
        """Forward this many more bytes from the server, and then cut all connections."""
        self._bytes_left = count

    async def _relay_connection(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        there, back = await asyncio.open_connection(*self._target)
        self._writers |= {writer, back}
        await asyncio.gather(self._relay_to_server(reader, back), self._relay_to_client(there, writer))

    async def _relay_to_server(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _relay_to_client(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                await self._passes.wait()
                if self._bytes_left is not None:
                    data = data[: self._bytes_left]
                    self._bytes_left -= len(data)
                writer.write(data)
                await writer.drain()
                if self._bytes_left == 0:
                    self.cut()
        writer.close()

    async def close(self):
        self.refuse()
        await asyncio.gather(*self._tasks)


@contextlib.asynccontextmanager
async def running_relay(url):
    relay = Relay(url)
    await relay.listen()
    try:
        yield relay
    finally:
        await relay.close()
