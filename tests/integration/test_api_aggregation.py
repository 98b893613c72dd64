"""API aggregation: requests are proxied to other servers, and discovery and OpenAPI are merged.

Answers, headers, conditions and messages are those of kube-apiserver 1.36 before the same server.
"""

import contextlib

import orjson
import pytest
from msgspec.structs import replace

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.aggregation.remotes import RemoteAPIService
from mockube.apiserver.authz.rights import DEFAULT_MODES
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.http.backend_connection import Dialer, KubeletClient
from mockube.apiserver.http.service_proxy import ServiceProxy
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.apiserver.serving_credentials import load_credentials
from mockube.component_base.clock import RealClock
from tests.support.server import apiserver
from tests.support.server.aggregated_server import GROUP, PATH, RESOURCES, THINGS, aggregated_server
from tests.support.server.handler_requests import request_of

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"v1.{GROUP}"
ALL_AT_ONCE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SERVICE = {"metadata": {"name": "agg"}, "spec": {"ports": [{"port": 443}]}}
SLICE = {
    "metadata": {"name": "agg-1", "labels": {"kubernetes.io/service-name": "agg"}},
    "addressType": "IPv4",
    "ports": [{"name": "", "port": 443}],
    "endpoints": [{"addresses": ["10.9.8.7"]}],
}


def service_flag(server):
    return f"--webhook-service=default/agg=127.0.0.1:{server.port}"


@contextlib.asynccontextmanager
async def client_of(server, *flags, **options):
    """A client of an API server that resolves the Service of the other server."""
    async with apiserver.running(service_flag(server), *flags, **options) as client:
        yield client


@pytest.fixture
async def server(tmp_path):
    async with aggregated_server(tmp_path) as server:
        yield server


@pytest.fixture
async def client(server):
    async with client_of(server) as client:
        yield client


async def condition(client, reason):
    """Wait until the APIService's condition has a reason, and return the condition."""
    path = f"{SERVICES}?watch=1&fieldSelector=metadata.name%3D{NAME}"
    async with client.watch(path) as events:
        async for event in events:
            for one in event["object"].get("status", {}).get("conditions", ()):
                if one["reason"] == reason:
                    return one["status"], one["message"]
    raise AssertionError("the watch ended")


async def register(client, server, **spec):
    await client.post("/api/v1/namespaces/default/services", SERVICE)
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    assert (await client.post(slices, SLICE)).status == 201
    answer = await client.post(SERVICES, server.api_service(**spec))
    assert answer.status == 201, answer.body


@pytest.fixture
async def available(client, server):
    """A client of an API server that proxies requests."""
    await register(client, server)
    assert await condition(client, "Passed") == ("True", "all checks passed")
    return client


def header(answer, name):
    return [value for key, value in answer.body["headers"] if key == name]


# --- availability


async def test_unavailable_api_service_has_reason_at_each_step(client, server):
    server.is_broken = True
    await client.post(SERVICES, server.api_service())
    missing = 'service/agg in "default" is not present'
    assert await condition(client, "ServiceNotFound") == ("False", missing)
    assert (await client.get(THINGS)).data == b"service unavailable\n"
    services = "/api/v1/namespaces/default/services"
    await client.post(services, {"metadata": {"name": "agg"}, "spec": {"ports": [{"port": 80}]}})
    problem = 'service/agg in "default" is not listening on port 443'
    assert await condition(client, "ServicePortError") == ("False", problem)
    await client.patch(f"{services}/agg", {"spec": {"ports": [{"port": 443}]}})
    problem = 'cannot find endpointslices for service/agg in "default"'
    assert await condition(client, "EndpointsNotFound") == ("False", problem)
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    await client.post(slices, SLICE | {"ports": [{"name": "other", "port": 443}]})
    problem = 'endpointslices for service/agg in "default" have no addresses with port name ""'
    assert await condition(client, "MissingEndpoints") == ("False", problem)
    await client.patch(f"{slices}/agg-1", {"ports": [{"name": "", "port": 443}]})
    at = f"https://127.0.0.1:{server.port}{PATH}"
    problem = f"failing or missing response from {at}: bad status from {at}: 500"
    assert await condition(client, "FailedDiscoveryCheck") == ("False", problem)
    server.is_broken = False
    assert await condition(client, "Passed") == ("True", "all checks passed")


async def test_untrusted_aggregated_server_is_unavailable(client, server):
    await register(client, server, caBundle=None)
    _, message = await condition(client, "FailedDiscoveryCheck")
    assert message.endswith(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )


async def test_insecure_skip_tls_verify_is_honoured(client, server):
    await register(client, server, caBundle=None, insecureSkipTLSVerify=True)
    assert await condition(client, "Passed") == ("True", "all checks passed")
    assert (await client.get(THINGS)).status == 200


