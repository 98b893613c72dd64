"""A server of raw bytes: the test writes the response to each request, and cuts connections."""

import asyncio
import contextlib
import re

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


def answer(body=b"{}", *, status=b"200 OK", headers=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


class RawServer:
    """`talk(writer)` is called for each request; without it the response is an empty object."""

    def __init__(self, talk=None):
        self.talk = talk or _nothing_special
        self.requests = []
        """Head and body of each request, in the order in which they came."""
        self.connections = []
        """The certificate that each client presented, if any."""
        self.left = 0
        """How many clients have closed their connection."""
        self.url = ""

    async def _serve(self, reader, writer):
        certificate = writer.get_extra_info("peercert")
        self.connections.append(certificate)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                self.requests.append((head, await reader.readexactly(int(length[1]) if length else 0)))
                await self.talk(writer)
        self.left += reader.at_eof()
        writer.transport.abort()

    @property
    def lines(self):
        return [head.split(b"\r\n")[0].decode() for head, _ in self.requests]


async def _nothing_special(writer):
    writer.write(answer())


@contextlib.asynccontextmanager
async def serving(talk=None, *, tls=None):
    server = RawServer(talk)
    listening = await asyncio.start_server(server._serve, "127.0.0.1", 0, ssl=tls, limit=1 << 24)
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
