"""Streams lose nothing: numbered frames through each path, with random ends, are compared byte for byte at both ends.

MOCKUBE_STREAM_ROUNDS is the number of rounds, MOCKUBE_STREAM_SEED the seed.
"""

import asyncio
import os
from pathlib import Path

import pytest
from kubernetes import client as official

from mockube import Cluster
from tests.support.process_pods import IMAGES, create
from tests.support.processes.acknowledged_writes import until
from tests.support.seeded import source
from tests.support.server.stream_clients import stream_clients

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of connections that are cut
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROUNDS = int(os.environ.get("MOCKUBE_STREAM_ROUNDS", "60"))
SEED = os.environ.get("MOCKUBE_STREAM_SEED", "streams")
AT_ONCE = 6
SPDY, TUNNEL = "SPDY", "tunnel"
EXEC_PROTOCOLS = (
    "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io",
    "", SPDY,
)  # fmt: skip
CONNECTIONS = (SPDY, TUNNEL, "v4.channel.k8s.io", "pods/proxy", "services/proxy")
MARK = 16
"""The length of the name with which a connection begins."""
SERVER = """
import os, socket, sys, threading
def serve(client):
    data = client.recv(65536)
    while data.startswith(b"POST") and b"\\r\\n\\r\\n" not in data:
        data += client.recv(65536)
    if data.startswith(b"POST"):
        data = data.partition(b"\\r\\n\\r\\n")[2]
        client.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n")
    while len(data) < 16:
        more = client.recv(16 - len(data))
        if not more:
            return client.close()
        data += more
    name = os.path.join(sys.argv[1], data[:16].decode())
    with open(name, "wb") as file:
        try:
            while data:
                file.write(data)
                client.sendall(data)
                data = client.recv(65536)
        except OSError:
            pass
    open(name + ".done", "w").close()
    client.close()
def listen(port):
    server = socket.create_server(("127.0.0.1", int(os.environ[f"MOCKUBE_PORT_{port}"])))
    while True:
        threading.Thread(target=serve, args=server.accept()[:1]).start()
listen(8443)
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture(scope="module")
def folder(machine_folder):
    return machine_folder


@pytest.fixture(scope="module")
def pods(cluster, folder):
    """Create a simulated container, a process, and a server on a port of a process; return the pods' names."""
    api = official.CoreV1Api(cluster.kubernetes())
    server = {
        "name": "c",
        "image": "example.org/api",
        "args": [SERVER, str(folder)],
        "ports": [{"containerPort": 8443}],
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1},
    }
    names = {
        "simulated": create(api, {"name": "c", "image": "busybox", "command": ["sleep", "inf"]}),
        "process": create(api, {"name": "c", "image": "example.org/server"}),
        "server": create(api, server),
    }
    api.patch_namespaced_pod(names["server"], "default", {"metadata": {"labels": {"app": "streams"}}})
    spec = {"selector": {"app": "streams"}, "ports": [{"port": 8443}]}
    api.create_namespaced_service("default", {"metadata": {"name": "streams"}, "spec": spec})
    for name in names.values():
        cluster.wait("Pod", name, "Ready")
    cluster.wait("Endpoints", "streams", lambda endpoints: endpoints.get("subsets"))
    return names | {"node": api.read_namespaced_pod(names["server"], "default").spec.node_name}


def frames_of(random, most):
    return [b"%08d" % n * random.randint(1, 512) for n in range(random.randint(1, most))]


def exec_path(pods, pod, command, *, through_node, stdin=True):
    streams = ("stdin", "stdout", "stderr") if not through_node else ("input", "output", "error")
    query = [("command", part) for part in command] + [
        (name, "true") for name in streams[0 if stdin else 1 :]
    ]
    if through_node:
        return f"/api/v1/nodes/{pods['node']}/proxy/exec/default/{pod}/c", query
    return f"/api/v1/namespaces/default/pods/{pod}/exec", query


async def open_exec(clients, target, protocol, *, stdin=True):
    path, query = target
    if protocol != SPDY:
        return await clients.over_web_socket(path, query, protocol)
    streams = ("error", *(["stdin"] if stdin else []), "stdout", "stderr")
    return await clients.over_spdy(path, query, {name: {} for name in streams})


