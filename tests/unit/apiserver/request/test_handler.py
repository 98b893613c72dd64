"""A request through the whole filter chain, without a transport."""

import asyncio
import contextlib
import gzip

import orjson
import pytest

from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.request.handler import FILTERS, build_handler_chain
from mockube.apiserver.request.response import PIECE, Response, compress
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.handler_requests import FakeClient, request_of

ADMIN = {"Host": "localhost", "Authorization": "Bearer admin"}
ALICE = {"Host": "localhost", "Authorization": "Bearer alice"}
TOKENS = {
    "admin": User(name="admin", groups=("system:masters", "system:authenticated")),
    "alice": User(name="alice", groups=("system:authenticated",)),
}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.asynccontextmanager
async def running_server(*flags):
    clock = SteppedClock()
    environment = ServerEnvironment(trust=Trust(tokens=TOKENS), clock=clock)
    config = parse(["--authorization-mode=AlwaysAllow", *flags], {})
    async with ApiServer(MemoryStore(clock=clock), environment, config) as server:
        created = await server.handler.handle(
            request_of("POST", "/api/v1/namespaces", b'{"metadata": {"name": "default"}}', **ADMIN)
        )
        assert created.status == 201
        yield server


@pytest.fixture
async def server():
    async with running_server() as server:
        yield server


async def create(server, name, **fields):
    body = orjson.dumps({"metadata": {"name": name}, **fields})
    response = await server.handler.handle(request_of("POST", CONFIG_MAPS, body, **ADMIN))
    assert response.status == 201


@pytest.fixture
def stages(server, monkeypatch):
    """What requests do, in order."""
    seen, read, txn = [], FakeClient.read, server.registry.kv.txn

    async def recorded_read(client, maximum):
        seen.append("read")
        return await read(client, maximum)

    async def recorded_txn(transaction):
        seen.append("write")
        return await txn(transaction)

    monkeypatch.setattr(FakeClient, "read", recorded_read)
    monkeypatch.setattr(server.registry.kv, "txn", recorded_txn)
    return seen


async def test_requests_that_arrive_together_pass_each_stage_together(server, stages):
    async def create_and_note(name):
        await create(server, name)
        stages.append("answer")

    await asyncio.gather(*map(create_and_note, "abcde"))
    assert stages == ["read"] * 5 + ["write"] * 5 + ["answer"] * 5


async def test_concurrent_patches_of_an_object_are_written_once(server, stages):
    """There is no other request between the read of an object and its write, so that no write fails."""
    await create(server, "a")

    async def patch(number):
        body, kind = b'{"data": {"k%d": "v"}}' % number, {"Content-Type": "application/merge-patch+json"}
        request = request_of("PATCH", f"{CONFIG_MAPS}/a", body, **ADMIN, **kind)
        assert (await server.handler.handle(request)).status == 200

    stages.clear()
    await asyncio.gather(*map(patch, range(20)))
    assert stages.count("write") == 20


def test_filters_have_upstreams_order():
    assert [filter_.__name__ for filter_ in FILTERS] == [
        "with_audit_id", "with_panic_recovery", "with_allowed_hosts", "with_ui", "with_request_info",
        "with_hooks_before_authentication", "with_authentication", "with_audit", "with_written_response",
        "with_impersonation", "with_hooks_before_endpoint", "with_flow_headers", "with_max_in_flight", "with_deadline",
        "with_authorization",
    ]  # fmt: skip


async def test_filters_are_applied_once_from_innermost(server):
    built = []

    def filter_named(name):
        def filter_(handle, _config):
            built.append(name)
            return handle

        return filter_

    async def endpoint(_request):
        return Response(200)

    handle = build_handler_chain(endpoint, None, [filter_named("outer"), filter_named("inner")])
    assert handle is endpoint
    assert built == ["inner", "outer"]


@pytest.mark.kills("requests without with_panic_recovery", "requests without with_allowed_hosts")
@pytest.mark.kills("requests: with_allowed_hosts before with_panic_recovery", "every host is allowed")
@pytest.mark.kills("requests without with_authentication")
@pytest.mark.parametrize(
    ("uri", "headers", "expected"),
    [
        pytest.param("/api/v1/namespaces/default", ADMIN, 200, id="a resource"),
        pytest.param("/version", {"Host": "localhost"}, 200, id="a page"),
        pytest.param("/nope", ADMIN, 404, id="no page"),
        pytest.param("/api/v1/nopes", ADMIN, 404, id="no resource"),
        pytest.param("/version", {}, 400, id="no host"),
        pytest.param("/version", {"Host": "evil.example"}, 421, id="another host"),
        pytest.param(CONFIG_MAPS, {"Host": "localhost"}, 401, id="no user"),
        pytest.param(CONFIG_MAPS, {**ALICE, "Impersonate_Group": "g"}, 400, id="an impersonation without a user"),
        pytest.param(f"{CONFIG_MAPS}?timeout=x", ADMIN, 400, id="a wrong timeout"),
        pytest.param(CONFIG_MAPS, {**ADMIN, "Accept": "image/png"}, 406, id="another form"),
    ],
)  # fmt: skip
async def test_first_filter_with_response_ends_chain(server, uri, headers, expected):
    response = await server.handler.handle(request_of("GET", uri, **headers))
    assert response.status == expected


