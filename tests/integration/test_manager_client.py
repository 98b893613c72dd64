"""The controller manager's client with a real API server: every verb, and typed errors."""

import orjson
import pytest

from mockube.apimachinery.status import AlreadyExists, Conflict, Invalid, NotFound, Unauthorized
from mockube.client.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from mockube.client.resources import Key, Resource, whole_tree
from mockube.client.wire import Unreachable
from tests.support.controllers.manager_client import client_of
from tests.support.server.apiserver import running

METADATA_ONLY = Resource(
    group="",
    version="v1",
    plural="configmaps",
    kind="ConfigMap",
    namespaced=True,
    view=whole_tree,
    metadata_only=True,
)


@pytest.fixture
async def client():
    async with running() as server, client_of(server.url) as client:
        yield client


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


async def test_object_is_created_read_updated_and_deleted(client):
    created = await client.create(CONFIG_MAPS, config_map("a", x="1"))
    key = Key("default", "a")
    assert await client.get(CONFIG_MAPS, key) == created
    updated = await client.update(CONFIG_MAPS, {**created, "data": {"x": "2"}})
    assert updated["data"] == {"x": "2"}
    patched = await client.patch(CONFIG_MAPS, key, {"data": {"y": "3"}})
    assert patched["data"] == {"x": "2", "y": "3"}
    await client.delete(CONFIG_MAPS, key, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, key)


async def test_cluster_scoped_object_has_no_namespace_in_path(client):
    created = await client.create(NAMESPACES, {"metadata": {"name": "other"}})
    assert await client.get(NAMESPACES, Key("", "other")) == created


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("merge", {"data": {"x": "2"}}, id="merge"),
        pytest.param("strategic", {"data": {"x": "2"}}, id="strategic"),
        pytest.param("json", [{"op": "replace", "path": "/data/x", "value": "2"}], id="json"),
        pytest.param("apply", config_map("a", x="2"), id="apply"),
    ],
)
async def test_every_patch_type_is_sent(client, kind, body):
    await client.create(CONFIG_MAPS, config_map("a", x="1"))
    wanted = {"field_manager": "test", "force": True} if kind == "apply" else {}
    patched = await client.patch(CONFIG_MAPS, Key("default", "a"), body, kind=kind, **wanted)
    assert patched["data"] == {"x": "2"}


async def test_status_is_written_separately(client):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    created = await client.create(
        DEPLOYMENTS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}
    )
    written = await client.update(DEPLOYMENTS, {**created, "status": {"replicas": 3}}, subresource="status")
    assert written["status"]["replicas"] == 3
    scale = await client.get(DEPLOYMENTS, Key("default", "d"), subresource="scale")
    assert scale["kind"] == "Scale"


async def test_subresource_is_created_under_its_parent(client):
    body = {"spec": {"expirationSeconds": 3600}}
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": "default"}})
    created = await client.create(SERVICE_ACCOUNTS, body, key=Key("default", "robot"), subresource="token")
    assert created["status"]["token"]


async def test_list_is_paged_and_items_have_kind(client):
    for name in ("a", "b", "c"):
        await client.create(CONFIG_MAPS, config_map(name))
    first = await client.list(CONFIG_MAPS, "default", limit=2)
    assert first.continue_token
    assert first.resource_version.isdigit()
    second = await client.list(CONFIG_MAPS, "default", limit=2, continue_token=first.continue_token)
    found = first.items + second.items
    assert [item["metadata"]["name"] for item in found] == ["a", "b", "c"]
    assert {(item["kind"], item["apiVersion"]) for item in found} == {("ConfigMap", "v1")}


async def test_lists_support_selectors(client):
    for name in ("a", "b"):
        labelled = config_map(name)
        labelled["metadata"]["labels"] = {"which": name}
        await client.create(CONFIG_MAPS, labelled)
    by_label = await client.list(CONFIG_MAPS, label_selector="which in (b,c)")
    by_field = await client.list(CONFIG_MAPS, "default", field_selector="metadata.name=b")
    assert [i["metadata"]["name"] for i in by_label.items] == ["b"]
    assert [i["metadata"]["name"] for i in by_field.items] == ["b"]


async def test_collection_is_deleted(client):
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name))
    await client.delete_collection(
        CONFIG_MAPS, "default", list_options={"field_selector": "metadata.name=a"}, propagation="Background"
    )
    left = await client.list(CONFIG_MAPS, "default")
    assert [item["metadata"]["name"] for item in left.items] == ["b"]


async def test_metadata_only_is_requested(client):
    await client.create(CONFIG_MAPS, config_map("a", x="1"))
    one = await client.get(METADATA_ONLY, Key("default", "a"))
    listed = await client.list(METADATA_ONLY, "default")
    assert one["kind"] == "PartialObjectMetadata"
    assert "data" not in one
    assert ["data" in item for item in listed.items] == [False]


async def test_non_resource_path_is_requested(client):
    version = await client.raw("GET", "/version")
    assert "gitVersion" in version


async def test_error_responses_raise_their_class(client):
    created = await client.create(CONFIG_MAPS, config_map("a", x="1"))
    key = Key("default", "a")
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await client.create(CONFIG_MAPS, config_map("a"))
    await client.patch(CONFIG_MAPS, key, {"data": {"x": "2"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.update(CONFIG_MAPS, {**created, "data": {"x": "3"}})
    with pytest.raises(Conflict, match="UID in the precondition"):
        await client.delete(CONFIG_MAPS, key, uid="another")
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await client.create(CONFIG_MAPS, config_map("A B"))


async def test_unknown_user_is_unauthorized():
    async with running() as server, client_of(server.url, token="nobody") as client:
        with pytest.raises(Unauthorized):
            await client.list(PODS)


async def test_absent_server_is_unreachable():
    async with client_of("http://127.0.0.1:1") as nobody:
        with pytest.raises(Unreachable, match="POST /api/v1/namespaces/default/configmaps"):
            await nobody.create(CONFIG_MAPS, config_map("a"))


async def test_controller_may_use_its_service_account():
    """The server has not created its account and, without controllers, not even the namespace's default account."""
    async with running() as server, client_of(server.url, use_service_account_credentials=True) as client:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        controller = client.for_service_account("replicaset-controller")
        mine = await client.raw("POST", path, body=orjson.dumps(review))
        its = await controller.raw("POST", path, body=orjson.dumps(review))
        assert mine["status"]["userInfo"]["username"] == "admin"
        assert its["status"]["userInfo"]["username"] == (
            "system:serviceaccount:kube-system:replicaset-controller"
        )
