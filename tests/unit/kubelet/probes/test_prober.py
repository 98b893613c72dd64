"""Single probe attempts against scripted servers."""

import asyncio

import pytest

from mockube.component_base.clock import ClusterClock, RealClock, SteppedClock
from mockube.container_runtime.process_port import LOOPBACK, ProcessPort
from mockube.kubelet.probes import http2_get
from mockube.kubelet.probes.prober import HandlerResult, ProbeTarget, run_handler
from tests.support.event_loop import yield_to_loop
from tests.support.server.webhook_server import credentials

CLOCK = RealClock()
SERVING, NOT_SERVING = b"\x00\x00\x00\x00\x02\x08\x01", b"\x00\x00\x00\x00\x02\x08\x02"


async def fail_on_command(_):
    raise AssertionError("unexpected command")


def target(port=0, *, execute=fail_on_command):
    spec = {"ports": [{"name": "web", "containerPort": 8080}]}
    return ProbeTarget(
        spec=spec,
        port_of=lambda number, host="": ProcessPort(host or LOOPBACK, {8080: port}.get(number, number)),
        execute=execute,
    )


async def result_and_request(probe, answer, *, clock=CLOCK, tls=None):
    """Probe a server that sends `answer` after its first read; return the result and the request."""
    requests = []

    async def serve(reader, writer):
        requests.append(await reader.read(4096))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await run_handler(probe, target(port), clock, 5)
    return result, b"".join(requests)


def get(**fields):
    return {"httpGet": {"port": "web", **fields}}


@pytest.mark.parametrize(
    ("head", "success", "output"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True, "HTTP probe failed with statuscode: 200"),
        (b"HTTP/1.1 399 Odd\r\n\r\n", True, "HTTP probe failed with statuscode: 399"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\n\r\n",
            True,
            "HTTP probe failed with statuscode: 302",
        ),
        (b"HTTP/1.1 503 No\r\n\r\n", False, "HTTP probe failed with statuscode: 503"),
    ],
)
async def test_http_probe_follows_status_code(head, success, output):
    result, _ = await result_and_request(get(), head)
    assert result == HandlerResult(success=success, output=output)


async def test_http_probe_sends_path_and_headers():
    probe = get(path="healthz?full=1", httpHeaders=[{"name": "X-Probe", "value": "yes"}])
    _, sent = await result_and_request(probe, b"HTTP/1.1 200 OK\r\n\r\n")
    assert sent.startswith(b"GET /healthz?full=1 HTTP/1.1\r\n")
    assert b"\r\nX-Probe: yes\r\n" in sent
    assert b"\r\nUser-Agent: kube-probe/1.37\r\n" in sent


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 \r\n\r\n", b"HTTP/1.1 x y\r\n\r\n"])
async def test_malformed_http_response_fails_probe(answer):
    result, _ = await result_and_request(get(), answer)
    assert not result.success


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 20", "unexpected EOF"),
        (b"SSH-2.0\r\n", 'net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0"'),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000, "the response header is too long"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, "the response header is too long"),
    ],
    ids=["nothing", "an early end", "another protocol", "an endless head", "endless 1xx responses"],
)
async def test_reason_of_failed_http_probe_is_that_of_go(answer, reason):
    result, _ = await result_and_request(get(), answer)
    assert not result.success
    assert result.output.endswith(f": {reason}")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\n\nhello", id="line feeds, as echo writes them"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", id="early hints"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", id="a folded header"),
    ],
)
async def test_response_that_go_accepts_is_a_success(answer):
    result, _ = await result_and_request(get(), answer)
    assert result == HandlerResult(success=True, output="HTTP probe failed with statuscode: 200")


async def test_line_break_in_header_of_probe_is_not_sent():
    probe = get(httpHeaders=[{"name": "X", "value": "a\r\nHost: evil.example"}])
    result = await run_handler(probe, target(port=1), CLOCK, 5.0)
    assert result.output.endswith(': net/http: invalid header field value for "X"')


@pytest.mark.parametrize(
    ("path", "sent_path"),
    [("/a b", "/a%20b"), ("/é?ü", "/%C3%A9?ü"), ("/a%2Fb?c d", "/a%2Fb?c d"), ("/a|b", "/a%7Cb")],
)
async def test_path_of_probe_is_encoded_as_by_go(path, sent_path):
    _, sent = await result_and_request(get(path=path), b"HTTP/1.1 200 OK\r\n\r\n")
    assert sent.startswith(f"GET {sent_path} HTTP/1.1\r\n".encode())


async def test_closed_port_fails_probe():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    probes = (get(), {"tcpSocket": {"port": 8080}}, {"grpc": {"port": 8080}})
    for result in [await run_handler(probe, target(port), CLOCK, 5) for probe in probes]:
        assert not result.success
        assert f"dial tcp 127.0.0.1:{port}: connect: connection refused" in result.output


def frame(kind, flags, payload):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + b"\x00\x00\x00\x01" + payload


