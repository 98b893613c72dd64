"""Hooks: which requests and responses each point gets, and that they are added and removed while the server runs."""

import asyncio
import contextlib

import orjson
import pytest

from mockube.apimachinery.lease_renewals import PATH
from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.request.hooks import HookPoint, HookPoints
from mockube.apiserver.request.response import Response
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import until
from tests.support.server.handler_requests import request_of

GROUPS = ("system:authenticated",)
TOKENS = {
    "admin": User(name="admin", groups=("system:masters", *GROUPS)),
    "alice": User(name="alice", groups=GROUPS),
}
MISSING = "/api/v1/namespaces/default/configmaps/none"


@contextlib.asynccontextmanager
async def running_server(*flags):
    environment = ServerEnvironment(trust=Trust(tokens=TOKENS), clock=SteppedClock())
    async with ApiServer(MemoryStore(clock=environment.clock), environment, parse([*flags], {})) as server:
        yield server


@pytest.fixture
async def server():
    async with running_server() as server:
        yield server


async def send(server, user, uri=MISSING, method="GET", body=b"", **headers):
    authorization = {"Authorization": f"Bearer {user}"} if user else {}
    return await server.handler.handle(
        request_of(method, uri, body, Host="localhost", **authorization, **headers)
    )


class Recorder:
    """Middleware that records the user before and after the later filters, and the code."""

    def __init__(self):
        self.seen = []

    async def __call__(self, request, proceed):
        before = request.user.name
        response = await proceed(request)
        self.seen.append((before, request.user.name, response.status))
        return response


@pytest.mark.kills("requests without with_hooks_before_authentication")
@pytest.mark.kills("requests: with_authentication before with_hooks_before_authentication")
async def test_hook_before_authentication_gets_every_request_without_its_user(server):
    server.context.hooks.before_authentication.add(recorder := Recorder())
    for user in ("admin", "alice", "", "unknown"):
        await send(server, user)
    assert recorder.seen == [
        ("", "admin", 404),
        ("", "alice", 403),
        ("", "system:anonymous", 403),
        ("", "", 401),
    ]


@pytest.mark.kills("requests without with_hooks_before_endpoint")
async def test_hook_before_endpoint_gets_impersonated_user_and_what_later_filters_refuse(server):
    server.context.hooks.before_endpoint.add(recorder := Recorder())
    for user in ("admin", "alice", "unknown"):
        await send(server, user)
    await send(server, "admin", Impersonate_User="bob")
    assert recorder.seen == [("admin", "admin", 404), ("alice", "alice", 403), ("bob", "bob", 403)]


@pytest.mark.parametrize("point", ["before_authentication", "before_endpoint"])
async def test_hook_is_removed_while_server_runs(server, point):
    hook = getattr(server.context.hooks, point).add(recorder := Recorder())
    await send(server, "admin")
    hook.remove()
    hook.remove()
    await send(server, "admin")
    assert len(recorder.seen) == 1
    assert server.context.hooks.is_empty


async def test_request_in_progress_ends_as_it_began_when_its_hook_is_removed(server):
    released = asyncio.Event()
    reached = []

    async def waiting(request, proceed):
        reached.append(request)
        await released.wait()
        return await proceed(request)

    hook = server.context.hooks.before_endpoint.add(waiting)
    server.context.hooks.before_endpoint.add(recorder := Recorder())
    sending = asyncio.create_task(send(server, "admin"))
    await until(lambda: reached)
    hook.remove()
    released.set()
    assert (await sending).status == 404
    assert len(recorder.seen) == 1


async def test_hooks_of_a_point_are_called_in_the_order_in_which_they_were_added():
    point, calls = HookPoint(), []

    def hook_named(name):
        async def middleware(request, proceed):
            calls.append(name)
            return await proceed(request)

        return middleware

    async def endpoint(request):
        calls.append(request)
        return Response(200)

    hooks = {name: point.add(hook_named(name)) for name in "abc"}
    await point.middleware("first", endpoint)
    hooks["b"].remove()
    await point.middleware("second", endpoint)
    assert calls == ["a", "b", "c", "first", "a", "c", "second"]


async def test_hook_may_answer_by_itself(server):
    async def refuse(_request, _proceed):
        return Response(418)

    server.context.hooks.before_endpoint.add(refuse)
    assert (await send(server, "admin")).status == 418


async def proceed_twice(request, proceed):
    await proceed(request)
    return await proceed(request)


@pytest.mark.parametrize("point", ["before_authentication", "before_endpoint"])
async def test_second_proceed_is_an_error_and_takes_no_place_in_flight(server, point, caplog):
    getattr(server.context.hooks, point).add(proceed_twice)
    response = await send(server, "alice")
    assert response.status == 500
    assert "a hook must not call proceed twice for one request" in caplog.text
    assert server.handler.in_flight.count("get") == 0


async def test_second_proceed_reaches_no_inner_hook_twice(server):
    server.context.hooks.before_endpoint.add(proceed_twice)
    server.context.hooks.before_endpoint.add(recorder := Recorder())
    await send(server, "admin")
    assert len(recorder.seen) == 1


async def test_error_of_endpoint_is_a_response_for_a_hook(server):
    server.context.hooks.before_endpoint.add(recorder := Recorder())
    response = await send(server, "admin", uri=PATH)
    assert (response.status, recorder.seen) == (404, [("admin", "admin", 404)])


def test_empty_points_have_no_middleware():
    hooks = HookPoints()
    assert hooks.is_empty
    assert hooks.before_authentication.middleware is hooks.before_endpoint.middleware is None


@pytest.mark.parametrize("point", ["before_authentication", "before_endpoint"])
async def test_leases_are_renewed_together_only_while_no_hook_observes_requests(server, point):
    async def renew():
        body = orjson.dumps({"names": [], "renewTime": "2030-01-01T00:00:00.000000Z"})
        return await send(server, "admin", PATH, "POST", body)

    assert (await renew()).status == 200
    hook = getattr(server.context.hooks, point).add(Recorder())
    refused = await renew()
    assert (refused.status, orjson.loads(refused.body)["reason"]) == (404, "NotFound")
    hook.remove()
    assert (await renew()).status == 200
