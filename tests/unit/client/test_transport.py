"""HTTP transport against a raw TCP server: the bytes of requests, and the handling of broken connections."""

import asyncio
import contextlib
import ssl

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.client.kubeconfig import Access
from mockube.client.transport import MAX_IN_FLIGHT, BoundedTransport, HttpTransport
from mockube.client.wire import OutcomeUnknown, Request, Response, Unreachable
from mockube.component_base.clock import RealClock
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.raw_server import answer, serving

SAID = {"User-Agent": "manager", "Authorization": "Bearer secret"}


def request(method="GET", target="/api", *, body=b"", timeout=20.0):
    return Request(method=method, target=target, headers={"Accept": "a/b"}, body=body, timeout=timeout)


@contextlib.asynccontextmanager
async def transport_to(server, **access):
    transport = HttpTransport(Access(server=server, **access))
    try:
        yield transport
    finally:
        await transport.close()


async def test_cancelled_close_leaves_no_session():
    """The warnings of aiohttp about an unclosed session are errors here."""

    async with serving() as server:
        transport = HttpTransport(Access(server=server.url))
        await transport.send(request(), SAID)
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        closing = asyncio.create_task(transport.close())
        await yield_to_loop()
        closing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closing
        await yield_to_loop(3)
        assert transport._streams.closed
    assert not errors, "such as a warning about an unclosed connection"


async def abort_connection(writer):
    writer.transport.abort()


async def cut_in_the_body(writer):
    writer.write(answer(b"12345")[:-2])
    await writer.drain()
    writer.close()


async def send_nothing(_):
    pass


async def test_request_is_sent_unchanged():
    async with serving() as server, transport_to(server.url) as transport:
        got = await transport.send(request("PUT", "/api/v1/a%20b?x=%2F", body=b"{}"), SAID)
    assert got == Response(200, None, b"{}")
    ((head, body),) = server.requests
    first, *lines = head.decode().rstrip().split("\r\n")
    assert first == "PUT /api/v1/a%20b?x=%2F HTTP/1.1"
    assert {line.partition(":")[0] for line in lines} == {
        "Host",
        "Accept",
        "User-Agent",
        "Authorization",
        "Content-Length",
    }
    assert body == b"{}"


async def test_server_url_may_have_a_path():
    async with serving() as server, transport_to(f"{server.url}/clusters/a") as transport:
        await transport.send(request(target="/api"), SAID)
    assert server.lines == ["GET /clusters/a/api HTTP/1.1"]


@pytest.mark.parametrize("token", ["a\nHost: other", "a\r\n\r\n", "a\rb"])
async def test_header_with_line_break_is_refused(token):
    async with serving() as server, transport_to(server.url) as transport:
        with pytest.raises(ValueError, match="contains a line break"):
            await transport.send(request(), {**SAID, "Authorization": token})
    assert server.connections == []


async def test_write_without_body_has_content_length_0():
    async with serving() as server, transport_to(server.url) as transport:
        await transport.send(request("DELETE"), SAID)
    assert b"Content-Length: 0" in server.requests[0][0]


async def test_large_body_is_sent():
    async with serving() as server, transport_to(server.url) as transport:
        await transport.send(request("POST", body=b"x" * (1 << 20)), SAID)
    assert len(server.requests[0][1]) == 1 << 20


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(b"3", 3.0), (b"0", 0.0), (b"Wed, 21 Oct 2030 07:28:00 GMT", None), (b"-1", None)],
)
async def test_retry_after_header_is_parsed(seconds, expected):
    async def serve(writer):
        writer.write(answer(status=b"429 Too Many Requests", headers=b"Retry-After: %s\r\n" % seconds))

    async with serving(serve) as server, transport_to(server.url) as transport:
        got = await transport.send(request(), SAID)
    assert (got.status, got.retry_after) == (429, expected)


async def test_redirect_is_not_followed():
    async def serve(writer):
        writer.write(answer(status=b"302 Found", headers=b"Location: /elsewhere\r\n"))

    async with serving(serve) as server, transport_to(server.url) as transport:
        assert (await transport.send(request(), SAID)).status == 302
    assert len(server.requests) == 1


async def test_connections_are_reused():
    async with serving() as server, transport_to(server.url) as transport:
        for _ in range(5):
            await transport.send(request(), SAID)
    assert len(server.connections) == 1


@pytest.mark.thorough
async def test_number_of_connections_is_limited():
    waiting = []

    async def serve(writer):
        waiting.append(writer)

    async with serving(serve) as server, transport_to(server.url) as transport:
        bounded = BoundedTransport(transport)
        sending = [asyncio.create_task(bounded.send(request(), SAID)) for _ in range(MAX_IN_FLIGHT + 8)]
        await until(lambda: len(waiting) == MAX_IN_FLIGHT)
        for _ in sending:
            await until(lambda: waiting)
            waiting.pop().write(answer())
        await asyncio.gather(*sending)
    assert len(server.connections) == MAX_IN_FLIGHT


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("talk", [abort_connection, cut_in_the_body])
async def test_write_without_response_is_outcome_unknown_and_not_repeated(method, talk):
    async with serving(talk) as server, transport_to(server.url) as transport:
        with pytest.raises(OutcomeUnknown, match=f"{method} /api"):
            await transport.send(request(method, body=b"{}"), SAID)
    assert len(server.requests) == 1


