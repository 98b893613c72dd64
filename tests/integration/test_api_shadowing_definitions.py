"""CustomResourceDefinitions with names of built-in resources, compared with a real kube-apiserver 1.36."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, define, definition, until

NOT_FOUND = "the server could not find the requested resource"
APPROVED = {"api-approved.kubernetes.io": "unapproved, test-only"}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def create_definition(client, *, group, plural, kind):
    """Create a definition and wait until it is established; return its path."""
    tree = definition(plural=plural, kind=kind, group=group, scope="Cluster")
    tree["metadata"] = {"name": f"{plural}.{group}", "annotations": APPROVED}
    await define(client, tree)
    return f"{DEFINITIONS}/{tree['metadata']['name']}"


async def delete_definition(client, path):
    await client.delete(path)
    await until(client, path.rpartition("/")[2], lambda seen: seen is None)


async def test_definition_in_built_in_group_is_not_served(client):
    path = await create_definition(client, group="networking.k8s.io", plural="foos", kind="Foo")
    listed = (await client.get("/apis/networking.k8s.io/v1")).body["resources"]
    assert {"ingresses", "networkpolicies"} <= {row["name"] for row in listed}
    assert "foos" not in {row["name"] for row in listed}
    for found in (
        await client.get("/apis/networking.k8s.io/v1/foos"),
        await client.post("/apis/networking.k8s.io/v1/foos", {"metadata": {"name": "a"}}),
    ):
        assert (found.status, found.body["message"]) == (404, NOT_FOUND)
    assert b"foos" not in (await client.get("/openapi/v3/apis/networking.k8s.io/v1")).data
    await delete_definition(client, path)
    assert (await client.get(path)).status == 404


@pytest.mark.parametrize(
    ("group", "plural", "kind", "item"),
    [
        ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", {"rules": []}),
        ("scheduling.k8s.io", "priorityclasses", "PriorityClass", {"value": 5}),
    ],
)
async def test_built_in_resource_is_unaffected_by_definition_of_its_name(client, group, plural, kind, item):
    collection = f"/apis/{group}/v1/{plural}"
    await client.post(collection, {"metadata": {"name": "before"}} | item)
    path = await create_definition(client, group=group, plural=plural, kind=kind)
    assert (await client.post(collection, {"metadata": {"name": "during"}} | item)).status == 201
    await delete_definition(client, path)
    assert (await client.post(collection, {"metadata": {"name": "after"}} | item)).status == 201
    names = {one["metadata"]["name"] for one in (await client.get(collection)).body["items"]}
    assert {"before", "during", "after"} <= names


async def test_definition_named_like_definitions_changes_nothing(client):
    group = "apiextensions.k8s.io"
    path = await create_definition(
        client, group=group, plural="customresourcedefinitions", kind="CustomResourceDefinition"
    )
    assert (await client.get(path)).body["spec"]["group"] == group
    await create_definition(client, group="example.com", plural="foos", kind="Foo")
    assert (await client.get("/apis/example.com/v1/foos")).status == 200


async def test_built_in_openapi_is_not_replaced(client):
    """The kind's name in OpenAPI would be that of a built-in type, which is used to decode bodies."""
    group = "apiextensions.apis.pkg.apiextensions-apiserver.k8s.io"
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    before = (await client.get("/openapi/v2")).body["definitions"][name]
    await create_definition(
        client, group=group, plural="customresourcedefinitions", kind="CustomResourceDefinition"
    )
    definitions = (await client.get("/openapi/v2")).body["definitions"]
    assert definitions[name] == before
    assert definitions[f"{name}_v2"]["x-kubernetes-group-version-kind"][0]["group"] == group
    path = await create_definition(client, group="example.com", plural="foos", kind="Foo")
    assert (await client.get(path)).body["spec"]["versions"][0]["schema"]
