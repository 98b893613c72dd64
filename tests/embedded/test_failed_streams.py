"""A task of one exec, attach, port-forward or watch that fails ends that connection with an error, and is logged once."""

import asyncio
import gc
from urllib.parse import urlencode

import aiohttp
import orjson
import pytest
from kubernetes import client as official

from mockube import Cluster
from tests.support.process_pods import IMAGES, create
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.failing_program import fail
from tests.support.processes.process import tls, token
from tests.support.server.spdy_client import SpdyClient

FAULT = "RuntimeError: a fault in the program"
STREAMS = {"stdin": "true", "stdout": "true", "stderr": "true"}
TERMINAL = {"stdin": "true", "stdout": "true", "tty": "true"}
SIMULATED = {"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}
INTERACTIVE = {"name": "c", "image": "busybox", "command": ["sh"], "stdin": True}
PROCESS = {"name": "c", "image": "example.org/shell", "stdin": True}
ON_TERMINAL = PROCESS | {"tty": True}
SERVER = {
    "name": "c",
    "image": "example.org/server",
    "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1},
}
V5 = "v5.channel.k8s.io"
WAITS = {"command": "cat"}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture(scope="module")
def pods(cluster):
    """Create a pod of each kind once, when a test first names it."""
    api, names = official.CoreV1Api(cluster.kubernetes()), {}

    def name_of_pod(container):
        key = orjson.dumps(container)
        if key not in names:
            names[key] = create(api, container)
            cluster.wait("Pod", names[key], "Ready")
        return names[key]

    return name_of_pod


def tasks(cluster, name):
    loop = cluster._context._loop
    return [
        task for task in cluster._context.call(lambda: asyncio.all_tasks(loop)) if task.get_name() == name
    ]


def fail_task(cluster, name):
    """Fail the task of this name, which the connection that was just opened has started."""
    until(lambda: tasks(cluster, name), name)
    loop = cluster._context._loop
    loop.call_soon_threadsafe(fail, loop, name)


def logged_faults(caplog):
    texts = map(caplog.handler.format, caplog.records)
    return [text for text in texts if FAULT in text and "Traceback (most recent call last)" in text]


def path_of(pods, container, what, query):
    return f"/api/v1/namespaces/default/pods/{pods(container)}/{what}?{urlencode(query)}"


async def received_after_failure(cluster, path, protocols, name):
    """Open a WebSocket, fail the task, and return what is received until the connection ends."""
    headers = {"Authorization": f"Bearer {token(cluster.kubeconfig)}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(cluster.url + path, ssl=tls(cluster.kubeconfig), protocols=protocols) as socket,
    ):
        await asyncio.to_thread(fail_task, cluster, name)
        return [message.data async for message in socket]


@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("a command for a client", (SIMULATED, "exec", STREAMS | WAITS)),
        ("input of a terminal", (SIMULATED, "exec", TERMINAL | WAITS)),
        ("input of a container", (INTERACTIVE, "attach", STREAMS)),
        ("input of a command", (PROCESS, "exec", STREAMS | WAITS)),
        ("output of a command", (PROCESS, "exec", STREAMS | WAITS)),
        ("sizes of a terminal", (PROCESS, "exec", TERMINAL | WAITS)),
        ("input of a container", (PROCESS, "attach", STREAMS)),
        ("sizes of a terminal", (ON_TERMINAL, "attach", TERMINAL)),
    ],
)
async def test_failed_task_of_exec_or_attach_ends_it_with_its_error(cluster, pods, caplog, name, opened):
    container, what, query = opened
    path = await asyncio.to_thread(path_of, pods, container, what, query)
    *_, last = await received_after_failure(cluster, path, [V5], name)
    assert last[:1] == b"\x03"
    status = orjson.loads(last[1:])
    assert (status["status"], status["code"]) == ("Failure", 500)
    assert status["message"] == f"Internal error occurred: {FAULT}"
    (entry,) = logged_faults(caplog)
    assert f"{name} failed" in entry
    assert not tasks(cluster, name)


