"""Responses as bytes on the connection."""

import asyncio

import pytest

from mockube.apiserver.http.server import Server
from mockube.apiserver.request.response import PIECE, Response
from tests.support.server.http_server import served

LARGE = [b"a" * PIECE, b"b" * 10, b"c" * (2 * PIECE), b"d"]


async def sent_bytes(request, *parts, ends=False):
    """Return all bytes that the server sends until it closes the connection."""

    async def handle(request):
        request.client.head += "Audit-Id: a\r\n"
        request.client.keeps_open = request.client.keeps_open and not ends
        return Response(201, parts, "text/x", warnings=["w"])

    async with served(Server(handle)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    status, *lines = head.decode().split("\r\n")
    return status, dict(line.split(": ", 1) for line in lines), body


def request_bytes(method=b"GET", version=b"1.1", headers=b"Connection: close\r\n"):
    return b"%b / HTTP/%b\r\nHost: x\r\n%b\r\n" % (method, version, headers)


@pytest.mark.parametrize("parts", [[], [b"{}"], [b"one", b"two"], LARGE], ids=["none", "one", "two", "large"])
async def test_response_body_is_concatenation_of_parts(parts):
    status, headers, body = await sent_bytes(request_bytes(), *parts)
    assert status == "HTTP/1.1 201 Created"
    assert headers.pop("Date").endswith(" GMT")
    assert headers == {
        "Content-Type": "text/x",
        "Cache-Control": "no-cache, private",
        "Audit-Id": "a",
        "Warning": '299 - "w"',
        "Content-Length": str(len(b"".join(parts))),
        "Connection": "close",
    }
    assert body == b"".join(parts)


async def test_head_response_has_length_without_body():
    _, headers, body = await sent_bytes(request_bytes(b"HEAD"), *LARGE)
    assert (headers["Content-Length"], body) == (str(len(b"".join(LARGE))), b"")


async def test_http_1_0_keep_alive_is_announced():
    last = request_bytes(version=b"1.0", headers=b"")
    _, headers, body = await sent_bytes(last, b"{}")
    assert ("Connection" in headers, body) == (False, b"{}")
    _, headers, rest = await sent_bytes(
        request_bytes(version=b"1.0", headers=b"Connection: keep-alive\r\n") + last, b"{}"
    )
    assert (headers["Connection"], rest[:10]) == ("keep-alive", b"{}HTTP/1.0")


async def test_closing_connection_is_closed_after_response():
    _, headers, body = await sent_bytes(request_bytes(headers=b""), b"{}", ends=True)
    assert (headers["Connection"], body) == ("close", b"{}")
