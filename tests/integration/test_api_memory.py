"""Requests with a large body or a large object wait for memory; other requests do not wait."""

import asyncio
import base64
import contextlib
import gc
import socket
import struct
from http.client import HTTPConnection
from types import CoroutineType, FunctionType

import pytest

from mockube.apimachinery import piecewise
from mockube.apimachinery.piecewise import MIN_BYTES_IN_PIECES
from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.memory_limit import Reservation
from mockube.apiserver.registry.registry import DECODED_BYTES
from mockube.apiserver.request.endpoints import MAX_BODY
from tests.support.event_loop import until, yield_to_loop
from tests.support.server import apiserver
from tests.support.server.apiserver import Client
from tests.support.server.webhook_server import MUTATING, VALIDATING, webhook_server

MAPS = "/api/v1/namespaces/default/configmaps"
LARGE = {"metadata": {"name": "large"}, "data": {"a": "b" * 100_000}}
PATCH = {"data": {"c": "d"}}
MERGE = {"Content_Type": "application/merge-patch+json"}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        assert (await client.post(MAPS, LARGE)).status == 201
        assert (await client.post(MAPS, {"metadata": {"name": "small"}})).status == 201
        yield client


@pytest.fixture
async def all_memory(client):
    """A reservation of all memory that requests may use."""
    reservation = Reservation(client.server.registry.memory, "another user")
    await reservation.grow(DECODED_BYTES)
    return reservation