async def test_request_to_stopped_aggregated_server_is_service_unavailable():
    """No server listens at the address, and the first availability check has not ended."""
    remote = RemoteAPIService(
        name=NAME, served=GroupVersion(GROUP, "v1"), service=("default", "agg", 443), is_available=True
    )
    dialer = Dialer(KubeletClient(), RealClock())
    proxy = ServiceProxy(lambda _: ("127.0.0.1", 1), None, dialer)
    answer = await proxy.forward(remote, request_of("GET", THINGS))
    await proxy.close()
    problem = b"error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused\n"
    assert (answer.status, answer.body) == (503, problem)


# --- requests


async def test_proxied_request_has_user_headers(available, server):
    answer = await available.get(
        f"{THINGS}?labelSelector=x%3Dy%20z&a=b", X_Remote_User="evil", X_Remote_Extra_A="b"
    )
    assert (answer.status, answer.headers["X-Mine"]) == (200, "yes")
    assert answer.body["uri"] == f"{THINGS}?a=b&labelSelector=x%3Dy+z"
    assert header(answer, "x-remote-user") == ["admin"]
    assert header(answer, "x-remote-uid") == ["admin-uid"]
    assert header(answer, "x-remote-group") == ["system:masters", "system:authenticated"]
    assert header(answer, "x-forwarded-for") == ["127.0.0.1"]
    assert header(answer, "x-forwarded-host") == [f"127.0.0.1:{server.port}"]
    assert header(answer, "x-forwarded-uri") == [THINGS]
    assert not header(answer, "authorization") + header(answer, "x-remote-extra-a")


async def test_proxied_request_has_impersonated_user_headers(available):
    given = {"Impersonate-User": "bob@x", "Impersonate-Uid": "u", "Impersonate-Extra-Some%2fKey": "v"}
    answer = await available.get(THINGS, **given)
    assert header(answer, "x-remote-user") == ["bob@x"]
    assert header(answer, "x-remote-extra-some%2fkey") == ["v"]
    assert not [name for name, _ in answer.body["headers"] if name.startswith("impersonate")]


async def test_proxied_body_and_status_are_passed_through(available):
    sent = await available.post(THINGS, {"a": 1})
    assert (sent.body["method"], sent.body["body"]) == ("POST", '{"a":1}')
    assert (await available.get(f"{THINGS}/missing")).status == 404


async def test_redirect_of_aggregated_server_is_refused(available):
    answer = await available.get(f"{THINGS}/redirect")
    problem = b"the backend attempted to redirect this request, which is not permitted"
    assert (answer.status, answer.data) == (502, problem)


async def test_switch_of_protocols_that_was_not_requested_is_refused(available):
    answer = await available.get(f"{THINGS}/switch")
    problem = b'backend tried to switch protocol "websocket" when "" was requested\n'
    assert (answer.status, answer.data) == (503, problem)


async def test_proxied_watch_is_streamed(available, server):
    async with available.watch(f"{THINGS}?watch=true") as events:
        first = await anext(events)
        server.more.set()
        assert [first, await anext(events)] == [{"type": "ADDED", "object": {"n": n}} for n in (1, 2)]


async def test_audit_log_has_proxied_requests_without_their_objects(server, tmp_path):
    path, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}")
    async with client_of(server, f"--audit-log-path={path}", f"--audit-policy-file={policy}") as client:
        await register(client, server)
        await condition(client, "Passed")
        await client.post(THINGS, {"a": 1}, Audit_ID="created")
        await client.get(PATH, Audit_ID="listed")
        async with client.watch(f"{THINGS}?watch=true", Audit_ID="watched") as watch:
            server.more.set()
            await anext(watch)
    events = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    complete = {event["auditID"]: event for event in events if event["stage"] == "ResponseComplete"}
    assert [complete[id_]["responseStatus"]["code"] for id_ in ("created", "listed")] == [200, 200]
    assert not any("Object" in field for id_ in ("created", "listed") for field in complete[id_])
    assert [event["stage"] for event in events if event["auditID"] == "watched"][:2] == [
        "RequestReceived",
        "ResponseStarted",
    ]


async def test_aggregated_request_is_authorized_first(server):
    async with apiserver.running(service_flag(server), modes=DEFAULT_MODES) as client:
        await register(client, server)
        await condition(client, "Passed")
        alice = apiserver.Client(client.session, client.url, authorization="Bearer alice")
        refused = await alice.get(THINGS)
    problem = 'User "alice" cannot list resource "things" in API group "agg.test" in the namespace "default"'
    assert (refused.status, refused.body["message"]) == (403, f"things.agg.test is forbidden: {problem}")


async def test_proxy_presents_client_certificate(tmp_path):
    random, now = SeededRandom(), RealClock().now()
    authority = make_authority("front-proxy-ca", now=now, random=random)
    pair = CertificateIssuer(authority, now=now, random=random).issue(Subject(name="front-proxy-client"))
    credentials = replace(load_credentials(Config(), "", now=now, random=random), proxy=pair)
    async with (
        aggregated_server(tmp_path, client_authority=authority.certificate) as server,
        client_of(server, environment={"credentials": credentials}) as client,
    ):
        await register(client, server)
        await condition(client, "Passed")
        assert (await client.get(THINGS)).status == 200


