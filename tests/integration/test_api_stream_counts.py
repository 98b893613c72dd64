"""What metrics and the audit log have of streams that their clients or their kubelets end, as kube-apiserver 1.36.3 has it."""

import asyncio
import contextlib
from urllib.parse import urlsplit

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.server import apiserver
from tests.support.server.webhook_server import credentials

PODS = "/api/v1/namespaces/default/pods"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
WEBSOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
ABORTED = "APIServer panic'd: net/http: abort Handler"
CANCELED = "error trying to reach service: context canceled"


class Kubelet:
    """Its responses are streams that go on until the client has gone, unless the path has another word."""

    def __init__(self):
        self.requested = asyncio.Event()

    async def serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requested.set()
            if b"Upgrade:" in head:
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\n" + UPGRADE + b"\r\n")
            elif b"silent" not in head:
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello\n\r\n")
            if b"broken" not in head:
                await reader.read()
        writer.transport.abort()


@pytest.fixture
async def served(tmp_path):
    """Yield a client, a kubelet and the file of the audit log."""
    kubelet, (context, authority) = Kubelet(), credentials(tmp_path, ["localhost"])
    listening = await asyncio.start_server(kubelet.serve, "127.0.0.1", 0, ssl=context)
    address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    path = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={path}") as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
        kubelets = {"address": address, "certificate": authority.decode()}
        await client.post(
            "/api/v1/namespaces/kube-system/configmaps",
            {"metadata": {"name": "mockube-kubelets"}, "data": kubelets},
        )
        node = {
            "metadata": {"name": "n", "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
        }
        await client.post("/api/v1/nodes", node)
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        for name in ("p", "silent", "broken"):
            spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
            await client.post(PODS, {"metadata": {"name": name}, "spec": spec})
        yield client, kubelet, path
    listening.close()


async def end_stream(client, kubelet, method, path, headers):
    """Send a request, and disconnect when its response has begun, or when only the kubelet has its request."""
    url = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\n"
    writer.write(head.encode() + headers + b"\r\n")
    if "silent" in path:
        await kubelet.requested.wait()
    else:
        await reader.readuntil(b"\r\n\r\n" if headers or "watch" in path else b"hello\n")
    writer.transport.abort()


async def samples(client, subject):
    """Return the numbers of requests of a verb by code, and the other families that have the verb."""
    text = (await client.get("/metrics")).data.decode()
    about = {"verb": "WATCH" if subject == "configmaps" else "CONNECT", "resource": subject}
    found = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if about.items() <= sample.labels.items() and sample.value
    ]
    codes = [sample.labels["code"] for sample in found if sample.name == "apiserver_request_total"]
    return codes, {sample.name for sample in found}


COUNTED = {"apiserver_request_total", "apiserver_request_duration_seconds_count"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "code", "audited"),
    [
        ("GET", f"{PODS}/p/log?follow=true", b"", "200", (200, None)),
        ("GET", f"{PODS}/broken/log", b"", "200", (200, None)),
        ("GET", f"{PODS}/silent/log?follow=true", b"", "500", (500, "context canceled")),
        ("GET", f"{PODS}/p/log?follow=true", WEBSOCKET, "0", (101, None)),
        ("POST", f"{PODS}/p/exec?command=a", UPGRADE, "0", (101, None)),
        ("POST", f"{PODS}/broken/exec?command=a", UPGRADE, "0", (101, None)),
        ("GET", f"{PODS}/p/attach", UPGRADE, "0", (101, None)),
        ("POST", f"{PODS}/p/portforward?ports=80", UPGRADE, "0", (101, None)),
        ("GET", "/api/v1/nodes/n/proxy/silent", b"", "503", (503, CANCELED)),
        ("PUT", "/api/v1/nodes/n/proxy/silent", b"", "503", (503, CANCELED)),
        ("GET", "/api/v1/nodes/n/proxy/up", UPGRADE, "0", (101, None)),
        ("GET", "/api/v1/nodes/n/proxy/endless", b"", None, (500, ABORTED)),
        ("GET", "/api/v1/nodes/n/proxy/broken", b"", None, (500, ABORTED)),
        ("GET", "/api/v1/configmaps?watch=1", b"", "200", (200, None)),
        ("GET", "/api/v1/configmaps?watch=1", WEBSOCKET, "0", (101, None)),
    ],
)
async def test_ended_stream_is_counted_as_upstream(served, method, path, headers, code, audited):
    client, kubelet, log = served
    await end_stream(client, kubelet, method, path, headers)
    subject = "pods" if "/pods/" in path else "nodes" if "/nodes/" in path else "configmaps"
    expected = {"apiserver_request_total"} if code else {"apiserver_request_aborts_total"}
    while not expected & (found := await samples(client, subject))[1]:
        pass
    assert found[0] == ([code] if code else [])
    if code is None:
        assert found[1] == expected
    else:
        assert found[1] >= COUNTED
        assert "apiserver_request_aborts_total" not in found[1]
    assert "apiserver_longrunning_requests" not in found[1]
    assert await _audited(log, path) == audited


async def _audited(log, path):
    """Return the code and the end of the message of the last event of a request."""
    events = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    last = [event for event in events if event["requestURI"] == path][-1]
    message = last["responseStatus"].get("message")
    assert last["stage"] == ("Panic" if message == ABORTED else "ResponseComplete")
    code = last["responseStatus"]["code"]
    return code, message and ("context canceled" if message.startswith("Get ") else message)


async def test_open_connection_to_pod_is_counted_as_long_running(served):
    client, kubelet, _ = served
    url = urlsplit(client.url)
    _, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(f"GET {PODS}/silent/log HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n".encode())
    await kubelet.requested.wait()
    assert "apiserver_longrunning_requests" in (await samples(client, "pods"))[1]
    writer.transport.abort()
