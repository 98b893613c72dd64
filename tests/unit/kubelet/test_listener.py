"""The limit of the head of a request to the simulated kubelets."""

import asyncio
import ssl
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from aiohttp import web

from mockube.apimachinery.randomness import SeededRandom
from mockube.component_base.serving_certificates import self_signed_tls_context
from mockube.kubelet.server.listener import HEAD_BYTES, HEADERS, listen, serving

NOW = datetime(2020, 1, 1, tzinfo=UTC)
HOST = b"Host: x\r\n"
END = b"\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"


@pytest.fixture
async def port():
    async def handle(request):
        return web.Response(text=f"{len(request.rel_url.raw_path)} {len(await request.read())}")

    async def end():
        pass

    tls = self_signed_tls_context("127.0.0.1", now=NOW, random=SeededRandom())
    listener = listen("127.0.0.1", 0)
    async with serving(SimpleNamespace(handle=handle, end=end), listener, tls):
        yield listener.getsockname()[1]


async def responses(port, *requests):
    """Return the response to each request of one connection."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    found = []
    try:
        for request in requests:
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(END), 10)
            length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
            found.append(head + await reader.readexactly(length))
    finally:
        writer.transport.abort()
    return found


def get(size):
    return b"GET /" + b"a" * (size - 1) + b" HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.mark.parametrize("size", [9_000, 100_000, 1_000_000])
async def test_long_request_line_is_accepted(port, size, caplog):
    for response in await responses(port, get(size), get(size + 1)):
        assert response.startswith(b"HTTP/1.1 200 OK\r\n")
    assert response.endswith(b"\r\n\r\n%d 0" % (size + 1))
    assert not caplog.records


async def test_long_header_is_accepted(port):
    request = get(1).replace(HOST, HOST + b"X: " + b"a" * 100_000 + b"\r\n")
    assert (await responses(port, request))[0].startswith(b"HTTP/1.1 200 OK\r\n")


async def test_bodies_do_not_count_as_heads(port):
    body = b"a" * 500_000
    request = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for response in await responses(port, *[request] * 4):
        assert response.endswith(b"\r\n\r\n1 500000")


@pytest.mark.parametrize(
    "request_head",
    [
        pytest.param(get(1_200_000), id="a path"),
        pytest.param(get(1).replace(HOST, HOST + b"X: " + b"a" * 1_200_000 + b"\r\n"), id="a header"),
        pytest.param(get(1).replace(HOST, HOST + (b"X: " + b"a" * 20_000 + b"\r\n") * 80), id="headers"),
        pytest.param(b"GET /" + b"a" * (HEAD_BYTES + 1), id="a line without end"),
        pytest.param(get(1)[:-2] + b"X: a\r\nY: " + b"a" * (HEAD_BYTES - 20), id="a head without end"),
    ],
)
async def test_head_that_is_too_large_gets_431_and_one_line_of_log(port, request_head, caplog):
    (response,) = await responses(port, request_head)
    assert response.startswith(TOO_LARGE)
    assert response.endswith(END + b"431 Request Header Fields Too Large")
    (record,) = caplog.records
    assert record.getMessage() == (
        f"A request from 127.0.0.1 is refused: its head has more than {HEAD_BYTES} bytes"
    )
    assert record.exc_info is None


@pytest.mark.parametrize(
    "request_head",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another protocol"),
        pytest.param(b"GET / HTTP/1.1\r\nno header\r\n\r\n", id="no header"),
        pytest.param(get(1).replace(HOST, HOST + b"X: a\r\n" * (HEADERS + 1)), id="many headers"),
    ],
)
async def test_malformed_request_gets_400_and_one_line_of_log(port, request_head, caplog):
    (response,) = await responses(port, request_head)
    assert response.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    (record,) = caplog.records
    assert record.getMessage().startswith("A request from 127.0.0.1 is refused: it is malformed (Bad")
    assert record.exc_info is None


async def test_many_headers_are_accepted(port):
    request = get(1).replace(HOST, HOST + b"X: a\r\n" * (HEADERS - 10))
    assert (await responses(port, request))[0].startswith(b"HTTP/1.1 200 OK\r\n")


async def test_end_of_the_listener_is_that_of_its_endpoints():
    ends = []

    async def end():
        ends.append("end")

    tls = self_signed_tls_context("127.0.0.1", now=NOW, random=SeededRandom())
    async with serving(SimpleNamespace(handle=None, end=end), listen("127.0.0.1", 0), tls):
        assert ends == []
    assert ends == ["end"]


async def test_malformed_request_ends_its_connection(port):
    with pytest.raises(asyncio.IncompleteReadError):
        await responses(port, b"SSH-2.0-OpenSSH_9.2\r\n", get(1))


async def test_failure_of_a_handler_is_no_malformed_request(caplog):
    async def fail(_request):
        raise ValueError("broken")

    async def end():
        pass

    tls = self_signed_tls_context("127.0.0.1", now=NOW, random=SeededRandom())
    listener = listen("127.0.0.1", 0)
    async with serving(SimpleNamespace(handle=fail, end=end), listener, tls):
        [response] = await responses(listener.getsockname()[1], get(1))
    assert response.startswith(b"HTTP/1.1 500 ")
    assert "is refused" not in caplog.text