async def run(clients, pods, pod, command):
    target = exec_path(pods, pod, command, through_node=False, stdin=False)
    output, status = await (await open_exec(clients, target, "v5.channel.k8s.io", stdin=False)).read_all()
    assert status["status"] == "Success", status
    return output


async def send_frames(client, frames, *, ends):
    for frame in frames:
        await client.send(frame)
    if ends:
        await client.end()


async def exec_round(clients, pods, folder, random, number):
    """Send frames to a command, which writes them into a file, and end in one of three ways."""
    runtime, protocol = random.choice(("simulated", "process")), random.choice(EXEC_PROTOCOLS)
    file = f"{folder if runtime == 'process' else '/tmp'}/exec-{number}"
    has_status = protocol.startswith("v") or protocol == SPDY
    ending = random.choice(("end", "close", "end and close", "cut"))
    program = "tee" if ending == "end" else "cat >"
    command = ["sh", "-c", f"{program} {file}; echo done > {file}.done"]
    through_node = random.random() < 0.3
    client = await open_exec(
        clients, exec_path(pods, pods[runtime], command, through_node=through_node), protocol
    )
    what = f"{number}: {ending} of {protocol or 'no protocol'} to a {runtime} container, through node {through_node}"
    frames = frames_of(random, 60 if ending == "end" else 30)
    if ending == "end" and client.ends_input:
        sending = asyncio.create_task(send_frames(client, frames, ends=True))
        output, status = await client.read_all()
        await sending
        assert output == b"".join(frames), what
        assert status["status"] == "Success" if has_status else status is None, what
    else:
        await send_frames(client, frames, ends=ending == "end and close")
        client.cut() if ending == "cut" else await client.close()
    script = f"while ! test -e {file}.done; do sleep 0.1; done; cat {file}; rm {file} {file}.done"
    received = await run(clients, pods, pods[runtime], ["sh", "-c", script])
    if ending == "cut":
        assert b"".join(frames).startswith(received), what
    else:
        assert received == b"".join(frames), what


async def open_connection(clients, pods, kind):
    pod = f"/api/v1/namespaces/default/pods/{pods['server']}"
    streams = {name: {"port": "8443", "requestid": "0"} for name in ("error", "data")}
    if kind == SPDY:
        return await clients.over_spdy(f"{pod}/portforward", [], streams, "portforward.k8s.io")
    if kind == TUNNEL:
        return await clients.over_tunnel(f"{pod}/portforward", streams)
    if kind == "pods/proxy":
        return await clients.over_upgrade(f"{pod}:8443/proxy/")
    if kind == "services/proxy":
        return await clients.over_upgrade("/api/v1/namespaces/default/services/streams:8443/proxy/")
    return await clients.forwarded_over_channels(f"{pod}/portforward", "8443")


async def connection_round(clients, pods, folder, random, number):
    """Send frames to a port whose server sends them back, and end in one of three ways."""
    kind, ending = random.choice(CONNECTIONS), random.choice(("end", "close", "cut"))
    what = f"{number}: {ending} of a connection over {kind}"
    client = await open_connection(clients, pods, kind)
    mark = f"port-{number}".encode().ljust(MARK, b"-")
    await client.send(mark)
    assert await client.read(MARK) == mark, what
    frames = frames_of(random, 40 if ending == "end" else 8)
    sent = b"".join(frames)
    sending = asyncio.create_task(send_frames(client, frames, ends=ending == "end"))
    if ending == "end" and client.ends_input:
        output, problem = await client.read_all()
        assert (output, problem) == (sent, None), what
    elif ending == "end":
        assert await client.read(len(sent)) == sent, what
    await sending
    client.cut() if ending == "cut" else await client.close()
    file = Path(folder, mark.decode())
    await asyncio.to_thread(until, file.with_name(f"{file.name}.done").exists, what)
    received = (await asyncio.to_thread(file.read_bytes))[MARK:]
    assert sent.startswith(received) if ending == "cut" else received == sent, what


