"""Metrics and the audit log of a server."""

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mockube.apiserver.authn.serviceaccount import jwt
from mockube.apiserver.authn.serviceaccount.keys import load
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.server import apiserver
from tests.support.server.service_accounts import EC, pem
from tests.support.stores.wrapped import StoreWithLostEvents

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def metric(client, name, **labels):
    text = (await client.get("/metrics")).data.decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    names = (name, f"{name}_total")  # the parser adds the suffix to counters that upstream names without it
    return sum(s.value for s in samples if s.name in names and labels.items() <= s.labels.items())


async def test_requests_are_counted_by_verb_resource_and_code(client):
    for name in ("a", "a"):
        await client.post(MAPS, {"metadata": {"name": name}})
    about = {"verb": "POST", "resource": "configmaps", "version": "v1", "scope": "resource"}
    assert await metric(client, "apiserver_request_total", code="201", **about) == 1
    assert await metric(client, "apiserver_request_total", code="409", **about) == 1
    assert await metric(client, "apiserver_request_duration_seconds_count", **about) == 2
    assert await metric(client, "apiserver_request_duration_seconds_bucket", le="+Inf", **about) == 2
    assert await metric(client, "apiserver_storage_objects", resource="configmaps") == 1


async def test_deletion_of_a_collection_is_counted_as_delete_of_its_scope(client):
    await client.delete(MAPS)
    about = {"verb": "DELETE", "resource": "configmaps", "scope": "namespace"}
    assert await metric(client, "apiserver_request_total", code="200", **about) == 1
    assert await metric(client, "apiserver_request_total", verb="DELETECOLLECTION") == 0
    body = {"resource": "configmaps", "verb": "delete_collection"}
    assert await metric(client, "apiserver_request_body_size_bytes_count", **body) == 1


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "accept", "labels"),
    [
        ("/healthz", "*/*", {"subresource": "/healthz", "component": ""}),
        ("/readyz?verbose", "*/*", {"subresource": "/readyz", "component": ""}),
        ("/openapi/v3", "*/*", {"subresource": "openapi/v3", "component": ""}),
        ("/openapi/v3/api/v1", "*/*", {"subresource": "openapi/v3/", "component": ""}),
        ("/openapi/v3/none", "*/*", {"subresource": "openapi/v3/", "component": ""}),
        ("/api", AGGREGATED, {"subresource": "api", "component": "apiserver"}),
        ("/apis", AGGREGATED, {"subresource": "apis", "component": "apiserver"}),
        ("/statusz", "text/plain", {"resource": "statusz", "component": "apiserver"}),
    ],
)
async def test_pages_that_upstream_counts_are_counted(client, path, accept, labels):
    await client.get(path, Accept=accept)
    for name in ("request_total", "request_duration_seconds_count", "request_sli_duration_seconds_count"):
        assert await metric(client, f"apiserver_{name}", verb="GET", group="", scope="", **labels) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/metrics"),
        ("GET", "/version"),
        ("GET", "/livez/ping"),
        ("GET", "/apis"),
        ("GET", "/api/v1"),
        ("GET", "/openapi/v2"),
        ("GET", "/no/such/path"),
        ("GET", "/api/v1/foos"),
        ("GET", "/apis/example.com/v1/foos?watch=1"),
        ("GET", "/api/v1/namespaces/default/pods/a/foo"),
        ("OPTIONS", "/api/v1/pods"),
        ("HEAD", "/api/v1/pods"),
        ("FOO", "/api/v1/pods"),
    ],
)
async def test_requests_that_no_handler_of_upstream_counts_are_not_counted(client, method, path):
    async def count():
        text = (await client.get("/metrics")).data.decode()
        return [
            line
            for line in text.splitlines()
            if line.startswith(("apiserver_request_total", "apiserver_longrunning"))
        ]

    before = await count()
    await client.send(method, path)
    assert await count() == before


async def test_watches_have_sizes_but_no_objective(client):
    await client.post(MAPS, {"metadata": {"name": "a"}})
    length = len((await client.get(f"{MAPS}?watch=1&timeoutSeconds=1")).data)
    about = {"verb": "WATCH", "resource": "configmaps", "scope": "namespace"}
    assert await metric(client, "apiserver_response_sizes_sum", **about) == length
    assert await metric(client, "apiserver_request_duration_seconds_count", **about) == 1
    assert await metric(client, "apiserver_request_sli_duration_seconds_count", **about) == 0
    await client.get("/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1")
    assert await metric(client, "apiserver_request_total", **about) == 2
    assert await metric(client, "apiserver_response_sizes_count", **about) == 1


async def test_body_of_an_unknown_media_type_has_no_size(client):
    await client.post(MAPS, {"metadata": {"name": "a"}})
    await client.send("POST", MAPS, b"{}", Content_Type="text/plain")
    about = {"verb": "create", "resource": "configmaps"}
    assert await metric(client, "apiserver_request_body_size_bytes_count", **about) == 1


