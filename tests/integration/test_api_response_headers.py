"""Response headers: the audit ID and the flow schema of each request."""

import pytest

from tests.support.server import apiserver

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMA, LEVEL = "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def test_response_has_audit_id(client):
    answers = [await client.get(path) for path in ("/api/v1/namespaces", "/version", "/nothing")]
    ids = [answer.headers["Audit-Id"] for answer in answers]
    assert len({*ids}) == 3
    assert all(len(each) == 36 for each in ids)


async def test_client_may_set_audit_id(client):
    answer = await client.get("/api/v1/namespaces", **{"Audit-ID": "mine"})
    assert answer.headers["Audit-Id"] == "mine"


async def flow(client, path):
    headers = (await client.get(path)).headers
    return headers.get(SCHEMA), headers.get(LEVEL)


def schema(name, precedence, rules, *, level="mine", subject="*"):
    spec = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": [{"kind": "Group", "group": {"name": subject}}], **rules}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def resource_rules(verb, resource, *namespaces, cluster=False):
    rule = {"verbs": [verb], "apiGroups": [""], "resources": [resource]}
    where = {"namespaces": namespaces} if namespaces else {}
    return {"resourceRules": [rule | where | ({"clusterScope": True} if cluster else {})]}


LIST = "/api/v1/namespaces/default/secrets"


async def test_flow_schema_headers_name_first_match(client):
    assert await flow(client, LIST) == (None, None)
    limited = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    level = await client.post(
        f"{FLOWS}/prioritylevelconfigurations", {"metadata": {"name": "mine"}, "spec": limited}
    )
    made = {}
    for tree in (
        schema("last", 9000, resource_rules("*", "*", "*", cluster=True)),
        schema("first", 10, resource_rules("list", "secrets", "default")),
        schema("nobody", 9, resource_rules("*", "*", "*", cluster=True), subject="nobody"),
        schema("dangling", 8, resource_rules("*", "*", "*", cluster=True), level="none"),
        schema(
            "pages",
            20,
            {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version", "/livez/*"]}]},
        ),
    ):
        answer = await client.post(f"{FLOWS}/flowschemas", tree)
        assert answer.status == 201, answer.body
        made[tree["metadata"]["name"]] = answer.body["metadata"]["uid"], level.body["metadata"]["uid"]
    assert await flow(client, LIST) == made["first"]
    assert await flow(client, "/api/v1/namespaces/kube-system/secrets") == made["last"]
    assert await flow(client, "/api/v1/secrets") == made["last"]
    assert await flow(client, f"{LIST}/a") == made["last"]
    assert await flow(client, "/version") == await flow(client, "/livez/ping") == made["pages"]
    assert await flow(client, "/metrics") == (None, None)
    await client.delete(f"{FLOWS}/flowschemas/first")
    assert await flow(client, LIST) == made["last"]


async def test_filter_refusals_have_nosniff_header():
    async with apiserver.running_with_roles() as client:
        for more in (
            {"Authorization": "Bearer alice"},
            {"Authorization": "Bearer alice", "Impersonate_User": "x"},
        ):
            refused = await client.get("/api/v1/pods", **more)
            assert (refused.status, refused.headers["X-Content-Type-Options"]) == (403, "nosniff")
        missing = await client.get("/api/v1/namespaces/default/pods/x")
        assert (missing.status, "X-Content-Type-Options" in missing.headers) == (404, False)