@pytest.mark.timeout(120 + ROUNDS)
async def test_frames_are_received_in_order_and_completely(cluster, pods, folder):
    random = source(SEED)

    async def run_rounds(clients, first):
        for number in range(first, ROUNDS, AT_ONCE):
            round_of = exec_round if random.random() < 0.6 else connection_round
            await round_of(clients, pods, folder, source(SEED, number), number)

    async with stream_clients(cluster) as clients, asyncio.TaskGroup() as group:
        for first in range(AT_ONCE):
            group.create_task(run_rounds(clients, first))


@pytest.mark.parametrize("runtime", ["simulated", "process"])
@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", SPDY])
async def test_slow_reader_gets_all_output_and_status(cluster, pods, runtime, protocol):
    async with stream_clients(cluster) as clients:
        command = ["seq", "200000"]
        target = exec_path(pods, pods[runtime], command, through_node=False, stdin=False)
        client = await open_exec(clients, target, protocol, stdin=False)
        await run(
            clients, pods, pods[runtime], ["seq", "20000"]
        )  # meanwhile the output of the first one waits
        output, status = await client.read_all()
    assert output == b"".join(b"%d\n" % n for n in range(1, 200_001))
    assert status["status"] == "Success"


@pytest.mark.parametrize("runtime", ["simulated", "process"])
@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", SPDY])
async def test_program_that_reads_no_input_ends_with_its_output_and_status(cluster, pods, runtime, protocol):
    async with stream_clients(cluster) as clients:
        target = exec_path(pods, pods[runtime], ["sh", "-c", "head -c 5; exit 7"], through_node=False)
        client = await open_exec(clients, target, protocol)
        sending = asyncio.create_task(send_frames(client, [b"x" * 4096] * 200, ends=True))
        output, status = await client.read_all()
        await asyncio.gather(sending, return_exceptions=True)  # the server may have closed the connection
    assert output == b"xxxxx"
    assert status["details"]["causes"][0]["message"] == "7"


@pytest.mark.parametrize("runtime", ["simulated", "process"])
async def test_attached_clients_lose_no_line(cluster, pods, folder, runtime):
    """Three clients send lines to one container, beside each other; two of them also compare its output."""
    api = official.CoreV1Api(cluster.kubernetes())
    file = f"{folder}/attached" if runtime == "process" else "/tmp/attached"
    image = "example.org/shell" if runtime == "process" else "busybox"
    command = {"args": ["-c", f"tee {file}"]} if runtime == "process" else {"command": ["tee", file]}
    container = {"name": "c", "image": image, "stdin": True, **command}
    name = await asyncio.to_thread(create, api, container)
    await asyncio.to_thread(cluster.wait, "Pod", name, "Ready")
    path = f"/api/v1/namespaces/default/pods/{name}/attach"
    query = [("stdin", "true"), ("stdout", "true")]

    async def attach(clients, mark, protocol):
        lines = [b"%s%06d" % (mark, n) + b"." * (n % 700) + b"\n" for n in range(300)]
        if protocol == SPDY:
            client = await clients.over_spdy(path, query, {name: {} for name in ("error", "stdin", "stdout")})
        else:
            client = await clients.over_web_socket(path, query, protocol)
        sending = asyncio.create_task(send_frames(client, lines, ends=False))
        output = b""
        while output.count(mark) < len(lines) or not output.endswith(b"\n"):
            output += await client.read(1)
        await sending
        await client.close()
        assert [line for line in output.splitlines(keepends=True) if line.startswith(mark)] == lines
        return lines

    async with stream_clients(cluster) as clients:
        sent = await asyncio.gather(
            attach(clients, b"a", "v5.channel.k8s.io"), attach(clients, b"b", SPDY), attach(clients, b"c", "")
        )
        received = (await run(clients, pods, name, ["cat", file])).splitlines(keepends=True)
    assert sorted(received) == sorted(line for lines in sent for line in lines)


