"""Requests without credentials, path by path, and access of ordinary users to mockube's own paths."""

import orjson
import pytest

from mockube.apiserver.request.snapshot_endpoint import PATH
from tests.support.server import apiserver
from tests.support.server.apiserver import Client

OPEN = {"/healthz", "/livez", "/readyz", "/version"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.fixture
async def client():
    async with apiserver.running_with_roles() as client:
        yield client


def client_with(client, authorization):
    """Another client of the same server."""
    return Client(client.session, client.url, authorization=authorization)


async def test_anonymous_user_reads_health_and_version_only(client):
    nobody = client_with(client, "")
    paths = [*client.server.handler.pages, PATH, "/mockube", "/nope", "/api/v1/namespaces", "/apis/apps/v1/deployments"]  # fmt: skip
    assert set(paths) > OPEN
    answers = {
        (method, path): (await nobody.send(method, path)).status for path in paths for method in METHODS
    }
    opened = {request for request, code in answers.items() if code != 403}
    assert opened == {("GET", path) for path in OPEN}


async def test_single_health_check_needs_authorization(client):
    for authorization, code in (("", 403), ("Bearer alice", 403), ("Bearer admin", 200)):
        assert (await client_with(client, authorization).get("/livez/ping")).status == code


MASTERS = {"Impersonate_User": "bob", "Impersonate_Group": "system:masters"}


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="without impersonation"),
        pytest.param(MASTERS, id="impersonated system:masters"),
        pytest.param(
            {"impersonate_user": "bob", "IMPERSONATE_GROUP": "system:masters"},
            id="header names in upper case",
        ),
        pytest.param(MASTERS | {"Impersonate_Uid": "1"}, id="impersonated uid"),
        pytest.param({"Impersonate_User": "kubernetes-admin"}, id="impersonated administrator"),
        pytest.param({"Impersonate_User": "system:apiserver"}, id="impersonated server"),
        pytest.param(
            {"X_Remote_User": "admin", "X_Remote_Group": "system:masters"}, id="front proxy headers"
        ),
    ],
)
@pytest.mark.parametrize("method", METHODS)
async def test_mockube_endpoints_need_system_masters(client, headers, method):
    answer = await client_with(client, "Bearer alice").send(method, PATH, **headers)
    assert answer.status == 403
    assert b"H4sI" not in answer.data
    assert not answer.data.startswith(b"\x1f\x8b")


async def test_forbidden_message_names_user(client):
    alice = client_with(client, "Bearer alice")
    assert (await alice.get(PATH)).body["message"] == f'forbidden: User "alice" cannot get path "{PATH}"'
    for headers in ({"Impersonate_User": "bob"}, MASTERS):
        refused = f'forbidden: User "alice" cannot impersonate-on:user-info:get path "{PATH}"'
        assert (await alice.get(PATH, **headers)).body["message"] == refused


async def test_impersonating_master_is_no_master(client):
    assert (await client.get(PATH, **MASTERS)).status == 200
    assert (await client.get(PATH, Impersonate_User="bob")).status == 403


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        pytest.param({"nonResourceAttributes": {"verb": "get", "path": PATH}}, False, id="snapshot path"),
        pytest.param(
            {"resourceAttributes": {"verb": "impersonate", "resource": "groups", "name": "system:masters"}},
            False,
            id="impersonation of system:masters",
        ),
        pytest.param({"nonResourceAttributes": {"verb": "get", "path": "/api"}}, True, id="discovery"),
        pytest.param(
            {"resourceAttributes": {"verb": "impersonate", "resource": "groups", "name": "dev"}},
            False,
            id="another group",
        ),
    ],
)
async def test_access_review_agrees_with_request(client, attributes, allowed):
    body = {"spec": attributes}
    alice = client_with(client, "Bearer alice")
    created = await alice.post(f"{REVIEWS}/selfsubjectaccessreviews", body)
    assert created.body["status"]["allowed"] is allowed
    created = await client.post(f"{REVIEWS}/selfsubjectaccessreviews", body)
    assert created.body["status"]["allowed"] is True


async def test_audit_log_has_refused_and_snapshot_requests(tmp_path):
    path = tmp_path / "audit.log"
    async with apiserver.running_with_roles(f"--audit-log-path={path}") as client:
        data = (await client.get(PATH)).data
        await client.put(f"{PATH}?replace=true", data)
        await client_with(client, "Bearer alice").get(PATH, **MASTERS)
        await client_with(client, "Bearer alice").get("/api", Impersonate_User="bob")
        await client_with(client, "Bearer alice").get(PATH)
        await client_with(client, "Bearer nobody").get(PATH)
    events = [orjson.loads(line) for line in path.read_bytes().splitlines()][-6:]
    assert [
        (
            event["user"].get("username"),
            event.get("impersonatedUser", {}).get("username"),
            event["verb"],
            event["responseStatus"]["code"],
            event.get("annotations", {}).get("authorization.k8s.io/decision"),
        )
        for event in events
    ] == [
        ("admin", None, "get", 200, "allow"),
        ("admin", None, "put", 200, "allow"),
        ("alice", None, "get", 403, None),
        ("alice", None, "get", 403, None),
        ("alice", None, "get", 403, "forbid"),
        (None, None, "get", 401, None),
    ]


async def test_mockube_endpoints_count_as_in_flight():
    async with apiserver.running_with_roles("--max-requests-inflight=1") as client:
        in_flight = client.server.handler.in_flight
        assert in_flight.enter("get", apiserver.ALICE)
        assert (await client_with(client, "Bearer alice").get(PATH)).status == 429
        assert (await client.get(PATH)).status == 200
        in_flight.leave("get")
        assert (await client_with(client, "Bearer alice").get(PATH)).status == 403