@pytest.mark.parametrize(
    ("frames", "success", "output"),
    [
        ((frame(0, 0, SERVING), frame(1, 5, b"")), True, 'service unhealthy (responded with "SERVING")'),
        (
            (frame(0, 0, NOT_SERVING), frame(1, 5, b"")),
            False,
            'service unhealthy (responded with "NOT_SERVING")',
        ),
        (
            (frame(0, 8, b"\x02" + SERVING + b"\x00\x00"), frame(1, 5, b"")),
            True,
            'service unhealthy (responded with "SERVING")',
        ),
        (
            (frame(0, 8, b""), frame(0, 0, SERVING), frame(1, 5, b"")),
            True,
            'service unhealthy (responded with "SERVING")',
        ),
        (
            (frame(1, 5, b""),),
            False,
            "error: health rpc failed: the server does not implement the health protocol, or has no such service",
        ),
        ((frame(3, 0, b"\x00\x00\x00\x08"),), False, "error: health rpc failed: the server ended the call"),
    ],
)
async def test_grpc_probe_follows_status(frames, success, output):
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    result, sent = await result_and_request(
        {"grpc": {"port": 8080, "service": "s"}}, settings + b"".join(frames)
    )
    assert result == HandlerResult(success=success, output=output)
    assert b"/grpc.health.v1.Health/Check" in sent


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"\x88", 200),
        (b"\x3f\xe1\x1f\x8d", 404),
        (b"\x48\x82\x64\x02", 302),
        (b"\x08\x03503", 503),
        (b"\x48\x83\x6c\x0c\xff", 503),
    ],
)
async def test_http2_probe_follows_status(block, status):
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    probe = get(path="/healthz", protocol="HTTP2", httpHeaders=[{"name": "X-Probe", "value": "yes"}])
    result, sent = await result_and_request(probe, settings + frame(1, 4, block))
    output = f"HTTP probe failed with statuscode: {status}"
    assert result == HandlerResult(success=200 <= status < 400, output=output)
    assert sent.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"/healthz" in sent
    assert b"x-probe" in sent


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n", frame(1, 4, b""), frame(3, 0, b"")])
async def test_malformed_http2_response_fails_probe(answer):
    result, _ = await result_and_request(get(protocol="HTTP2"), answer)
    assert not result.success


async def test_grpc_probe_over_tls_does_not_verify_certificate(tmp_path):
    context, _ = credentials(tmp_path)
    context.set_alpn_protocols(["h2"])
    answer = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + frame(0, 0, SERVING) + frame(1, 5, b"")
    result, sent = await result_and_request({"grpc": {"port": 8080, "mode": "TLS"}}, answer, tls=context)
    assert result.success
    assert b"https" in sent


async def test_exec_probe_follows_exit_code():
    async def execute(command):
        return int(command[-1]), "said"

    for code in (0, 1):
        result = await run_handler({"exec": {"command": ["x", str(code)]}}, target(execute=execute), CLOCK, 5)
        assert result == HandlerResult(success=code == 0, output="said")


async def test_probe_timeout_is_a_failure():
    clock, never = SteppedClock(), asyncio.Event()

    async def execute(_):
        await never.wait()

    async with asyncio.TaskGroup() as group:
        probe = {"exec": {"command": ["x"]}}
        trying = group.create_task(run_handler(probe, target(execute=execute), clock, 2))
        await yield_to_loop(3)
        clock.advance(2)
    assert trying.result() == HandlerResult(success=False, output='command timed out: "x" timed out after 2s')


async def test_probe_of_undeclared_port_name_is_unknown():
    result = await run_handler({"httpGet": {"port": "htpp"}}, target(), CLOCK, 5)
    output = 'port "htpp" not found'
    assert result == HandlerResult(success=False, output=output, is_unknown=True)


async def run_sleep_hook(clock, seconds, limit):
    return asyncio.create_task(run_handler({"sleep": {"seconds": seconds}}, target(), clock, limit))


async def test_sleep_hook_and_its_limit_have_the_time_of_the_cluster():
    real = SteppedClock()
    clock = ClusterClock(real)
    clock.pause()
    running = await run_sleep_hook(clock, 5, 10)
    await yield_to_loop(3)
    real.advance(60)
    await yield_to_loop(3)
    assert not running.done()
    clock.advance(5)
    assert await running == HandlerResult(success=True)


async def test_sleep_hook_ends_at_its_limit():
    clock = SteppedClock()
    running = await run_sleep_hook(clock, 5, 2)
    await yield_to_loop(3)
    clock.advance(2)
    output = "container terminated before sleep hook finished"
    assert await running == HandlerResult(success=False, output=output)


@pytest.mark.parametrize(
    ("index", "status"), [(8, 200), (9, 204), (10, 206), (11, 304), (12, 400), (13, 404), (14, 500)]
)
def test_status_of_the_static_table_of_http2(index, status):
    assert http2_get._status(bytes([0x80 | index])) == status
    for no_status in (7, 15):
        with pytest.raises(ValueError, match="malformed HTTP response"):
            http2_get._status(bytes([0x80 | no_status]))


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"\x48\x03404", 404),
        (b"\x08\x03404", 404),
        (b"\x18\x03503x", 503),
        (b"\x20\x88", 200),
        (b"\x3f\xe1\x1f\x20\x88", 200),
        (b"\x08\x82\x10\x01", 200),
        (b"\x08\x043045", 304),
        (b"", None),
        (b"\x08", None),
        (b"\x47\x03404", None),
        (b"\x08\x03a04", None),
        (b"\x08\x02\xb9\xb9", None),
        (b"\x08\x00", None),
        (b"\x3f\xe1", None),
    ],
)
def test_status_of_a_block_of_headers(block, status):
    if status is not None:
        assert http2_get._status(block) == status
        return
    with pytest.raises(ValueError, match="malformed HTTP response"):
        http2_get._status(block)


@pytest.mark.parametrize(
    ("flags", "payload"),
    [(0, b"\x88"), (0x8, b"\0\x88"), (0x20, b"12345\x88"), (0x28, b"\x0012345\x88")],
)
def test_headers_stand_after_padding_and_priority(flags, payload):
    assert http2_get._block_of(flags, payload) == b"\x88"
