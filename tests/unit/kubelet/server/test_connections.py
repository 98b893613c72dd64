"""Connections to a kubelet's listener: commands, attachments, logs and ports over SPDY, WebSocket and plain bytes."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import aiohttp
import orjson
import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.component_base.serving_certificates import self_signed_tls_context
from mockube.container_runtime.logs import LogLine
from mockube.container_runtime.records import Records
from mockube.container_runtime.runtime import RuntimeProblem
from mockube.container_runtime.streams import STDERR, STDOUT
from mockube.kubelet.pod_versions import PodWatchers
from mockube.kubelet.probes.totals import ProbeRecords
from mockube.kubelet.server import spdy
from mockube.kubelet.server.authentication import KubeletUser
from mockube.kubelet.server.endpoints import ClientAccess, KubeletEndpoints
from mockube.kubelet.server.listener import listen, serving
from mockube.kubelet.server.node_counters import KubeletCounters
from mockube.kubelet.server.remote_command import CREATION_SECONDS, LINGER_SECONDS
from mockube.kubelet.server.spdy import DataFrame, FrameReader, FrameWriter
from tests.support.event_loop import WAIT_TIMEOUT, until, yield_to_loop

START = datetime(2030, 1, 1, tzinfo=UTC)
TLS = self_signed_tls_context("127.0.0.1", now=START, random=SeededRandom())
CLIENT_TLS = ssl.create_default_context()
CLIENT_TLS.check_hostname, CLIENT_TLS.verify_mode = False, ssl.CERT_NONE
EXEC = "/exec/default/web/c?command=sh&"
FORWARD = "/portForward/default/web"
RUNNING = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}
ENDED = {"terminated": {**RUNNING["running"], "finishedAt": "2030-01-01T00:01:00Z", "exitCode": 0}}
SETTINGS = b"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 7\n"
NODE = {"metadata": {"name": "a", "annotations": {"kwok.x-k8s.io/node": "fake"}}, "status": {}}


def pod(state, restarts=0):
    status = {"name": "c", "restartCount": restarts, "state": state}
    tree = {
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web"},
        "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "x"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [status]},
    }
    return PodView.of(tree)


class Pods:
    def __init__(self):
        self.web = pod(RUNNING)

    def get(self, namespace, name):
        return self.web if (namespace, name) == ("default", "web") else None

    def by_index(self, _index, _value):
        return [self.web]


class Log:
    """One line that was written, and one that is written later."""

    due = None

    def __init__(self):
        self.lines, self.is_closed = [LogLine(START, STDOUT, b"first\n")], False

    def is_behind(self, _until):
        return bool(self.lines)

    def advance(self, _until):
        yield self.lines.pop(0)

    def close(self):
        self.is_closed = True


class Runtime:
    """Its containers and ports return what they receive; a command ends at the end of its input."""

    def __init__(self):
        self.log, self.treated = Log(), []

    async def exec(self, _pod, _container, request):
        self.treated.append(request)

        async def execute(streams):
            await streams.write(STDOUT, b"out")
            await streams.write(STDERR, b"err")
            if streams.stdin is None:
                return 0
            while chunk := await streams.stdin.read(100):
                await streams.write(STDOUT, chunk)
            return 3

        return execute

    @asynccontextmanager
    async def attach(self, _pod, _container, *, has_terminal):
        async def attachment(streams):
            await streams.write(STDOUT, b"attached")

        self.treated.append(has_terminal)
        yield attachment

    async def logs(self, _pod, _container, _run):
        return self.log

    async def port_forward(self, tree, port):
        if not tree["status"]:
            raise RuntimeProblem("the pod is gone")
        if port == 81:
            raise RuntimeProblem("nothing listens")
        return self._echo

    def listener(self, _tree, number, **_):
        return self._echo if number == 80 else None

    async def _echo(self, client):
        self.treated.append(client)
        while chunk := await client.read(100):
            await client.write(chunk)
        await client.end()
        return ""


class Machines:
    def __init__(self):
        self.refreshed, self.commands = [], []

    async def refresh(self, name):
        self.refreshed.append(name)

    def find(self, name, _path):
        return SimpleNamespace(data=SETTINGS) if name in self.refreshed else None

    async def exec(self, node, request):
        self.commands.append((node["metadata"]["name"], *request.command))

        async def execute(streams):
            await streams.write(STDOUT, b"root")
            return 0

        return execute


class NoKwokObjects:
    async def list(self, _plural):
        return ()


class Access:
    async def user_of(self, _authorization):
        return KubeletUser("ada", ())

    async def is_allowed(self, _user, _attributes):
        return True


class Kubelet:
    def __init__(self, port=0):
        self.port, self.clock = port, SteppedClock(START)
        self.pods, self.runtime, self.machines = Pods(), Runtime(), Machines()
        self.watchers = PodWatchers(self.pods)
        self.nodes = {"a": NODE}

        async def drops_nothing(*_):
            return False

        self.endpoints = KubeletEndpoints(
            self.pods,
            SimpleNamespace(get=lambda _, name: self.nodes.get(name)),
            containers=SimpleNamespace(
                pods=self.watchers,
                runtime=self.runtime,
                machines=self.machines,
                services=None,
                probe_records=ProbeRecords(Records()),
                drops_api_server=drops_nothing,
            ),
            access=ClientAccess(Access(), Access()),
            clock=self.clock,
            pages=SimpleNamespace(
                counters=KubeletCounters(self.clock),
                kwok=NoKwokObjects(),
                random=SeededRandom(),
                find_claim=lambda *_: None,
                container_context=None,
            ),
        )

    def change(self, view):
        """Let the pod have another version, as its informer reports it."""
        self.pods.web = view
        self.watchers.on_change(SimpleNamespace(last_known=view))


@pytest.fixture
async def kubelet():
    listener = listen("127.0.0.1", 0)
    kubelet = Kubelet(listener.getsockname()[1])
    async with asyncio.timeout(WAIT_TIMEOUT), serving(kubelet.endpoints, listener, TLS):
        yield kubelet


class Client:
    """A connection that is upgraded from HTTP."""

    def __init__(self, reader, writer, head):
        self.reader, self.writer, self.head = reader, writer, head
        self._frames, self._frame_writer = FrameReader(), FrameWriter()
        self.received, self.ended, self.reset = {}, set(), set()

    def open(self, number, **headers):
        self.writer.write(self._frame_writer.syn_stream(number, headers))

    def send(self, number, content=b"", *, last=False):
        self.writer.write(self._frame_writer.data(number, content, last=last))

    async def until_ended(self, *numbers):
        while not {*numbers} <= self.ended | self.reset:
            content = await self.reader.read(65536)
            assert content, "the connection has ended"
            for frame in self._frames.feed(content):
                if isinstance(frame, DataFrame):
                    self.received[frame.stream] = self.received.get(frame.stream, b"") + frame.data
                    self.ended |= {frame.stream} if frame.is_last else set()
                elif frame.type == spdy.RST_STREAM:
                    self.reset.add(frame.stream)


@asynccontextmanager
async def connected(kubelet, method, path, **headers):
    reader, writer = await asyncio.open_connection("127.0.0.1", kubelet.port, ssl=CLIENT_TLS)
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        *(f"{name.replace('_', '-')}: {text}" for name, text in headers.items()),
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        yield Client(reader, writer, head)
    finally:
        writer.transport.abort()


def spdy_session(kubelet, path, protocol="v4.channel.k8s.io"):
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    if protocol:
        headers["X_Stream_Protocol_Version"] = protocol
    return connected(kubelet, "POST", path, **headers)


@asynccontextmanager
async def web_socket(kubelet, path, *protocols):
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"https://127.0.0.1:{kubelet.port}{path}", protocols=protocols, ssl=False
        ) as socket,
    ):
        yield socket


async def messages(socket):
    return [message.data async for message in socket]


def ended_with(status):
    return orjson.loads(status)["status"]


# --- commands


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_command_over_spdy(kubelet, protocol):
    async with spdy_session(kubelet, f"{EXEC}input=1&output=1&error=1", protocol) as client:
        assert client.head.startswith("HTTP/1.1 101 Switching Protocols\r\n")
        assert "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" in client.head
        assert f"X-Stream-Protocol-Version: {protocol}\r\n" in client.head
        for number, kind in enumerate(("error", "stdin", "stdout", "stderr")):
            client.open(2 * number + 1, streamtype=kind)
        client.send(3, b"in")
        client.send(3, last=True)
        await client.until_ended(1, 3, 5, 7)
        assert (client.received[5], client.received[7]) == (b"outin", b"err")
        assert orjson.loads(client.received[1])["details"]["causes"] == [
            {"reason": "ExitCode", "message": "3"}
        ]
        await until(kubelet.clock.next_due)
        kubelet.clock.advance(LINGER_SECONDS)
        assert await client.reader.read() == b"", "the kubelet closes the connection"


@pytest.mark.parametrize("protocol", ["v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"])
async def test_command_over_spdy_of_an_old_client_ends_with_a_text(kubelet, protocol):
    async with spdy_session(kubelet, f"{EXEC}input=1", protocol) as client:
        client.open(1, streamtype="error")
        client.open(3, streamtype="stdin")
        client.send(3, last=True)
        await client.until_ended(1)
        assert client.received[1] == b"command terminated with non-zero exit code: exit status 3"


async def test_client_without_a_protocol_gets_none(kubelet):
    async with spdy_session(kubelet, f"{EXEC}output=1", protocol="") as client:
        assert "X-Stream-Protocol-Version" not in client.head
        client.open(1, streamtype="error")
        client.open(3, streamtype="stdout")
        await client.until_ended(1, 3)
        assert client.received[3] == b"out"


async def test_client_that_opens_no_streams_is_timed_out(kubelet):
    async with spdy_session(kubelet, f"{EXEC}output=1") as client:
        client.open(1, streamtype="error")
        await until(kubelet.clock.next_due)
        kubelet.clock.advance(CREATION_SECONDS - 1)
        await yield_to_loop(20)
        assert client.received == {}
        kubelet.clock.advance(1)
        await client.until_ended(1)
        assert orjson.loads(client.received[1])["message"].endswith(
            "timed out waiting for client to create streams"
        )


@pytest.mark.parametrize(
    "protocol",
    ["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"],
)
async def test_command_over_a_websocket(kubelet, protocol):
    async with web_socket(kubelet, f"{EXEC}output=1&error=1", protocol) as socket:
        assert socket.protocol == protocol
        received = await messages(socket)
    assert received[:3] == [b"\1", b"\1out", b"\2err"]
    assert ([ended_with(each[1:]) for each in received[3:]] == ["Success"]) is (protocol[0] == "v")


@pytest.mark.parametrize("protocol", ["v4.base64.channel.k8s.io", "base64.channel.k8s.io"])
async def test_command_over_a_websocket_with_text(kubelet, protocol):
    async with web_socket(kubelet, f"{EXEC}output=1", protocol) as socket:
        assert socket.protocol == protocol
        assert (await messages(socket))[:2] == ["1", "1b3V0"]


async def test_websocket_without_a_protocol_is_that_of_the_first_version(kubelet):
    async with web_socket(kubelet, f"{EXEC}output=1") as socket:
        assert await messages(socket) == [b"\1", b"\1out"]


@pytest.mark.parametrize("state", [ENDED, None], ids=["the container ends", "the pod is deleted"])
async def test_command_ends_with_its_container(kubelet, state):
    async with web_socket(kubelet, f"{EXEC}input=1&output=1", "v5.channel.k8s.io") as socket:
        assert [await socket.receive_bytes() for _ in range(2)] == [b"\1", b"\1out"]
        kubelet.change(pod(RUNNING))
        await yield_to_loop(20)
        await socket.send_bytes(b"\0in")
        assert await socket.receive_bytes() == b"\1in"
        view = pod(state or RUNNING)
        kubelet.change(view)
        if state is None:
            kubelet.pods.web = None
            kubelet.watchers.on_change(SimpleNamespace(last_known=view))
        status = orjson.loads((await socket.receive_bytes())[1:])
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "137"}]


async def test_attachment(kubelet):
    async with web_socket(kubelet, "/attach/default/web/c?output=1&tty=1", "v4.channel.k8s.io") as socket:
        first, output, status = await messages(socket)
    assert (first, output, ended_with(status[1:])) == (b"\1", b"\1attached", "Success")
    assert kubelet.runtime.treated == [True]


async def test_command_of_root_on_a_node(kubelet):
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "SPDY/3.1",
        "X_Stream_Protocol_Version": "v4.channel.k8s.io",
        "Mockube_Node": "a",
    }
    async with connected(kubelet, "POST", "/mockube/shell?command=id&output=1", **headers) as client:
        client.open(1, streamtype="error")
        client.open(3, streamtype="stdout")
        await client.until_ended(1, 3)
        assert (client.received[3], ended_with(client.received[1])) == (b"root", "Success")
    assert kubelet.machines.commands == [("a", "id")]


# --- logs and pages


async def response_of(kubelet, path, **headers):
    async with aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{kubelet.port}{path}"
        async with session.get(url, headers=headers, ssl=False) as response:
            return response.status, dict(response.headers), await response.read()


async def test_log(kubelet):
    status, headers, body = await response_of(kubelet, "/containerLogs/default/web/c")
    assert (status, body) == (200, b"first\n")
    assert (headers["Content-Type"], headers["Transfer-Encoding"]) == ("text/plain", "chunked")
    assert "Server" not in headers
    assert kubelet.runtime.log.is_closed


async def test_followed_log_ends_with_its_container(kubelet):
    url = f"https://127.0.0.1:{kubelet.port}/containerLogs/default/web/c?follow=true"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
        assert await response.content.readline() == b"first\n"
        kubelet.runtime.log.lines.append(LogLine(START, STDOUT, b"second\n"))
        kubelet.change(pod(ENDED))
        assert await response.read() == b"second\n"


@pytest.mark.parametrize(
    ("path", "node", "status"),
    [
        ("/configz", "a", 200),
        ("/metrics/no", "a", 404),
        ("/stats/summary", "b", 404),
    ],
)
async def test_page_of_a_node(kubelet, path, node, status):
    found, _, body = await response_of(kubelet, path, **{"Mockube-Node": node})
    assert found == status
    if status == 200:
        assert orjson.loads(body)["kubeletconfig"]["maxPods"] == 7


async def test_node_of_a_connection_is_that_of_its_address():
    kubelet = Kubelet()
    listener = listen("127.0.0.1", 0)
    kubelet.port = listener.getsockname()[1]
    async with serving(kubelet.endpoints, listener, TLS, node_of=lambda _address: "a"):
        assert (await response_of(kubelet, "/healthz", **{"Mockube-Node": "b"}))[0] == 200


# --- ports


async def test_port_over_spdy(kubelet):
    async with spdy_session(kubelet, FORWARD, "portforward.k8s.io") as client:
        assert "X-Stream-Protocol-Version: portforward.k8s.io\r\n" in client.head
        for number, port in ((1, "80"), (5, "81")):
            client.open(number, streamtype="error", port=port, requestid=port)
            client.open(number + 2, streamtype="data", port=port, requestid=port)
        client.send(3, b"x", last=True)
        await client.until_ended(1, 3, 5, 7)
        assert client.received == {3: b"x", 1: b"", 5: b"nothing listens", 7: b""}


async def test_port_of_a_deleted_pod_is_not_connected(kubelet):
    async with spdy_session(kubelet, FORWARD, "portforward.k8s.io") as client:
        kubelet.pods.web = None
        client.open(1, streamtype="error", port="80")
        client.open(3, streamtype="data", port="80")
        await client.until_ended(1, 3)
        assert client.received == {1: b"the pod is gone", 3: b""}


async def test_port_over_spdy_of_another_protocol_is_refused(kubelet):
    async with spdy_session(kubelet, FORWARD, "v4.channel.k8s.io") as client:
        assert client.head.startswith("HTTP/1.1 403 Forbidden")


async def test_port_over_a_tunnel(kubelet):
    async with web_socket(kubelet, FORWARD, "SPDY/3.1+portforward.k8s.io") as socket:
        assert socket.protocol == "SPDY/3.1+portforward.k8s.io"
        writer, reader, received = FrameWriter(), FrameReader(), []
        for number, kind in ((1, "error"), (3, "data")):
            await socket.send_bytes(writer.syn_stream(number, {"streamtype": kind, "port": "80"}))
        await socket.send_bytes(writer.data(3, b"x", last=True))
        while len(received) < 5:
            received += reader.feed(await socket.receive_bytes())
        data = [(each.stream, each.data) for each in received if isinstance(each, DataFrame)]
        assert data == [(3, b"x"), (3, b""), (1, b"")]


@pytest.mark.parametrize(
    ("protocol", "sent", "received"),
    [
        ("v4.channel.k8s.io", b"\0x", [b"\0P\0", b"\1P\0", b"\0x"]),
        ("v4.base64.channel.k8s.io", "0eA==", ["0UAA=", "1UAA=", "0eA=="]),
    ],
)
async def test_port_over_channels(kubelet, protocol, sent, received):
    async with web_socket(kubelet, f"{FORWARD}?port=80", protocol) as socket:
        assert socket.protocol == protocol
        await (socket.send_bytes if isinstance(sent, bytes) else socket.send_str)(sent)
        assert [(await socket.receive()).data for _ in range(3)] == received
    [connection] = kubelet.runtime.treated
    await connection.departure.wait()


async def test_port_by_its_address(kubelet):
    headers = {"Connection": "Upgrade", "Upgrade": "tcp", "Mockube_Node": "a"}
    async with connected(kubelet, "GET", "/connect/10.0.0.1/80", **headers) as client:
        assert "Upgrade: tcp\r\n" in client.head
        client.writer.write(b"hello")
        assert await client.reader.readexactly(5) == b"hello"
    [connection] = kubelet.runtime.treated
    await connection.departure.wait()


async def test_end_of_the_endpoints_ends_connections(kubelet):
    headers = {"Connection": "Upgrade", "Upgrade": "tcp", "Mockube_Node": "a"}
    async with connected(kubelet, "GET", "/connect/10.0.0.1/80", **headers) as client:
        client.writer.write(b"hello")
        await client.reader.readexactly(5)
        [connection] = kubelet.runtime.treated
        assert not connection.departure.is_set()
        await kubelet.endpoints.end()
        assert await client.reader.read() == b""