REQUESTS = {
    "create": ("POST", MAPS, LARGE | {"metadata": {"name": "new"}}, {}),
    "update": ("PUT", f"{MAPS}/large", LARGE, {}),
    "patch": ("PATCH", f"{MAPS}/small", {"data": {"a": "b" * 100_000}}, MERGE),
    "small patch of a large object": ("PATCH", f"{MAPS}/large", PATCH, MERGE),
    "JSON patch that copies": (
        "PATCH",
        f"{MAPS}/large",
        [{"op": "copy", "from": "/data/a", "path": "/data/z"}],
        {"Content_Type": "application/json-patch+json"},
    ),
    "apply": (
        "PATCH",
        f"{MAPS}/small?fieldManager=a",
        {"apiVersion": "v1", "kind": "ConfigMap", **LARGE, "metadata": {"name": "small"}},
        {"Content_Type": "application/apply-patch+yaml"},
    ),
    "delete": ("DELETE", f"{MAPS}/large", {"kind": "DeleteOptions", "apiVersion": "v1", "x": "a" * 100_000}, {}),
    "review": (
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"nonResourceAttributes": {"path": "/" + "a" * 100_000}}},
        {},
    ),
    "binding": (
        "POST",
        "/api/v1/namespaces/default/pods/x/binding",
        {"metadata": {"name": "x"}, "target": {"name": "n" * 100_000}},
        {},
    ),
    "collection": (
        "DELETE",
        MAPS,
        {"kind": "DeleteOptions", "apiVersion": "v1", "x": "a" * 100_000},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
async def test_large_request_waits_for_memory(client, all_memory, name):
    method, path, body, headers = REQUESTS[name]
    answer = asyncio.create_task(client.send(method, path, body, **headers))
    async with asyncio.timeout(60):
        while not client.server.registry.memory.waiting:
            await yield_to_loop()
            assert not answer.done()
    assert (await client.get(f"{MAPS}/large")).status == 200
    assert (await client.send("PATCH", f"{MAPS}/small", PATCH, **MERGE)).status == 200
    all_memory.release()
    await answer
    assert client.server.registry.memory.reserved == 0


@pytest.mark.parametrize("impersonates", [False, True])
async def test_slow_bodies_of_one_user_do_not_delay_those_of_another(client, impersonates):
    """The slow bodies never end. A user who impersonates others has one share with all of them."""
    server, slow = client.server, Client(client.session, client.url, authorization="Bearer alice")
    fields = f"Content-Type: application/json\r\nContent-Length: {MAX_BODY}"
    sockets = []
    for number in range(150):
        other = f"\r\nImpersonate-User: user-{number}" if impersonates else ""
        sockets.append(await connect_slowly(slow, head(slow, f"POST {MAPS}", fields + other) + "{"))
    bodies = server.handler.endpoints.bodies
    await until(lambda: bodies.reserved // MAX_BODY + bodies.waiting == 150)
    assert (await client.post(MAPS, LARGE | {"metadata": {"name": "new"}})).status == 201
    assert server.handler.in_flight.count("create") == 150, "no slow request has ended"
    assert bodies.capacity // 2 - MAX_BODY < bodies.reserved <= bodies.capacity // 2
    await disconnect(client, sockets)
    await until(lambda: (bodies.reserved, bodies.waiting) == (0, 0))


async def test_request_that_times_out_while_waiting_leaves_the_queue(client, all_memory):
    memory = client.server.registry.memory
    body = LARGE | {"metadata": {"name": "new"}}
    late = await client.post(f"{MAPS}?timeout=100ms", body)
    assert (late.status, late.body["reason"]) == (504, "Timeout")
    assert memory.waiting == 0
    all_memory.release()
    assert (await client.post(MAPS, body)).status == 201
    assert memory.reserved == 0


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
async def test_webhook_may_send_large_requests_before_it_answers(client, tmp_path, kind):
    statuses = []

    async def write(number):
        name = f"from-webhook-{number}"
        statuses.append((await client.post(MAPS, LARGE | {"metadata": {"name": name}})).status)

    async with webhook_server(tmp_path) as hooks:
        rule = {"objectSelector": {"matchLabels": {"reviewed": "yes"}}, "timeoutSeconds": 10}
        hooks.before_answer = lambda: write(len(hooks.requests))
        configured = [hooks.hook("ok", name=f"{name}.example.com", **rule) for name in ("a", "b")]
        await client.post(kind, {"metadata": {"name": "c"}, "webhooks": configured})
        body = {"data": {"a": "b" * 1_000_000}}
        new = [{"metadata": {"name": f"new-{number}", "labels": {"reviewed": "yes"}}} for number in range(20)]
        answers = await asyncio.gather(*(client.post(MAPS, body | one) for one in new))
    assert {answer.status for answer in answers} == {201}
    assert statuses == [201] * 40
    assert client.server.registry.memory.reserved == 0


@pytest.mark.parametrize(
    ("description_bytes", "is_divided"),
    [pytest.param(20_000, False, id="small"), pytest.param(MIN_BYTES_IN_PIECES, True, id="large")],
)
async def test_definition_is_encoded_in_pieces_by_its_bytes_not_by_its_cost(
    client, monkeypatch, description_bytes, is_divided
):
    """A definition costs as much time as an object of 64 times its bytes; the pieces of a small one would only waste time."""
    encoded_in_pieces = []

    def encode(value, *arguments, **options):
        encoded_in_pieces.append(value)
        return piecewise.orjson.dumps(value, *arguments, **options)

    monkeypatch.setattr(piecewise, "encode_in_pieces", encode)
    schema = {"type": "object", "description": "a" * description_bytes}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    answer = await client.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [version],
            },
        },
    )
    assert answer.status == 201
    assert bool(encoded_in_pieces) is is_divided


def exchange(address, headers):
    """Send requests over one connection, the last of them a watch, and close it."""
    connection = HTTPConnection(*address)
    for path, status in ((f"{MAPS}/small", 200), (f"{MAPS}/none", 404), (f"{MAPS}?watch=1", 200)):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == status
        if "watch" not in path:
            response.read()
    response.close()
    connection.close()


def is_of_server(value):
    """Return whether a value is an object of the server or of its HTTP library, or the rest of a task."""
    kind = type(value)
    return kind.__module__.split(".")[0] in ("mockube", "aiohttp") or kind in (CoroutineType, FunctionType)