async def test_stored_objects_are_counted(client):
    await client.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "a"}})
    resource, group = "leases", "coordination.k8s.io"
    assert await metric(client, "apiserver_storage_objects", resource=f"{resource}.{group}") == 1
    assert await metric(client, "apiserver_resource_objects", group=group, resource=resource) == 1
    assert await metric(client, "apiserver_storage_size_bytes", storage_cluster_id="etcd-0") > 0


async def test_response_sizes_are_observed(client):
    length = len((await client.get(MAPS)).data)
    await client.post(MAPS, {"metadata": {"name": "a"}})
    about = {"verb": "LIST", "resource": "configmaps", "scope": "namespace", "version": "v1"}
    assert await metric(client, "apiserver_response_sizes_sum", **about) == length
    assert await metric(client, "apiserver_response_sizes_bucket", le="1000", **about) == 1
    assert await metric(client, "apiserver_response_sizes_count", verb="POST") == 0


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("/api/v1/endpoints", {"group": "", "version": "v1", "resource": "endpoints", "removed_release": ""}),
        (
            "/apis/networking.k8s.io/v1beta1/servicecidrs/a/status",
            {
                "group": "networking.k8s.io",
                "version": "v1beta1",
                "resource": "servicecidrs",
                "subresource": "status",
                "removed_release": "1.37",
            },
        ),
    ],
)
async def test_requests_of_deprecated_apis_are_counted(path, labels):
    flags = "--kubernetes-version=1.36", "--runtime-config=networking.k8s.io/v1beta1=true"
    async with apiserver.running(*flags) as client:
        await client.get(MAPS)
        assert await metric(client, "apiserver_requested_deprecated_apis") == 0
        await client.get(path)
        assert await metric(client, "apiserver_requested_deprecated_apis", **labels) == 1


async def test_client_texts_do_not_become_metric_labels(client):
    for number in range(20):
        await client.get(f"/apis/group-{number}/v1/things")
        await client.send(f"VERB{number}", "/api/v1/nodes")
    text = (await client.get("/metrics")).data.decode()
    assert "group-" not in text
    assert "VERB" not in text


async def test_open_watch_is_counted(client):
    async with client.watch(f"{MAPS}?watch=1") as events:
        await client.post(MAPS, {"metadata": {"name": "a"}})
        await anext(events)
        assert await metric(client, "apiserver_longrunning_requests", resource="configmaps") == 1
    assert await metric(client, "apiserver_current_inflight_requests", request_kind="mutating") == 0


async def test_cache_inconsistency_is_counted_and_watches_expire():
    store = StoreWithLostEvents(MemoryStore(clock=RealClock()))
    async with apiserver.running(kv=store) as client, client.watch(f"{MAPS}?watch=1") as events:
        store.lost = {b"/registry/configmaps/default/lost"}
        await client.post(MAPS, {"metadata": {"name": "lost"}})
        assert (await client.get(MAPS)).body["items"] == []
        await client.server.storage.consistency_check.turn()
        assert (await anext(events))["object"]["code"] == 410
        assert [item["metadata"]["name"] for item in (await client.get(MAPS)).body["items"]] == ["lost"]
        checks = "apiserver_storage_consistency_checks_total"
        assert await metric(client, checks, group="", resource="configmaps", status="failure") == 1
        assert await metric(client, checks, group="apps", resource="deployments", status="success") == 1


async def test_audit_log_records_requests(tmp_path):
    path = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={path}") as client:
        await client.post(MAPS, {"metadata": {"name": "a"}})
        await client.get(f"{MAPS}/none")
    events = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    summaries = [
        (e["user"]["username"], e["verb"], e["objectRef"]["resource"], e["responseStatus"]["code"])
        for e in events
    ]
    assert summaries[-2:] == [("admin", "create", "configmaps", 201), ("admin", "get", "configmaps", 404)]
    assert events[-1]["responseStatus"]["message"] == 'configmaps "none" not found'


async def test_authentication_and_authorization_are_counted():
    async with apiserver.running_with_roles() as client:
        before = await metric(client, "authentication_attempts", result="success")
        await client.get("/api/v1/nodes", Impersonate_User="alice@example.com")
        await client.get("/version", Authorization="Bearer nobody")
        review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        spec = {"user": "x", "groups": ["system:authenticated"]}
        asked = {"nonResourceAttributes": {"path": "/version", "verb": "get"}}
        assert (await client.post(review, {"spec": spec | asked})).body["status"]["allowed"]
        assert await metric(client, "authentication_attempts", result="success") == before + 3
        assert await metric(client, "authentication_attempts", result="error") == 1
        assert await metric(client, "authentication_duration_seconds_count", result="error") == 1
        assert await metric(client, "authenticated_user_requests", username="admin") >= 1
        assert await metric(client, "authorization_attempts_total", result="no-opinion") == 1
        assert (
            await metric(client, "authorization_duration_seconds_bucket", result="no-opinion", le="+Inf") == 1
        )
        decided = "apiserver_authorization_decisions_total"
        assert await metric(client, decided, type="RBAC", decision="allowed") >= 1
        assert await metric(client, decided, decision="denied") == 0


