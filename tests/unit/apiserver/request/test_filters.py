"""What each filter of the chain does for a request, and which one comes first."""

import asyncio
import contextlib

import orjson
import pytest

from mockube.apiserver.app import ApiServer
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.authn.request_headers import RequestHeaders
from mockube.apiserver.config.command_line import parse
from mockube.apiserver.parts.environment import ServerEnvironment
from mockube.apiserver.request.response import PIECE, Response
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.event_loop import until, yield_to_loop
from tests.support.metric_samples import samples
from tests.support.server.handler_requests import FakeClient, request_of

TOKENS = {
    "admin": User(name="admin", groups=("system:masters", "system:authenticated")),
    "alice": User(name="alice", groups=("system:authenticated",)),
}
ADMIN, ALICE = ({"Host": "localhost", "Authorization": f"Bearer {name}"} for name in TOKENS)
NOBODY = {"Host": "localhost"}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"


@contextlib.asynccontextmanager
async def running_server(*flags, mode="AlwaysAllow", request_headers=None):
    clock = SteppedClock()
    environment = ServerEnvironment(trust=Trust(tokens=TOKENS, request_headers=request_headers), clock=clock)
    config = parse([f"--authorization-mode={mode}", *flags], {})
    async with ApiServer(MemoryStore(clock=clock), environment, config) as server:
        await send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        yield server


@pytest.fixture
async def server():
    async with running_server() as server:
        yield server


@pytest.fixture
async def server_with_roles():
    async with running_server(mode="RBAC") as server:
        yield server


async def send(server, method, uri, tree=None, *, client=None, **headers):
    body = b"" if tree is None else orjson.dumps(tree)
    request = request_of(method, uri, body, client=client, **(headers or ADMIN))
    return await server.handler.handle(request)


def message(response):
    return orjson.loads(response.body)["message"]


def counts(server, name):
    """Return the samples of a counter by the codes, or else the verbs, of their labels."""
    collected = samples(server.context.metrics.collect())
    found = {}
    for (sample, labels), value in collected.items():
        if sample == name and value:
            key = dict(labels).get("code") or dict(labels)["verb"]
            found[key] = found.get(key, 0) + value
    return found


# --- audit id, hosts, request info


@pytest.mark.kills("requests without with_audit_id")
@pytest.mark.parametrize("headers", [{}, {"Audit_Id": "mine"}])
async def test_response_has_audit_id_of_client_or_generated_one(server, headers):
    client = FakeClient()
    request = request_of("GET", "/version", client=client, **ADMIN, **headers)
    await server.handler.handle(request)
    assert f"Audit-Id: {headers.get('Audit_Id', request.audit_id)}\r\n" in client.head
    assert request.audit_id


async def test_host_is_checked_before_url(server):
    incomplete = "/api/v1/watch"
    assert (await send(server, "GET", incomplete)).status == 500
    assert (await send(server, "GET", incomplete, Host="evil.example")).status == 421


# --- authentication, audit, authorization


async def test_request_without_user_is_unauthorized_and_stores_nothing(server):
    tree = {"metadata": {"name": "a"}}
    assert (await send(server, "POST", CONFIG_MAPS, tree, **NOBODY)).status == 401
    assert (await send(server, "GET", f"{CONFIG_MAPS}/a")).status == 404


@pytest.mark.kills("requests without with_audit")
async def test_request_is_counted_with_its_code(server):
    before = counts(server, "apiserver_request_total")
    await send(server, "GET", f"{CONFIG_MAPS}/none")
    assert counts(server, "apiserver_request_total") == before | {"404": before.get("404", 0) + 1}


@pytest.mark.kills("requests: with_audit before with_authentication")
async def test_audit_log_names_user_of_request(tmp_path):
    (tmp_path / "policy.yaml").write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
    )
    log = tmp_path / "audit.log"
    flags = f"--audit-policy-file={tmp_path / 'policy.yaml'}", f"--audit-log-path={log}"
    async with running_server(*flags) as server:
        await send(server, "GET", CONFIG_MAPS, **ALICE)
    events = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    assert [event["user"]["username"] for event in events if event["verb"] == "list"][-1:] == ["alice"]