@pytest.mark.parametrize("talk", [abort_connection, cut_in_the_body])
async def test_read_without_response_is_unreachable(talk):
    async with serving(talk) as server, transport_to(server.url) as transport:
        with pytest.raises(Unreachable):
            await transport.send(request(), SAID)
    assert len(server.requests) == 1


async def test_write_on_broken_connection_is_not_sent_twice():
    async with serving() as server, transport_to(server.url) as transport:
        await transport.send(request(), SAID)
        server.talk = abort_connection
        with pytest.raises(OutcomeUnknown):
            await transport.send(request("PUT", body=b"{}"), SAID)
    assert server.lines == ["GET /api HTTP/1.1", "PUT /api HTTP/1.1"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_refused_connection_is_unreachable(method):
    async with serving() as server:
        pass
    async with transport_to(server.url) as transport:
        with pytest.raises(Unreachable):
            await transport.send(request(method), SAID)
        with pytest.raises(Unreachable):
            async with transport.stream(request(method), SAID):
                pass


async def test_response_timeout_is_raised():
    async with serving() as server, transport_to(server.url) as transport:
        await transport.send(request(), SAID)  # opens a connection first, which also takes time
        server.talk = send_nothing
        with pytest.raises(OutcomeUnknown, match="TimeoutError"):
            await transport.send(request("POST", timeout=0.01), SAID)


async def test_stream_is_read_until_cut():
    arrived = asyncio.Event()

    async def serve(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await arrived.wait()
        writer.write(b"5\r\nhal")
        await writer.drain()
        writer.close()

    async with (
        serving(serve) as server,
        transport_to(server.url) as transport,
        transport.stream(request(), SAID) as stream,
    ):
        chunks = stream.chunks()
        assert (stream.status, await anext(chunks)) == (200, b"one")
        arrived.set()
        assert b"".join([chunk async for chunk in chunks]) in (b"", b"hal")


async def test_abandoned_stream_closes_connection():
    async def serve(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")

    async with serving(serve) as server, transport_to(server.url) as transport:
        async with transport.stream(request(), SAID) as stream:
            await anext(stream.chunks())
            assert server.left == 0
        await until(lambda: server.left == 1)


# --- TLS


@pytest.fixture(scope="module")
def pki():
    now, random = RealClock().now(), SeededRandom()
    authority = make_authority("test", now=now, random=random)
    return authority, CertificateIssuer(authority, now=now, random=random)


@pytest.fixture
def tls(pki, tmp_path):
    authority, issuer = pki
    pair = issuer.issue(Subject(name="server", hosts=("api.example",)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name, data in (("crt", pair.certificate), ("key", pair.key), ("ca", authority.certificate)):
        (tmp_path / name).write_bytes(data)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    context.load_verify_locations(tmp_path / "ca")
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


async def test_server_is_verified_by_ca_and_name(pki, tls):
    authority, _ = pki
    access = {"authority": authority.certificate, "server_name": "api.example"}
    async with serving(tls=tls) as server, transport_to(server.url, **access) as transport:
        assert (await transport.send(request(), SAID)).status == 200
        async with transport.stream(request(), SAID) as stream:
            assert stream.status == 200


@pytest.mark.parametrize(
    "access",
    [
        pytest.param({"server_name": "api.example"}, id="unknown CA"),
        pytest.param({"authority": True}, id="wrong host name"),
    ],
)
async def test_untrusted_server_receives_no_request(pki, tls, access):
    authority, _ = pki
    if "authority" in access:
        access = {**access, "authority": authority.certificate}
    async with serving(tls=tls) as server, transport_to(server.url, **access) as transport:
        with pytest.raises(Unreachable, match="tls: failed to verify certificate: x509: "):
            await transport.send(request("POST"), SAID)
    assert server.requests == []


async def test_verification_can_be_disabled(tls):
    async with serving(tls=tls) as server, transport_to(server.url, insecure=True) as transport:
        assert (await transport.send(request(), SAID)).status == 200


async def test_client_certificate_is_sent(pki, tls):
    authority, issuer = pki
    pair = issuer.issue(Subject(name="robot", groups=("system:masters",)))
    access = {
        "authority": authority.certificate,
        "server_name": "api.example",
        "certificate": pair.certificate,
        "key": pair.key,
    }
    async with serving(tls=tls) as server, transport_to(server.url, **access) as transport:
        await transport.send(request(), SAID)
    names = [name for ((_, name),) in server.connections[0]["subject"]]
    assert "robot" in names
