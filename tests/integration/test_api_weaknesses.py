"""Known attacks on Kubernetes API servers: each is tried here, or where docs/security.md says."""

import pytest

from tests.support.server.apiserver import running_with_roles
from tests.support.server.definitions import GROUP, define, definition

CORE = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
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