@pytest.mark.kills("requests without with_authorization", "authorization allows every request")
async def test_request_of_user_without_right_is_forbidden_and_stores_nothing(server_with_roles):
    server = server_with_roles
    refused = await send(server, "POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, **ALICE)
    assert (refused.status, message(refused)) == (
        403,
        (
            'configmaps is forbidden: User "alice" cannot create resource "configmaps" in API group "" '
            'in the namespace "default"'
        ),
    )
    assert (await send(server, "GET", f"{CONFIG_MAPS}/a")).status == 404


@pytest.mark.kills("requests: with_authorization before with_impersonation")
async def test_rights_are_those_of_impersonated_user(server_with_roles):
    refused = await send(server_with_roles, "GET", CONFIG_MAPS, **ADMIN, Impersonate_User="alice")
    assert refused.status == 403
    assert message(refused).startswith(
        'configmaps is forbidden: User "alice" cannot list resource "configmaps"'
    )


@pytest.mark.kills("every user may be impersonated")
async def test_user_without_right_to_impersonate_is_forbidden(server_with_roles):
    headers = {**ALICE, "Impersonate_User": "admin", "Impersonate_Group": "system:masters"}
    refused = await send(server_with_roles, "GET", CONFIG_MAPS, **headers)
    assert refused.status == 403
    assert 'User "alice" cannot impersonate' in message(refused)


@pytest.mark.kills("requests: with_authorization before with_deadline")
async def test_timeout_is_parsed_before_authorization(server_with_roles):
    refused = await send(server_with_roles, "GET", f"{CONFIG_MAPS}?timeout=x", **ALICE)
    assert (refused.status, message(refused)) == (
        400,
        'invalid timeout specified in the request URL - time: invalid duration "x"',
    )


@pytest.mark.kills("headers of front proxies are passed on")
async def test_headers_in_which_front_proxies_send_users_are_not_passed_on():
    names = RequestHeaders(
        username=["X-Remote-User"], groups=["X-Remote-Group"], extra_prefixes=["X-Remote-Extra-"]
    )
    sent = {"X_Remote_User": "root", "x_remote_group": "system:masters", "X_Remote_Extra_Scope": "all"}
    received = []

    async def middleware(request, proceed):
        received.append((request.user.name, [*request.headers]))
        return await proceed(request)

    async with running_server(request_headers=names) as server:
        server.handler.config.hooks.before_endpoint.add(middleware)
        await send(server, "GET", CONFIG_MAPS, **ALICE, **sent, Accept="application/json")
    assert received == [("alice", ["Host", "Authorization", "Accept"])]


# --- hooks


@pytest.mark.kills("requests: with_hooks_before_authentication before with_request_info")
async def test_hook_before_authentication_gets_attributes_of_request(server):
    verbs = []

    async def middleware(request, proceed):
        verbs.append((request.info.verb, request.info.resource))
        return await proceed(request)

    server.handler.config.hooks.before_authentication.add(middleware)
    await send(server, "GET", CONFIG_MAPS)
    assert verbs == [("list", "configmaps")]


@pytest.mark.kills("requests: with_hooks_before_endpoint before with_impersonation")
async def test_hook_before_endpoint_gets_impersonated_user(server):
    users = []

    async def middleware(request, proceed):
        users.append(request.user.name)
        return await proceed(request)

    server.handler.config.hooks.before_endpoint.add(middleware)
    await send(server, "GET", CONFIG_MAPS, **ADMIN, Impersonate_User="bob")
    assert users == ["bob"]


@pytest.mark.kills("requests: with_flow_headers before with_hooks_before_endpoint")
async def test_response_of_hook_itself_has_no_flow(server):
    async def middleware(_request, _proceed):
        return Response(503)

    await create_flow(server)
    server.handler.config.hooks.before_endpoint.add(middleware)
    client = FakeClient()
    assert (await send(server, "GET", CONFIG_MAPS, client=client)).status == 503
    assert "X-Kubernetes-Pf-Flowschema-Uid" not in client.head


# --- flows, limits, deadlines


async def create_flow(server):
    level = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    tree = {"metadata": {"name": "level"}, "spec": level}
    assert (await send(server, "POST", f"{FLOWS}/prioritylevelconfigurations", tree)).status == 201
    subjects = [{"kind": "Group", "group": {"name": "system:authenticated"}}]
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    spec = {
        "priorityLevelConfiguration": {"name": "level"},
        "matchingPrecedence": 2,
        "rules": [{"subjects": subjects, "resourceRules": [rule]}],
    }
    created = await send(server, "POST", f"{FLOWS}/flowschemas", {"metadata": {"name": "flow"}, "spec": spec})
    assert created.status == 201, created.body
    await server.registry.watch_cache.fresh()
    return orjson.loads(created.body)["metadata"]["uid"]


@pytest.mark.kills("requests without with_flow_headers")
async def test_response_has_uid_of_its_flow_schema(server):
    uid = await create_flow(server)
    client = FakeClient()
    await send(server, "GET", CONFIG_MAPS, client=client)
    assert f"X-Kubernetes-Pf-Flowschema-Uid: {uid}\r\n" in client.head


@pytest.mark.kills("requests: with_max_in_flight before with_flow_headers")
async def test_request_that_is_refused_by_limit_has_flow():
    async with running_server("--max-requests-inflight=1") as server:
        uid = await create_flow(server)
        assert server.handler.in_flight.enter("get", TOKENS["alice"])
        client = FakeClient()
        assert (await send(server, "GET", CONFIG_MAPS, client=client, **ALICE)).status == 429
    assert f"X-Kubernetes-Pf-Flowschema-Uid: {uid}\r\n" in client.head


class SlowBody(FakeClient):
    """A client that announces a body, and never sends it."""

    def __init__(self):
        super().__init__()
        self.has_body, self.is_read = True, False

    async def read(self, _limit):
        self.is_read = True
        await asyncio.get_running_loop().create_future()


@pytest.mark.kills("requests without with_deadline", "requests: with_deadline before with_max_in_flight")
@pytest.mark.kills("requests have no deadline")
async def test_request_that_takes_too_long_is_ended_and_leaves_its_place(server):
    client = SlowBody()
    handling = asyncio.create_task(send(server, "POST", CONFIG_MAPS, client=client))
    await until(lambda: client.is_read)
    assert server.handler.in_flight.count("create") == 1
    server.registry.clock.advance(61.0)
    await yield_to_loop(10)
    assert handling.done(), "it has no deadline"
    refused = await handling
    assert (refused.status, message(refused)) == (
        504,
        "Timeout: request did not complete within the allotted timeout",
    )
    assert server.handler.in_flight.count("create") == 0


@pytest.mark.kills("requests: with_written_response before with_audit")
async def test_response_that_client_does_not_read_is_counted_as_aborted(server):
    await send(server, "POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "y" * 2 * PIECE}})
    client = FakeClient(CONFIG_MAPS, slow=asyncio.get_running_loop().create_future())
    handling = asyncio.create_task(send(server, "GET", CONFIG_MAPS, client=client))
    await yield_to_loop(20)
    server.registry.clock.advance(61.0)
    await handling
    assert counts(server, "apiserver_request_aborts_total") == {"LIST": 1}


# --- the page


@pytest.mark.kills("requests without with_ui")
async def test_page_needs_no_user(server):
    assert (await send(server, "GET", "/mockube/ui/", **NOBODY)).status == 200


@pytest.mark.kills("requests: with_ui before with_allowed_hosts")
async def test_page_is_not_served_under_name_of_another_site(server):
    assert (await send(server, "GET", "/mockube/ui/", Host="evil.example")).status == 421


@pytest.mark.kills("requests: with_request_info before with_ui")
async def test_past_has_no_page(server):
    assert (await send(server, "GET", "/mockube/at/now/mockube/ui/", **NOBODY)).status == 401
