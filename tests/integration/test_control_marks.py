"""Marks: names for revisions, in a group of virtual resources that programs which enumerate all groups do not notice."""

import orjson
import pytest

from mockube.etcd.kv import Range
from tests.support.server.apiserver import Client, running, running_with_roles
from tests.support.server.control import API_VERSION, PATH, causes, control_object

MARKS = f"{PATH}/marks"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def newest_revision(client):
    return (await client.server.registry.kv.status()).revision


async def test_mark_names_newest_revision(client):
    created = await client.post(MARKS, control_object("Mark", "before"))
    assert created.status == 201
    assert created.body["spec"]["revision"] == await newest_revision(client)
    assert created.body["spec"]["time"][:19] == created.body["metadata"]["creationTimestamp"][:19]
    await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    read = await client.get(f"{MARKS}/before")
    assert read.body == created.body
    table = (await client.get(MARKS, Accept=TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Revision", "Age"]
    assert table["rows"][0]["cells"][:2] == ["before", created.body["spec"]["revision"]]


async def test_mark_names_earlier_revision(client):
    assert (await client.post(MARKS, control_object("Mark", "first", spec={"revision": 1}))).status == 201
    await client.post(MARKS, control_object("Mark", "newest"))
    listed = (await client.get(f"{MARKS}?fieldSelector=spec.revision=1")).body
    assert [item["metadata"]["name"] for item in listed["items"]] == ["first"]


async def test_history_is_needed_from_the_oldest_mark_on(client):
    marks = client.server.control.objects.marks
    assert marks.oldest() is None
    for name, revision in (("later", 2), ("first", 1)):
        await client.post(MARKS, control_object("Mark", name, spec={"revision": revision}))
    assert marks.oldest() == 1
    await client.delete(f"{MARKS}/first")
    assert marks.oldest() == 2


async def test_invalid_marks_are_refused(client):
    newest = await newest_revision(client)
    later = await client.post(MARKS, control_object("Mark", "m", spec={"revision": newest + 1}))
    text = await client.post(MARKS, control_object("Mark", "m", spec={"revision": "x"}))
    none = await client.post(MARKS, control_object("Mark", "m", spec=["x"]))
    assert [later.status, text.status, none.status] == [422, 422, 422]
    problem = f"must not be later than the newest revision, {newest}"
    assert causes(later) == [("spec.revision", f"Invalid value: {newest + 1}: {problem}")]
    assert causes(text)[0][0] == "spec.revision"
    assert causes(none)[0][0] == "spec"
    assert (await client.get(MARKS)).body["items"] == []


async def test_dry_run_creates_nothing(client):
    assert (await client.post(f"{MARKS}?dryRun=All", control_object("Mark", "m"))).status == 201
    assert (await client.get(f"{MARKS}/m")).status == 404


async def test_watch_has_changes_and_resumes(client):
    start = (await client.get(MARKS)).body["metadata"]["resourceVersion"]
    await client.post(MARKS, control_object("Mark", "m"))
    await client.delete(f"{MARKS}/m")
    query = f"watch=1&resourceVersion={start}&timeoutSeconds=1"
    lines = (await client.get(f"{MARKS}?{query}")).data.splitlines()
    assert [orjson.loads(line)["type"] for line in lines] == ["ADDED", "DELETED"]
    old = await client.get(f"{MARKS}?watch=1&resourceVersion=2&timeoutSeconds=1")
    assert orjson.loads(old.data)["object"]["code"] == 410


async def test_verbs_that_do_not_exist_are_refused(client):
    await client.post(MARKS, control_object("Mark", "m"))
    refused = [
        await client.put(f"{MARKS}/m", control_object("Mark", "m")),
        await client.patch(f"{MARKS}/m", {}),
        await client.delete(MARKS),
    ]
    assert [answer.status for answer in refused] == [405, 405, 405]


async def test_store_of_cluster_has_no_object_of_group(client):
    before = await newest_revision(client)
    await client.post(MARKS, control_object("Mark", "m"))
    assert await newest_revision(client) == before
    assert not (
        await client.server.registry.kv.range(Range(key=b"/registry/control", range_end=b"/registry/d"))
    ).kvs


async def test_discovery_and_openapi_describe_group():
    async with running("--control=on") as client:
        groups = (await client.get("/apis")).body["groups"]
        resources = (await client.get(PATH)).body["resources"]
        document = (await client.get(f"/openapi/v3/apis/{API_VERSION}")).body
    assert "control.mockube.dev" in [group["name"] for group in groups]
    (listed,) = [each for each in resources if each["name"] == "marks"]
    assert listed["verbs"] == ["create", "get", "list", "watch"]
    schema = document["components"]["schemas"]["dev.mockube.control.v1alpha1.Mark"]
    assert schema["properties"]["spec"]["properties"]["revision"]["description"]


async def test_group_is_by_default_served_and_not_described():
    async with running() as client:
        groups = (await client.get("/apis")).body["groups"]
        assert "control.mockube.dev" not in [group["name"] for group in groups]
        assert "control.mockube.dev" not in (await client.get("/openapi/v3")).data.decode()
        assert (await client.post(MARKS, control_object("Mark", "m"))).status == 201


async def test_group_that_is_off_is_not_served():
    async with running("--control=off") as client:
        assert (await client.get(MARKS)).status == 404


async def test_definition_adds_no_resource_to_group(client):
    spec = {
        "group": "control.mockube.dev",
        "names": {"plural": "marks", "kind": "Mark"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    }
    definition = {"metadata": {"name": "marks.control.mockube.dev"}, "spec": spec}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await client.post(path, definition)).status == 201
    await client.server.wait_definitions_served()
    created = await client.post(MARKS, control_object("Mark", "m"))
    assert created.body["spec"]["revision"]


async def test_webhook_of_all_resources_is_not_called(client):
    webhook = {
        "name": "deny.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": ["*"],
                "resources": ["*/*"],
                "scope": "*",
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert (await client.post(path, {"metadata": {"name": "deny"}, "webhooks": [webhook]})).status == 201
    assert (await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})).status == 500
    assert (await client.post(MARKS, control_object("Mark", "m"))).status == 201
    assert (await client.delete(f"{MARKS}/m")).status == 200


async def test_only_administrators_have_rights():
    async with running_with_roles() as client:
        alice = Client(client.session, client.url, authorization="Bearer alice")
        # Controllers copy the rules of these roles to admin, edit and view.
        for role in ("system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view"):
            binding = {
                "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
            }
            path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
            assert (await client.post(path, binding)).status == 201
        await client.server.registry.watch_cache.fresh()
        assert (await alice.get(CONFIG_MAPS)).status == 200
        assert (await alice.get(MARKS)).status == 403
        assert (await client.get(MARKS)).status == 200


@pytest.mark.parametrize("name", ["now", "7", "1795863928153216"])
async def test_name_that_is_a_moment_by_itself_is_refused(client, name):
    refused = await client.post(MARKS, control_object("Mark", name))
    assert refused.status == 422
    ((field, problem),) = causes(refused)
    assert (field, problem.partition(":")[0]) == ("metadata.name", "Invalid value")
    assert (await client.get(MARKS)).body["items"] == []


@pytest.mark.parametrize("name", ["nowhere", "7a", "2026-01-31"])
async def test_name_that_resembles_a_moment_is_found(client, name):
    assert (await client.post(MARKS, control_object("Mark", name))).status == 201
    assert (await client.get(f"/mockube/at/{name}")).status == 200