@pytest.mark.parametrize("runtime", ["simulated", "process"])
@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", SPDY])
async def test_command_reads_its_input_long_after_its_client_has_left(
    cluster, pods, folder, runtime, protocol
):
    file = f"{folder}/late-{protocol}" if runtime == "process" else f"/tmp/late-{protocol}"
    script = f"until test -e {file}.go; do sleep 0.1; done; cat > {file}; echo done > {file}.done"
    frames = frames_of(source(protocol), 100)
    async with stream_clients(cluster) as clients:
        target = exec_path(pods, pods[runtime], ["sh", "-c", script], through_node=False)
        client = await open_exec(clients, target, protocol)
        await send_frames(client, frames, ends=False)
        closing = asyncio.create_task(client.close())
        await asyncio.to_thread(until, lambda: has_left(cluster), "the end of the client")
        await asyncio.to_thread(cluster.advance, 60)
        await closing
        script = f"touch {file}.go; until test -e {file}.done; do sleep 0.1; done; cat {file}"
        assert await run(clients, pods, pods[runtime], ["sh", "-c", script]) == b"".join(frames)


def has_left(cluster):
    """Return whether no task reads from a client, though a command runs."""
    loop = cluster._context._loop
    names = [task.get_name() for task in cluster._context.call(lambda: asyncio.all_tasks(loop))]
    return "a command for a client" in names and "streams of a client" not in names


async def test_command_ends_with_its_container(cluster, pods):
    """It continues without its client until then, and a client that is still there gets the exit code."""
    api = official.CoreV1Api(cluster.kubernetes())
    for container in (
        {"name": "c", "image": "busybox", "command": ["sleep", "inf"]},
        {"name": "c", "image": "example.org/server"},
    ):
        name = await asyncio.to_thread(create, api, container)
        await asyncio.to_thread(cluster.wait, "Pod", name, "Ready")
        async with stream_clients(cluster) as clients:
            target = exec_path(pods, name, ["sh", "-c", "echo begun; sleep 1000"], through_node=False)
            leaving = await open_exec(clients, target, "v4.channel.k8s.io")
            staying = await open_exec(clients, target, "v4.channel.k8s.io")
            assert await leaving.read(6) == b"begun\n"
            assert await staying.read(6) == b"begun\n"
            leaving.cut()
            await asyncio.to_thread(
                api.delete_namespaced_pod,
                name,
                "default",
                grace_period_seconds=1,
                propagation_policy="Background",
            )
            _, status = await staying.read_all()
    assert status["details"]["causes"][0]["message"] == "137"
    loop = cluster._context._loop
    tasks = lambda: [task.get_name() for task in cluster._context.call(lambda: asyncio.all_tasks(loop))]  # noqa: E731
    await asyncio.to_thread(until, lambda: "a command for a client" not in tasks(), "the end of the commands")


@pytest.mark.parametrize("runtime", ["simulated", "process"])
async def test_input_of_terminal_ends_when_its_client_leaves(cluster, pods, folder, runtime):
    file = f"{folder}/typed" if runtime == "process" else "/tmp/typed"
    path, query = exec_path(
        pods, pods[runtime], ["sh", "-c", f"cat > {file}; echo done > {file}.done"], through_node=False
    )
    async with stream_clients(cluster) as clients:
        client = await open_exec(clients, (path, [*query, ("tty", "true")]), "v5.channel.k8s.io")
        for _ in range(100):
            await client.resize(80, 25)
        await client.send(b"one\rtwo")
        await client.close()
        script = f"while ! test -e {file}.done; do sleep 0.1; done; cat {file}"
        assert await run(clients, pods, pods[runtime], ["sh", "-c", script]) == b"one\ntwo"


async def test_client_that_changes_its_terminal_is_not_stopped(cluster, pods):
    """A simulated command does not read the size, but the frames that follow it."""
    path, query = exec_path(pods, pods["simulated"], ["cat"], through_node=False)
    async with stream_clients(cluster) as clients:
        streams = {name: {} for name in ("error", "stdin", "stdout", "resize")}
        client = await clients.over_spdy(path, [*query, ("tty", "true")], streams)
        for _ in range(100):
            await client.resize(80, 25)
        await client.send(b"typed\r\x04")
        output, status = await client.read_all()
    assert output == b"typed\r\ntyped\r\n"
    assert status["status"] == "Success"