@pytest.mark.parametrize(
    ("method", "path", "body", "event"),
    [
        ("POST", CONFIG_MAPS, b'{"metadata": {"name": "b"}}', "ADDED"),
        ("PUT", f"{CONFIG_MAPS}/a", b'{"metadata": {"name": "a"}, "data": {"x": "2"}}', "MODIFIED"),
        ("PATCH", f"{CONFIG_MAPS}/a", b'{"data": {"x": "3"}}', "MODIFIED"),
        ("DELETE", f"{CONFIG_MAPS}/a", b"", "DELETED"),
        ("DELETE", CONFIG_MAPS, b"", "DELETED"),
    ],
)
async def test_watches_receive_write_before_its_response(server, method, path, body, event):
    await create(server, "a")
    request = request_of("GET", f"{CONFIG_MAPS}?watch=1", **ADMIN)
    watching = asyncio.create_task(server.handler.handle(request))
    await until(lambda: request.client.written)
    request.client.written.clear()
    kind = {"Content_Type": "application/merge-patch+json"} if method == "PATCH" else {}
    answer = await server.handler.handle(request_of(method, path, body, **ADMIN, **kind))
    assert answer.status in {200, 201}
    assert [orjson.loads(frame)["type"] for [frame] in request.client.written] == [event]
    server.end_streams()
    await watching


@pytest.mark.kills("requests without with_request_info")
async def test_created_object_is_returned(server):
    await create(server, "a", data={"x": "1"})
    response = await server.handler.handle(request_of("GET", f"{CONFIG_MAPS}/a", **ADMIN))
    assert orjson.loads(response.body)["data"] == {"x": "1"}
    assert (response.content_type, response.is_large) == ("application/json", False)


async def test_connection_is_authenticated_by_real_users_request_only(server):
    for headers, expected in (({"Host": "localhost"}, False), (ADMIN, True)):
        client = FakeClient()
        await server.handler.handle(request_of("GET", "/version", client=client, **headers))
        assert client.is_authenticated == expected


@pytest.mark.kills("requests without with_impersonation")
async def test_impersonated_user_applies_to_later_filters(server):
    request = request_of("GET", CONFIG_MAPS, **ADMIN, impersonate_user="bob", impersonate_group="g")
    assert (await server.handler.handle(request)).status == 200
    assert (request.authenticated.name, request.user.name) == ("admin", "bob")
    assert request.user.groups == ("g", "system:authenticated")


@pytest.mark.kills("requests without with_written_response")
async def test_large_response_counts_as_in_flight_while_written(server):
    await create(server, "a", data={"x": "y" * 2 * PIECE})
    free = asyncio.get_running_loop().create_future()
    client = FakeClient(CONFIG_MAPS, slow=free)
    handling = asyncio.create_task(
        server.handler.handle(request_of("GET", CONFIG_MAPS, client=client, **ADMIN))
    )
    await until(lambda: server.handler.in_flight.count("get") == 1)
    await yield_to_loop(5)
    assert not handling.done()
    free.set_result(None)
    response = await handling
    assert (client.written, server.handler.in_flight.count("get")) == ([response], 0)


async def test_slow_reader_of_large_response_is_disconnected(server):
    await create(server, "a", data={"x": "y" * 2 * PIECE})
    client = FakeClient(CONFIG_MAPS, slow=asyncio.get_running_loop().create_future())
    request = request_of("GET", CONFIG_MAPS, client=client, **ADMIN)
    handling = asyncio.create_task(server.handler.handle(request))
    await yield_to_loop(20)
    server.registry.clock.advance(60.0)
    assert (await handling).status == 200
    assert (client.is_aborted, request.is_aborted, server.handler.in_flight.count("get")) == (True, True, 0)


async def test_large_response_is_compressed_if_accepted(server):
    await create(server, "a", data={"x": "y" * PIECE})
    for encodings, expected in (("gzip", True), ("identity", False)):
        response = await server.handler.handle(
            request_of("GET", CONFIG_MAPS, **ADMIN, Accept_Encoding=encodings)
        )
        assert response.compressed == expected
    pieces = [piece async for piece in compress(response.parts)]
    assert gzip.decompress(b"".join(pieces)) == response.body


@pytest.mark.kills("requests without with_max_in_flight", "any number of requests is in flight")
async def test_request_beyond_in_flight_limit_is_refused():
    async with running_server("--max-requests-inflight=1") as server:
        assert server.handler.in_flight.enter("get", TOKENS["alice"])
        refused = await server.handler.handle(request_of("GET", CONFIG_MAPS, **ALICE))
        assert (refused.status, refused.retry_after) == (429, 1)
        assert (await server.handler.handle(request_of("GET", CONFIG_MAPS, **ADMIN))).status == 200
        assert server.handler.in_flight.count("get") == 1


async def test_watch_streams_until_client_disconnects(server):
    client = FakeClient(f"{CONFIG_MAPS}?watch=1")
    watching = asyncio.create_task(
        server.handler.handle(request_of("GET", client.uri, client=client, **ADMIN))
    )
    await until(lambda: client.lost is not None)
    await create(server, "a")
    await until(lambda: client.written)
    client.lost()
    assert (await watching).status == 200
    event = orjson.loads(b"".join(client.written[0]))
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert (client.has_ended, client.lost, server.handler.watch_handler._streams) == (True, None, set())


async def test_websocket_watch_selects_subprotocol_besides_token(server):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    request = request_of("GET", f"{CONFIG_MAPS}?watch=1", **ADMIN, **upgrade, Sec_WebSocket_Protocol="a, b")
    assert (await server.handler.handle(request)).status == 400
    assert not server.handler.watch_handler._streams


async def test_unexpected_error_is_logged_and_returned_as_status(server, caplog):
    async def failing(_request):
        raise ZeroDivisionError

    handle = build_handler_chain(failing, server.handler.config)
    response = await handle(request_of("GET", "/version", **ADMIN))
    assert (response.status, orjson.loads(response.body)["reason"]) == (500, "InternalError")
    assert [record.message for record in caplog.records] == ["unexpected error"]
