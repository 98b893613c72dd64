"""Which responses are compressed; everything else in them is unchanged."""

import asyncio
import gzip

import pytest

from mockube.apiserver.http.server import Server
from mockube.apiserver.request.response import MIN_COMPRESSED_SIZE, PIECE, Response, compress
from tests.support.server.http_server import served

LARGE = b"0123456789" * PIECE
SMALLEST = b"x" * (MIN_COMPRESSED_SIZE + 1)


class Connection:
    """A connection to a server whose responses have the body that the path selects."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    def send_request(self, path, encodings, *, version="1.1"):
        self._writer.write(
            f"GET {path} HTTP/{version}\r\nHost: x\r\nAccept-Encoding: {encodings}\r\n\r\n".encode()
        )

    async def read_response(self):
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
        if headers.get("Transfer-Encoding") != "chunked":
            return headers, await self._reader.readexactly(int(headers["Content-Length"]))
        chunks = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            chunks.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return headers, b"".join(chunks)


@pytest.fixture
async def connection():
    bodies = {
        "/large": [LARGE],
        "/parts": [b"a", LARGE, b"b"],
        "/least": [SMALLEST],
        "/small": [SMALLEST[1:]],
    }

    async def handle(request):
        response = Response(200, bodies[request.path], warnings=["look"])
        response.compressed = response.size > MIN_COMPRESSED_SIZE and request.accepts_gzip
        return response

    async with served(Server(handle)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        yield Connection(reader, writer)
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("encodings", ["gzip", "deflate, gzip", "br,gzip"])
async def test_large_response_is_compressed_if_accepted(connection, encodings):
    connection.send_request("/least", encodings)
    headers, body = await connection.read_response()
    assert (headers["Content-Encoding"], headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert headers["Warning"] == '299 - "look"'
    assert gzip.decompress(body) == SMALLEST


@pytest.mark.parametrize("encodings", ["", "identity", "gzip;q=0", "gzip;q=1", "gzipped"])
async def test_response_is_plain_unless_gzip_is_accepted(connection, encodings):
    connection.send_request("/least", encodings)
    headers, body = await connection.read_response()
    assert "Content-Encoding" not in headers
    assert body == SMALLEST


async def test_small_response_is_not_compressed(connection):
    connection.send_request("/small", "gzip")
    headers, body = await connection.read_response()
    assert "Content-Encoding" not in headers
    assert body == SMALLEST[1:]


async def test_pipelined_responses_keep_order_of_requests(connection):
    paths = ["/parts", "/small", "/large", "/least", "/small"]
    for path in paths:
        connection.send_request(path, "gzip")
    answers = [await connection.read_response() for _ in paths]
    texts = [gzip.decompress(body) if "Content-Encoding" in headers else body for headers, body in answers]
    assert texts == [b"a" + LARGE + b"b", SMALLEST[1:], LARGE, SMALLEST, SMALLEST[1:]]


async def test_whole_body_is_compressed_in_pieces():
    compressed = [piece async for piece in compress([LARGE[:PIECE], LARGE[PIECE:]])]
    assert gzip.decompress(b"".join(compressed)) == LARGE
    assert len(compressed) > 1


async def test_http_1_0_response_is_not_compressed(connection):
    connection.send_request("/least", "gzip", version="1.0")
    headers, body = await connection.read_response()
    assert "Content-Encoding" not in headers
    assert body == SMALLEST