# --- discovery and OpenAPI


async def test_aggregated_group_is_in_discovery(available):
    assert (await available.get(PATH)).body == RESOURCES
    groups = [group["name"] for group in (await available.get("/apis")).body["groups"]]
    assert groups[-1] == GROUP
    versions = [{"groupVersion": f"{GROUP}/v1", "version": "v1"}]
    group = {"name": GROUP, "versions": versions, "preferredVersion": versions[0]}
    assert (await available.get(f"/apis/{GROUP}")).body == {"kind": "APIGroup", "apiVersion": "v1"} | group
    whole = (await available.get("/apis", Accept=ALL_AT_ONCE)).body["items"][-1]
    (version,) = whole["versions"]
    assert (version["freshness"], version["resources"][0]["resource"]) == ("Current", "things")
    assert version["resources"][0]["subresources"][0]["subresource"] == "status"


async def test_group_priority_orders_discovery(client, server):
    await register(client, server, groupPriorityMinimum=17760)
    await condition(client, "Passed")
    groups = [group["name"] for group in (await client.get("/apis")).body["groups"]]
    assert groups[:4] == ["apiregistration.k8s.io", "apps", GROUP, "events.k8s.io"]


async def test_discovery_of_unreachable_server_is_stale(client, server):
    server.is_broken = True
    await register(client, server)
    await condition(client, "FailedDiscoveryCheck")
    whole = (await client.get("/apis", Accept=ALL_AT_ONCE)).body["items"][-1]
    assert whole == {"metadata": {"name": GROUP}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    assert (await client.get(PATH)).status == 503


async def test_openapi_includes_aggregated_documents(available):
    index = (await available.get("/openapi/v3")).body["paths"]
    assert index[PATH[1:]] == {"serverRelativeURL": f"/openapi/v3{PATH}?hash=ABC"}
    assert (await available.get(f"/openapi/v3{PATH}?hash=ABC")).body["openapi"] == "3.0.0"
    v2 = (await available.get("/openapi/v2")).body
    assert f"{PATH}/things" in v2["paths"]
    assert "/apis/other" not in v2["paths"]
    assert v2["definitions"]["test.Thing"] == {"type": "object"}


async def test_deleted_api_service_is_no_longer_served(available):
    await available.delete(f"{SERVICES}/{NAME}")
    await available.server.registry.watch_cache.fresh()
    assert (await available.get(THINGS)).data == b"404 page not found\n"
    groups = [group["name"] for group in (await available.get("/apis")).body["groups"]]
    assert GROUP not in groups


# --- upgrades and long bodies

PROTOCOLS = ("v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.YWRtaW4")
"""The second is the administrator's token."""


async def test_websocket_is_proxied(available):
    url = f"{available.url}{THINGS}/x/exec"
    async with available.session.ws_connect(url, protocols=PROTOCOLS) as socket:
        assert socket.protocol == "v5.channel.k8s.io"
        assert await socket.receive_str() == "admin None"
        await socket.send_bytes(b"abc")
        assert await socket.receive_bytes() == b"cba"


async def test_stopping_aggregated_server_ends_streams(available):
    url = f"{available.url}{THINGS}/x/exec"
    async with available.session.ws_connect(url, protocols=PROTOCOLS) as socket:
        await socket.receive_str()
        available.server.end_streams()
        assert (await socket.receive()).type.name in ("CLOSED", "CLOSE", "ERROR")


async def test_refused_upgrade_is_passed_through(available):
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    answer = await available.get(f"{THINGS}/x/refuse", **headers)
    assert (answer.status, answer.data) == (403, b"no sockets")
    plain = await available.get(f"{THINGS}/x", **headers)
    assert plain.status == 500
    assert "invalid upgrade response: status code 200" in plain.body["message"]


async def test_upgrade_to_stopped_aggregated_server_is_internal_error(tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(aggregated_server(tmp_path))
        async with client_of(server) as client:
            await register(client, server)
            assert await condition(client, "Passed") == ("True", "all checks passed")
            await stack.aclose()
            answer = await client.get(f"{THINGS}/x", Connection="Upgrade", Upgrade="websocket")
    reason = f"dial tcp 127.0.0.1:{server.port}: connect: connection refused"
    message = f"Internal error occurred: error dialing backend: {reason}"
    assert (answer.status, answer.body["message"]) == (500, message)


@pytest.mark.parametrize("size", [1, 3 << 20, 20 << 20])
async def test_large_body_is_proxied(available, size):
    answer = await available.send("PUT", f"{THINGS}/x/count", bytes(size))
    assert (answer.status, answer.body) == (200, {"size": size, "length": str(size)})


async def test_chunked_body_is_streamed_to_aggregated_server(available):
    async def body_chunks():
        for _ in range(20):
            yield bytes(1 << 20)

    answer = await available.send("POST", f"{THINGS}/x/count", body_chunks())
    assert answer.body == {"size": 20 << 20, "length": None}
