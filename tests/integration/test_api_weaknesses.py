"""Known attacks on Kubernetes API servers: each is tried here, or where docs/security.md says."""

import pytest

from tests.support.server.apiserver import running_with_roles
from tests.support.server.definitions import GROUP, define, definition

CORE = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONTROL = "/apis/control.mockube.dev/v1alpha1"
EVE = {"Impersonate_User": "eve"}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture
async def client():
    async with running_with_roles() as client:
        yield client


async def allow(client, *rules):
    """Grant a permission to the user eve in the namespace `default`."""
    await client.post(f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "r"}, "rules": rules})
    body = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}],
    }
    assert (await client.post(f"{RBAC}/namespaces/default/rolebindings", body)).status == 201
    await client.server.registry.watch_cache.fresh()


def rule(group, resource, *verbs):
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


async def config_map(client, data):
    body = {"metadata": {"name": "m"}, "data": data}
    assert (await client.post(f"{CORE}/configmaps", body)).status == 201


async def test_number_of_patch_operations_is_limited(client):
    await config_map(client, {"a": "b"})
    operations = [{"op": "test", "path": "/data/a", "value": "b"}] * 10_001
    answer = await client.patch(f"{CORE}/configmaps/m", operations, kind="json-patch+json")
    assert answer.status == 413
    problem = "The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert problem in answer.body["message"]


async def test_growth_by_patch_copies_is_limited(client):
    await config_map(client, {"a": "x" * 500_000})
    copies = [{"op": "copy", "from": "/data/a", "path": f"/data/b{number}"} for number in range(100)]
    answer = await client.patch(f"{CORE}/configmaps/m", copies, kind="json-patch+json")
    assert answer.status in (413, 422), answer.body
    assert (await client.get(f"{CORE}/configmaps/m")).body["data"].keys() == {"a"}


async def test_cluster_scoped_object_is_not_served_in_namespace(client):
    await define(client, definition(scope="Cluster"))
    widgets = f"/apis/{GROUP}/v1/widgets"
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert (await client.post(widgets, body)).status == 201
    await allow(client, rule(GROUP, "widgets", "*"))
    within = f"/apis/{GROUP}/v1/namespaces/default/widgets"
    for method, path in (("GET", within), ("GET", f"{within}/w"), ("DELETE", f"{within}/w")):
        assert (await client.send(method, path, **EVE)).status == 404
    assert (await client.get(f"{widgets}/w", **EVE)).status == 403
    assert (await client.get(f"{widgets}/w")).status == 200


@pytest.mark.parametrize("accept", [TABLE, METADATA])
async def test_table_and_metadata_of_secrets_have_no_data(client, accept):
    secret = {"metadata": {"name": "s"}, "stringData": {"key": "confidential"}}
    await client.post(f"{CORE}/secrets", secret)
    answer = await client.get(f"{CORE}/secrets", Accept=accept)
    assert answer.status == 200
    assert b"Y29uZmlkZW50aWFs" not in answer.data
    assert b"confidential" not in answer.data


async def test_object_and_status_are_written_separately(client):
    namespace = "/api/v1/namespaces/default"
    await client.patch(namespace, {"status": {"phase": "Terminating"}})
    assert (await client.get(namespace)).body["status"]["phase"] == "Active"
    node = "/api/v1/nodes/n"
    await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    await client.patch(f"{node}/status", {"spec": {"unschedulable": True}})
    assert "unschedulable" not in (await client.get(node)).body["spec"]


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        ("serviceaccounts", "serviceaccounts/a/token"),
        ("pods", "pods/p/binding"),
        ("pods", "pods/p/eviction"),
        ("pods", "pods/p/ephemeralcontainers"),
        ("pods", "pods/p/exec?command=sh"),
    ],
)
async def test_write_access_does_not_include_subresources(client, resource, path):
    await allow(client, rule("", resource, "create", "update", "patch", "get"))
    method = "PATCH" if "ephemeral" in path else "POST"
    answer = await client.send(method, f"{CORE}/{path}", {}, **EVE)
    assert answer.status == 403
    assert (
        f'cannot {method.lower().replace("post", "create")} resource "{resource}/' in answer.body["message"]
    )