@contextlib.asynccontextmanager
async def collecting():
    """Yield a list that has the server's objects in cycles after the block: what reference counting did not free within it."""
    left_over = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield left_over
        gc.collect()
        left_over += [value for value in gc.garbage if is_of_server(value)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_connections_leave_no_cycles(client):
    """The transports of asyncio's own event loop do; uvloop's, with which servers run, do not."""
    host, port = client.url.removeprefix("http://").split(":")

    async def connect(count):
        for _ in range(count):
            await asyncio.to_thread(exchange, (host, int(port)), client.credentials)
        await until(lambda: not client.server.handler.watch_handler._streams)

    await connect(2)
    async with collecting() as left_over:
        await connect(20)
    assert left_over == []


UNREAD = {
    "watch": (f"GET {MAPS}?watch=1", ""),
    "watch list": (
        f"GET {MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "",
    ),
    "watch that resumes": (f"GET {MAPS}?watch=1&resourceVersion={{revision}}", ""),
    "watch of tables": (
        f"GET {MAPS}?watch=1&includeObject=Object",
        "Accept: application/json;as=Table;v=v1;g=meta.k8s.io",
    ),
    "watch over a WebSocket": (
        f"GET {MAPS}?watch=1",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
    ),
    "list": (f"GET {MAPS}", ""),
    "compressed list": (f"GET {MAPS}", "Accept-Encoding: gzip"),
    "list of protobuf": (f"GET {MAPS}", "Accept: application/vnd.kubernetes.protobuf"),
    "list with a selector": (f"GET {MAPS}?fieldSelector=metadata.name!=none", ""),
}


async def connect_slowly(client, text):
    """Send a request over a connection whose client reads nothing; return its socket."""
    host, port = client.url.removeprefix("http://").split(":")
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.setblocking(False)  # noqa: FBT003 - the standard library's
    loop = asyncio.get_running_loop()
    await loop.sock_connect(reader, (host, int(port)))
    await loop.sock_sendall(reader, text.encode())
    return reader


def head(client, line, fields):
    lines = [
        f"{line} HTTP/1.1",
        "Host: localhost",
        f"Authorization: {client.credentials['Authorization']}",
        fields,
    ]
    return "\r\n".join([*filter(None, lines), "", ""])


async def disconnect(client, sockets):
    """Close the sockets with data that were not read, and wait until the server has noticed it."""
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        each.close()
    await until(
        lambda: (
            not any(
                connection.on_lost or connection.writing_paused for connection in client.server.http._open
            )
        )
    )
    await yield_to_loop(20)


@pytest.mark.parametrize("name", UNREAD)
async def test_responses_that_are_not_read_leave_no_cycles(client, name):
    """A cycle that is old is never collected: the whole response stays in memory."""
    line, fields = UNREAD[name]
    revision = (await client.get(f"{MAPS}/small")).body["metadata"]["resourceVersion"]
    random = SeededRandom(1)
    for number in range(16):
        text = base64.b64encode(random.bytes(700_000)).decode()
        assert (
            await client.post(MAPS, {"metadata": {"name": f"m{number}"}, "data": {"a": text}})
        ).status == 201

    async def read_nothing(count):
        request = head(client, line.format(revision=revision), fields)
        sockets = [await connect_slowly(client, request) for _ in range(count)]
        await until(
            lambda: sum(connection.writing_paused for connection in client.server.http._open) == count
        )
        await disconnect(client, sockets)

    await read_nothing(1)
    async with collecting() as left_over:
        await read_nothing(3)
    assert left_over == []


async def test_bodies_that_are_not_sent_leave_no_cycles(client):
    async def send_a_part(count):
        request = head(client, f"POST {MAPS}", "Content-Type: application/json\r\nContent-Length: 200000")
        sockets = [await connect_slowly(client, request + "{") for _ in range(count)]
        await until(lambda: len(client.server.http._open) > count and client.server.http._answering == count)
        await disconnect(client, sockets)
        await until(lambda: client.server.http._answering == 0)

    await send_a_part(1)
    async with collecting() as left_over:
        await send_a_part(3)
    assert left_over == []


async def test_unused_bodies_that_are_not_sent_leave_no_cycles(client):
    """The connection is closed after a while; it must not stay in the traceback of the error that ended it."""

    async def send_a_part(count):
        request = head(client, "POST /none", "Content-Length: 200000")
        sockets = [await connect_slowly(client, request + "{") for _ in range(count)]
        for each in sockets:
            await asyncio.get_running_loop().sock_recv(each, 1000)
        await until(lambda: len(client.server.http._open) == 1)
        for each in sockets:
            each.close()

    await send_a_part(1)
    async with collecting() as left_over:
        await send_a_part(3)
    assert left_over == []