@pytest.mark.parametrize("name", ["a command for a client", "streams of a client"])
async def test_failed_task_of_exec_ends_it_over_spdy(cluster, pods, caplog, name):
    query = [*STREAMS.items(), *WAITS.items()]
    path = (await asyncio.to_thread(path_of, pods, SIMULATED, "exec", {})).rstrip("?")
    async with SpdyClient.upgrade(cluster, path, query) as (client, _):
        for number, kind in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            client.open(number, stream_Type=kind)
        await asyncio.to_thread(fail_task, cluster, name)
        await client.until_ended(1, 5, 7)
    assert FAULT in orjson.loads(client.received[1])["message"]
    assert len(logged_faults(caplog)) == 1


@pytest.mark.parametrize(
    "name", ["a forwarded connection", "a connection to a process", "a connection from a process"]
)
async def test_failed_task_of_forwarded_port_is_reported_over_spdy(cluster, pods, caplog, name):
    path = (await asyncio.to_thread(path_of, pods, SERVER, "portforward", {})).rstrip("?")
    async with SpdyClient.upgrade(cluster, path, [], protocol="portforward.k8s.io") as (client, _):
        client.open(1, stream_Type="error", port="8080", request_ID="0")
        client.open(3, stream_Type="data", port="8080", request_ID="0")
        await asyncio.to_thread(fail_task, cluster, name)
        await client.until_ended(1, 3)
        assert client.received[1] == f"an internal error: {FAULT}".encode()
        client.open(5, stream_Type="error", port="8080", request_ID="1")
        client.open(7, stream_Type="data", port="8080", request_ID="1")
        client.send(7, b"GET / HTTP/1.0\r\n\r\n")
        await client.until_ended(5, 7)
        assert client.received[7].endswith(b"served\n")
    assert len(logged_faults(caplog)) == 1
    assert not tasks(cluster, name)


@pytest.mark.parametrize(
    "name",
    ["a forwarded connection", "forwarded connections", "a connection to a process"],
)
async def test_failed_task_of_forwarded_ports_ends_websocket(cluster, pods, caplog, name):
    path = await asyncio.to_thread(path_of, pods, SERVER, "portforward", {"ports": "8080"})
    received = await received_after_failure(cluster, path, ["v4.channel.k8s.io"], name)
    assert received[2:] == [b"\x01" + f"an internal error: {FAULT}".encode()]
    assert len(logged_faults(caplog)) == 1
    assert not tasks(cluster, "a forwarded connection")


async def test_failed_session_ends_its_connection_and_command(cluster, pods, caplog):
    path = await asyncio.to_thread(path_of, pods, SIMULATED, "exec", STREAMS | WAITS)
    await received_after_failure(cluster, path, [V5], "a session of a client")
    assert "a session of a client failed" in " ".join(logged_faults(caplog))
    await asyncio.to_thread(
        until, lambda: not tasks(cluster, "a command for a client"), "the end of the command"
    )


@pytest.mark.parametrize("name", ["from the client", "from the backend"])
async def test_failed_direction_of_tunnel_ends_it(cluster, pods, caplog, name):
    path = await asyncio.to_thread(path_of, pods, SIMULATED, "exec", STREAMS | WAITS)
    await received_after_failure(cluster, path, [V5], name)
    assert "a tunnel to a backend failed" in " ".join(logged_faults(caplog))
    await asyncio.to_thread(
        until, lambda: not tasks(cluster, "a command for a client"), "the end of the command"
    )


@pytest.mark.parametrize(
    ("name", "protocols", "what", "query"),
    [
        ("streams of a client", [V5], "exec", STREAMS | WAITS),
        ("channels of a client", ["v4.channel.k8s.io"], "portforward", {"ports": "80"}),
        ("read the client of a watch", [], "", {"watch": "1", "resourceVersion": "0"}),
    ],
)
async def test_failed_reader_of_websocket_ends_connection(cluster, pods, name, protocols, what, query):
    """The task waits for aiohttp, for which an error is the end of the connection."""
    pod = await asyncio.to_thread(path_of, pods, SIMULATED, what, query)
    path = pod if what else f"/api/v1/pods?{urlencode(query)}"
    await received_after_failure(cluster, path, protocols, name)
    await asyncio.to_thread(until, lambda: not tasks(cluster, name), "the end of the task")


@pytest.fixture(autouse=True)
def left_open_no_longer():
    """Collect the tasks of a test, so that no later one gets their warnings."""
    yield
    gc.collect()
