"""Memory of a server process with clients that do not read, do not send, or only wait."""

import asyncio
import base64
import contextlib
import re
from pathlib import Path

import pytest

from tests.support.event_loop import WAIT_TIMEOUT, yield_to_loop
from tests.support.processes.process import ApiServerProcess, client, tls, token
from tests.support.seeded import source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MAPS = "/api/v1/namespaces/default/configmaps"
MIB = 1 << 20
OBJECTS, OBJECT_BYTES, READERS = 42, 750_000, 40
WATCHES, SILENT = 2000, 500
LARGE_REQUESTS, SECONDS = 16, 10
DEFINITIONS, DEFINITIONS_PATH = 200, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WORDS = (
    "the",
    "name",
    "of",
    "a",
    "field",
    "that",
    "selects",
    "which",
    "objects",
    "belong",
    "to",
    "this",
    "resource",
)


@pytest.fixture
def server(tmp_path):
    with ApiServerProcess(tmp_path, "--http-port=0") as server:
        yield server


@pytest.fixture
async def connect(server):
    """Opens connections that are not read unless the test does so."""
    opened = []
    server.wait_logged("Serving without encryption")
    plain = next(match[1] for line in server.log if (match := re.search(r"http://127.0.0.1:(\d+)", line)))
    secure = server.url.rpartition(":")[2]

    async def connect(sent=b"", *, encrypted=False):
        context = tls(server.kubeconfig) if encrypted else None
        port = int(secure if encrypted else plain)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=1 << 16)
        opened.append(writer)
        writer.write(sent)
        return reader, writer

    connect.opened = opened
    yield connect
    for writer in opened:
        writer.transport.abort()


def request(server, path, *headers, method="GET"):
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token(server.kubeconfig)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def memory(server, field="VmRSS"):
    """Return the resident memory in bytes, or its maximum (VmHWM)."""
    text = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) * 1024


async def open_watches(admin):
    text = (await admin.get("/metrics")).data.decode()
    return sum(
        float(line.rpartition(" ")[2]) for line in re.findall(r"apiserver_longrunning_requests\{.*", text)
    )


async def until_watches(admin, count):
    async with asyncio.timeout(WAIT_TIMEOUT):
        while await open_watches(admin) != count:
            await yield_to_loop()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        pytest.param(f"{MAPS}?watch=1", (), id="watches"),
        pytest.param(MAPS, (), id="lists"),
        pytest.param(MAPS, ("Accept-Encoding: gzip",), id="compressed lists"),
    ],
)
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux reports the memory of a process"
)
async def test_clients_that_do_not_read_use_little_memory(server, connect, path, headers):
    async with client(server) as admin:
        random = source("readers", 1)
        for number in range(OBJECTS):
            text = base64.b64encode(
                random.randbytes(OBJECT_BYTES)
            ).decode()  # of a megabyte, and not compressible text
            created = await admin.post(MAPS, {"metadata": {"name": f"m{number}"}, "data": {"a": text}})
            assert created.status == 201
        await admin.get(MAPS)  # data that all readers share is allocated
        before = memory(server)
        asked = request(server, path, *headers)
        readers = [(await connect(asked, encrypted=True))[0] for _ in range(READERS)]
        for reader in readers:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(100_000)
        assert (await admin.get("/livez")).status == 200
        assert memory(server, "VmHWM") - before < 150 * MIB, "of 40 times 40 MiB"
        for writer in connect.opened:
            writer.transport.abort()
        await until_watches(admin, 0)
        assert memory(server) - before < 150 * MIB


LARGE_PATCH = b'{"unknown":[%b]}' % b",".join([b"[]"] * (MIB - 100))
"""A list of a million lists takes 70 MB."""


async def send_all(server, sent):
    """Send a request over each of the connections; return the status lines of the responses."""

    async def send(connection):
        reader, writer = connection
        writer.write(sent)
        line = await reader.readline()
        await reader.read()
        writer.close()
        return line[9:12].decode()

    context, port = tls(server.kubeconfig), server.url.rpartition(":")[2]
    connections = [
        await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(LARGE_REQUESTS)
    ]
    return await asyncio.gather(*map(send, connections))


@pytest.mark.parametrize("chunked", [False, True])
async def test_memory_of_concurrent_large_requests_is_limited(server, chunked):
    """Each of them takes 150 MB by itself."""
    async with client(server) as admin:
        assert (await admin.post(MAPS, {"metadata": {"name": "a"}})).status == 201
        before = memory(server)
        length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(LARGE_PATCH)}"
        headers = "Content-Type: application/merge-patch+json", length, "Connection: close"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE_PATCH), LARGE_PATCH) if chunked else LARGE_PATCH
        answers = await send_all(
            server, request(server, f"{MAPS}/a?timeout={SECONDS}s", *headers, method="PATCH") + body
        )
        assert {*answers} <= {"200", "504"}
        assert memory(server, "VmHWM") - before < 800 * MIB, "of 16 times 150 MiB"
        assert (await admin.post(MAPS, {"metadata": {"name": "b"}})).status == 201


async def test_many_watches_and_idle_connections_do_not_block_requests(server, connect):
    watch = request(server, f"{MAPS}?watch=1")
    for _ in range(SILENT // 2):
        await connect()
        await connect(b"GET / HTTP/1.1\r\nHost:")
    heads = []
    for _ in range(WATCHES):
        reader, _ = await connect(watch)
        heads.append(reader.readuntil(b"\r\n\r\n"))
    answers = await asyncio.gather(*heads)
    assert {answer[:15] for answer in answers} == {b"HTTP/1.1 200 OK"}
    async with client(server, token_="") as anybody:
        assert (await anybody.get("/livez")).status == 200
    async with client(server) as admin:
        await until_watches(admin, WATCHES)


async def test_unauthenticated_clients_use_little_memory(server, connect):
    """Heads of a mebibyte that do not end, more headers than allowed, and bodies that no request needs."""
    before = memory(server)
    long = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000
    many = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(
        b"X%d: %b\r\n" % (at, b"a" * 100_000) for at in range(200)
    )
    body = (
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n" % MAPS.encode()
        + b"a" * 9_000_000
    )
    for sent in (long, many, body):
        for _ in range(50):
            _, writer = await connect(sent)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
    async with client(server, token_="") as anybody:
        assert (await anybody.get("/livez")).status == 200
    assert memory(server, "VmHWM") - before < 350 * MIB


def definition(number, words):
    """A definition of some 75 KB: 30 groups of 12 described fields, as large projects publish them."""
    field = {"type": "string", "maxLength": 64}
    groups = {
        f"group{group}": {
            "type": "object",
            "properties": {
                f"field{index}": field | {"description": " ".join(words.choices(WORDS, k=18))}
                for index in range(12)
            },
        }
        for group in range(30)
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": groups}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    group = f"g{number}.example.com"
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"widgets.{group}"}, "spec": spec}


async def until_served(admin, count):
    async with asyncio.timeout(10 * WAIT_TIMEOUT):
        while len(re.findall(rb'"name":"g\d+\.example\.com"', (await admin.get("/apis")).data)) < count:
            await yield_to_loop()


async def test_many_definitions_use_little_memory(server):
    """Of each, three versions are stored in a second, and one is compiled."""
    words = source("definitions", 1)
    async with client(server) as admin:
        before = memory(server)
        for number in range(DEFINITIONS):
            created = await admin.post(DEFINITIONS_PATH, definition(number, words))
            assert created.status == 201, created.body
        await until_served(admin, DEFINITIONS)
        assert memory(server) - before < 48 * MIB
