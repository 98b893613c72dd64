"""A real headless browser, if the machine has one; and a site whose name is later bound to another server.

With DNS rebinding a name first resolves to the site's own address and later to this machine. To a browser that is the
same as one address behind which first the site and then the other server answers, which needs no name server.
"""

import asyncio
import contextlib

import pytest
from playwright.async_api import async_playwright

from tools.browser import NAMES, find_browser

SITE = "evil.example"


def browser():
    """Return the program, or skip the test and name what is missing."""
    found = find_browser()
    if found is None:
        pytest.skip(
            f"this test needs a browser: none of {', '.join(NAMES)} is installed, and `make browser` was not run"
        )
    return str(found)


@contextlib.asynccontextmanager
async def running_browser(*flags):
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox", *flags])
        try:
            yield running
        finally:
            await running.close()


async def document(url):
    """Return the page after its scripts have run."""
    async with running_browser(f"--host-resolver-rules=MAP {SITE} 127.0.0.1") as running:
        tab = await running.new_page()
        await tab.goto(url)
        return await tab.content()


class PageServer:
    """Serves one page; later connections are forwarded to the other server."""

    def __init__(self, page, address):
        self._page = page.encode()
        self._address = address
        self._served = False
        self._open = set()
        self.port = 0
        self.answers = []
        """First lines of requests and of the other server's responses, in their order."""

    async def _serve(self, reader, writer):
        """A browser opens connections that it may never use."""
        self._open.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer(reader, writer)
        writer.close()
        self._open.discard(asyncio.current_task())

    async def close(self):
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        if self._served:
            await self._relay(head, reader, writer)
            return
        self._served = True
        lines = (b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"Connection: close", b"", self._page)
        writer.write(b"\r\n".join(lines))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _relay(self, head, reader, writer):
        far_reader, far_writer = await asyncio.open_connection(*self._address)
        far_writer.write(head)
        upward = asyncio.create_task(_copy(reader, far_writer))
        try:
            answer = await far_reader.readuntil(b"\r\n")
            self.answers.append((head.split(b"\r\n")[0].decode(), answer.decode().strip()))
            writer.write(answer)
            await _copy(far_reader, writer)
        finally:
            upward.cancel()
            await asyncio.gather(upward, return_exceptions=True)
            far_writer.transport.abort()


async def _copy(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def rebinding(page, address):
    page_server = PageServer(page, address)
    server = await asyncio.start_server(page_server._serve, "127.0.0.1", 0)
    page_server.port = server.sockets[0].getsockname()[1]
    try:
        yield page_server
    finally:
        server.close()
        await page_server.close()