WAYS_TO_SECRETS = (
    "/api/v1/secrets",
    "/api/v1/%73ecrets",
    "/api/v1/../v1/secrets",
    "//api/v1/namespaces/default/secrets/s",
    "/api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=1",
    "/api/v1/watch/secrets",
    "/api/v1/watch/namespaces/default/secrets/s",
    "/api/v1/namespaces/default/%73ecrets/s",
    "/api/v1/namespaces/default/configmaps/../secrets/s",
    "/api/v1/namespaces/default/configmaps/..%2fsecrets%2fs",
    "/api/v1/namespaces/default/configmaps/%2e%2e/secrets/s",
    "/api/v1/namespaces/default/configmaps;x/../secrets",
    "/api/v1/namespaces/default/configmaps/m/../../secrets/s",
    "/api/v1/namespaces/default/pods/m/proxy/../../../secrets/s",
    "/mockube/at/now",
    "/mockube/at/1/api/v1/namespaces/default/secrets",
    "/mockube/at/now/api/v1/namespaces/default/secrets/s",
    "/mockube/at/../api/v1/secrets",
    "/mockube/at/%2e%2e/api/v1/secrets",
    "/mockube/snapshot",
    "/mockube/ui/..%2f..%2fetc%2fpasswd",
    "/logs/../../etc/passwd",
    "/configz",
    "/debug/pprof/",
    "/metrics",
    *(f"{CONTROL}/{kind}" for kind in ("changes", "clocks", "faults", "marks", "requests", "snapshots")),
)
OTHER_USERS = (
    {},
    {"X_Remote_User": "admin", "X_Remote_Group": "system:masters"},
    {"X_HTTP_Method_Override": "GET"},
    {"X_Original_Url": "/livez"},
    {"X_Forwarded_Prefix": "/livez"},
)


@pytest.mark.parametrize("user", [EVE, {"Authorization": "Bearer nobody"}, {"Authorization": ""}], ids=str)
async def test_no_path_leads_to_what_a_user_may_not_read(client, user):
    await allow(client, rule("", "configmaps", "*"), rule("", "pods", "*"))
    await config_map(client, {})
    await client.post(
        f"{CORE}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "value of a secret"}}
    )
    for path in WAYS_TO_SECRETS:
        for headers in OTHER_USERS:
            answer = await client.get(path, **user, **headers)
            is_public = path == "/mockube/at/now" and user == EVE
            assert answer.status == 200 if is_public else 400 <= answer.status < 500, path
            assert b"dmFsdWUgb2YgYSBzZWNyZXQ" not in answer.data, path


@pytest.mark.parametrize("kind", ["explanations", "faults", "forks", "marks", "rewinds", "snapshots"])
async def test_control_objects_need_rights_of_their_own(client, kind):
    await allow(client, rule("", "*", "*"), rule("apps", "*", "*"))
    body = {"metadata": {"name": "x"}, "spec": {}}
    assert (await client.post(f"{CONTROL}/{kind}", body, **EVE)).status == 403
    assert (await client.delete(f"{CONTROL}/{kind}", **EVE)).status in (403, 405)
    assert (await client.patch(f"{CONTROL}/clocks/cluster", {"spec": {"paused": True}}, **EVE)).status == 403


HOSTILE_BODIES = (
    (b'{"metadata":{"name":"d"},"data":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "json"),
    (b"[" * 300_000, "json"),
    (b'{"metadata":{"name":"n","generation":NaN}}', "json"),
    (b'{"metadata":{"name":"n","generation":1e400}}', "json"),
    (b'\xef\xbb\xbf{"metadata":{"name":"n"}}', "json"),
    ('{"metadata":{"name":"n"}}'.encode("utf-16"), "json"),
    (b'metadata: !!python/object/apply:os.system ["true"]\n', "yaml"),
    (b"".join(b"%c: &%c [%s]\n" % (97 + i, 97 + i, b",".join([b"*%c" % (96 + i) if i else b"x"] * 9)) for i in range(9)), "yaml"),
    (b"k8s\0\x0a\xff\xff\xff\xff\x0f" + b"x" * 100, "vnd.kubernetes.protobuf"),
    (b"k8s\0" + b"\x0a\x02" * 5000, "vnd.kubernetes.protobuf"),
    (b"\xd9\xd9\xf7" + b"\x81" * 100_000 + b"\0", "cbor"),
)  # fmt: skip
HOSTILE_QUERIES = (
    "limit=1e99",
    "limit=99999999999999999999",
    "continue=x",
    f"continue={'A' * 9000}",
    "watch=1&timeoutSeconds=1e309",
    "resourceVersion=NaN",
    "resourceVersion=-1",
    "resourceVersion=99999999999999999999",
    f"labelSelector={'!' * 2000}",
    "labelSelector=a%00b",
    "fieldSelector=%00",
)


async def test_hostile_bodies_and_queries_are_refused(client):
    for body, kind in HOSTILE_BODIES:
        answer = await client.post(f"{CORE}/configmaps", body, Content_Type=f"application/{kind}")
        assert 400 <= answer.status < 500, body[:50]
    for query in HOSTILE_QUERIES:
        assert (await client.get(f"{CORE}/configmaps?{query}")).status == 400, query
    assert (await client.get(f"{CORE}/configmaps")).body["items"] == []