async def test_token_cache_hits_and_misses_are_counted(client):
    for _ in range(3):
        await client.get("/api/v1/nodes")
    await client.get("/api/v1/nodes", Authorization="Bearer nobody")
    count = "authentication_token_cache_request_total"
    assert await metric(client, count, status="miss") == 2
    assert await metric(client, count, status="hit") >= 3
    assert await metric(client, "authentication_token_cache_fetch_total", status="ok") == 2
    assert (
        await metric(client, "authentication_token_cache_request_duration_seconds_count", status="miss") == 2
    )


async def test_audit_lines_and_levels_are_counted(tmp_path):
    path, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [/metrics]}, {level: Metadata}]\n"
    )
    async with apiserver.running(f"--audit-log-path={path}", f"--audit-policy-file={policy}") as client:
        await client.get("/api/v1/nodes")
        lines = len(path.read_text().splitlines())
        assert await metric(client, "apiserver_audit_event_total") == lines == 4
        assert await metric(client, "apiserver_audit_level_total", level="Metadata") == 2
        assert await metric(client, "apiserver_audit_level_total", level="None") >= 1
        assert await metric(client, "apiserver_audit_requests_rejected_total") == 0


@pytest.mark.parametrize(
    ("level", "omits"),
    [("Metadata", False), ("Request", False), ("RequestResponse", False), ("RequestResponse", True)],
)
async def test_audit_policy_selects_request_objects(tmp_path, level, omits):
    path, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    rules = [{"level": level, "omitManagedFields": omits}]
    policy.write_bytes(orjson.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    async with apiserver.running(f"--audit-log-path={path}", f"--audit-policy-file={policy}") as client:
        await client.post(MAPS, {"metadata": {"name": "a"}, "data": {"b": "c"}})
        await client.get(f"{MAPS}/a?pretty=true")
        await client.get(MAPS)
        async with client.watch(f"{MAPS}?watch=1&timeoutSeconds=1"):
            pass
        await client.delete(f"{MAPS}/a")
    events = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    found = {
        event["verb"]: event
        for event in events
        if event["stage"] == "ResponseComplete" and event["objectRef"]["resource"] == "configmaps"
    }
    assert {verb for verb, event in found.items() if "requestObject" in event} == (
        set() if level == "Metadata" else {"create"}
    )
    with_response = {verb for verb, event in found.items() if "responseObject" in event}
    assert with_response == ({"create", "get", "list", "delete"} if level == "RequestResponse" else set())
    if level != "Metadata":
        assert found["create"]["requestObject"]["data"] == {"b": "c"}
    if level == "RequestResponse":
        shown = found["get"]["responseObject"]
        assert (shown["data"], "managedFields" in shown["metadata"]) == ({"b": "c"}, not omits)
        (item,) = found["list"]["responseObject"]["items"]
        assert (item["data"], "managedFields" in item["metadata"]) == ({"b": "c"}, not omits)


async def test_legacy_token_use_is_warned_of_and_audited(tmp_path):
    path, keys = tmp_path / "audit.log", load(pem(EC))
    async with apiserver.running(f"--audit-log-path={path}", keys=keys) as client:
        accounts, secrets = (f"/api/v1/namespaces/default/{each}" for each in ("serviceaccounts", "secrets"))
        body = {"metadata": {"name": "robot"}, "secrets": [{"name": "kept"}]}
        uid = (await client.post(accounts, body)).body["metadata"]["uid"]
        claim = "kubernetes.io/serviceaccount/"
        claims = {
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:default:robot",
            f"{claim}namespace": "default",
            f"{claim}secret.name": "kept",
            f"{claim}service-account.name": "robot",
            f"{claim}service-account.uid": uid,
        }
        token = jwt.sign(keys, claims)
        secret = {
            "metadata": {"name": "kept", "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token",
            "stringData": {"token": token},
        }
        await client.post(secrets, secret)
        for where in ("/api/v1/nodes", "/no/such/path", "/version"):
            answer = await client.get(where, Authorization=f"Bearer {token}")
            assert "Use tokens from the TokenRequest API" in answer.headers["Warning"]
        kept = (await client.get(f"{secrets}/kept")).body["metadata"]["labels"]
        assert list(kept) == ["kubernetes.io/legacy-token-last-used"]
        summaries = [
            line["annotations"]
            for line in map(orjson.loads, path.read_bytes().splitlines())
            if "annotations" in line
        ]
        about = "authentication.k8s.io/legacy-token"
        assert {one.get(f"{about}-autogenerated-secret") for one in summaries if about in one} == {"kept"}
        assert await metric(client, "serviceaccount_legacy_auto_token_uses_total") == 1
        review = {"spec": {"token": token}}
        answer = await client.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert "Use tokens from the TokenRequest API" in answer.headers["Warning"]
