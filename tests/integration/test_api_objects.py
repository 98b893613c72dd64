"""The life cycle of objects over HTTP: create, read, update, patch, delete."""

import asyncio

import orjson
import pytest

from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def config(name, **data):
    return {"metadata": {"name": name}, "data": data}


async def test_created_object_is_read_as_returned(client):
    created = await client.post(MAPS, config("a", k="v"))
    assert created.status == 201
    read = await client.get(f"{MAPS}/a")
    assert read.data == created.data
    metadata = read.body["metadata"]
    assert {"uid", "resourceVersion", "creationTimestamp"} <= metadata.keys()
    assert (read.body["kind"], read.body["apiVersion"], metadata["namespace"]) == (
        "ConfigMap",
        "v1",
        "default",
    )


async def test_resource_versions_are_increasing_store_revisions(client):
    versions = [
        int((await client.post(MAPS, config(name))).body["metadata"]["resourceVersion"]) for name in "abc"
    ]
    assert versions == sorted(set(versions))
    listed = await client.get(MAPS)
    assert int(listed.body["metadata"]["resourceVersion"]) >= versions[-1]
    assert [item["metadata"]["resourceVersion"] for item in listed.body["items"]] == list(map(str, versions))
    assert all("kind" not in item for item in listed.body["items"])


@pytest.mark.parametrize(
    ("version", "code"), [("5", 500), ("0", 201), ("", 201), ("cpu", 201), ("-1", 201), ("9" * 20, 201)]
)
async def test_resource_version_on_create_is_refused(client, version, code):
    answer = await client.post(MAPS, {"metadata": {"name": "a", "resourceVersion": version}})
    assert answer.status == code


async def test_runtime_class_update_is_validated_like_create(client):
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    made = {"metadata": {"name": "a"}, "handler": "kata", "scheduling": {"nodeSelector": {"a": "b"}}}
    assert (await client.post(classes, made)).status == 201
    answer = await client.patch(f"{classes}/a", {"scheduling": {"tolerations": [{}]}})
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (
        422,
        "scheduling.tolerations[0].operator",
    )


async def test_second_update_from_same_version_conflicts(client):
    first = (await client.post(MAPS, config("a", k="1"))).body
    assert (await client.put(f"{MAPS}/a", first | {"data": {"k": "2"}})).status == 200
    second = await client.put(f"{MAPS}/a", first | {"data": {"k": "3"}})
    assert (second.status, second.body["reason"]) == (409, "Conflict")
    assert (await client.get(f"{MAPS}/a")).body["data"] == {"k": "2"}


async def test_unchanged_update_is_not_written(client):
    before = (await client.post(MAPS, config("a", k="1"))).body
    same = await client.put(f"{MAPS}/a", config("a", k="1"))
    assert same.body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_concurrent_patches_lose_no_change(client):
    await client.post(MAPS, config("a"))
    answers = await asyncio.gather(
        *(client.patch(f"{MAPS}/a", {"data": {f"k{number}": "v"}}) for number in range(20))
    )
    assert {answer.status for answer in answers} == {200}
    assert len((await client.get(f"{MAPS}/a")).body["data"]) == 20


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"{MAPS}/a%25b", 400, 'Name parameter invalid: "a%b": may not contain \'%\''),
        (f"{MAPS}/a%252Fb", 400, 'Name parameter invalid: "a%2Fb": may not contain \'%\''),
        (f"{MAPS}/%2525", 400, 'Name parameter invalid: "%25": may not contain \'%\''),
        (f"{MAPS}/%ff", 404, 'configmaps "\ufffd" not found'),
        (f"{MAPS}/%c3%a9", 404, 'configmaps "é" not found'),
        ("/api/v1/namespaces/a%25b/configmaps/c", 404, 'configmaps "c" not found'),
        (f"{MAPS}?fieldSelector=metadata.name%2525", 400, "invalid selector: 'metadata.name%25'; can't understand 'metadata.name%25'"),
    ],
)  # fmt: skip
async def test_escapes_are_decoded_once(client, path, status, message):
    answer = await client.get(path)
    assert (answer.status, answer.body["message"]) == (status, message)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param(f"{MAPS}/..", 400, id="dots"),
        pytest.param(f"{MAPS}/a%2Fb", 404, id="encoded slash"),
        pytest.param("/api/v1//configmaps", 404, id="an empty segment"),
        pytest.param("/api/v1/namespaces/default/nodes", 404, id="a cluster's resource in a namespace"),
        pytest.param("/api/v1/configmaps/a", 404, id="a name without its namespace"),
        pytest.param("/apis/apps/v1/namespaces/default/configmaps", 404, id="another group's"),
    ],
)
async def test_unknown_paths_are_refused(client, path, status):
    answer = await client.get(path)
    assert answer.status == status


@pytest.mark.parametrize(
    ("verb", "path", "message"),
    [
        ("GET", "namespaces/%2e%2e/configmaps", 'invalid key: "/configmaps/.."'),
        ("GET", "namespaces/./configmaps?watch=1", 'invalid key: "/configmaps/."'),
        ("DELETE", "namespaces/./services", 'invalid key: "/services/specs/."'),
        ("GET", "namespaces/./configmaps/x", 'invalid key: "/configmaps/./x"'),
        ("PUT", "namespaces/../configmaps/x", 'invalid key: "/configmaps/../x"'),
        ("DELETE", "namespaces/./pods/x", 'invalid key: "/pods/./x"'),
        ("POST", "namespaces/./configmaps", "Internal error occurred: invalid resource name \".\": [may not be '.']"),
        ("POST", "namespaces/a%25b/configmaps?dryRun=All",
         "Internal error occurred: invalid resource name \"a%b\": [may not contain '%']"),
    ],
)  # fmt: skip
async def test_relative_namespace_makes_no_key(client, verb, path, message):
    body = orjson.dumps({"metadata": {"name": "x"}}) if verb in {"PUT", "POST"} else b""
    answer = await client.send(verb, f"/api/v1/{path}", body, Content_Type="application/json")
    assert (answer.status, answer.body["message"]) == (500, message)


@pytest.mark.parametrize(
    ("path", "answers"),
    [
        pytest.param("/api/v1/nothing", "application/json", id="a resource"),
        pytest.param("/apis/apps/v7/deployments", "application/json", id="a version's resource"),
        pytest.param("/apis/apps/v7", "application/json", id="a version"),
        pytest.param("/apis/no.such.group/v1/things", "text/plain", id="a group's resource"),
        pytest.param("/apis/no.such.group/v1", "text/plain", id="a group's version"),
        pytest.param("/apis/no.such.group", "text/plain", id="a group"),
        pytest.param("/apis//apps/v1", "text/plain", id="an empty group"),
        pytest.param("/nothing", "text/plain", id="a page"),
    ],
)
async def test_not_found_response_format_depends_on_path(client, path, answers):
    """Clients turn a response that is not a Status into an error of their own, which names the resource."""
    answer = await client.get(path)
    assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (404, answers)


async def test_generated_names_are_unique(client):
    names = {
        (await client.post(MAPS, {"metadata": {"generateName": "x-"}})).body["metadata"]["name"]
        for _ in range(10)
    }
    assert len(names) == 10
    assert all(name.startswith("x-") and len(name) == 7 for name in names)


async def test_dry_run_stores_nothing(client):
    assert (await client.post(f"{MAPS}?dryRun=All", config("a"))).status == 201
    assert (await client.get(f"{MAPS}/a")).status == 404
    await client.post(MAPS, config("a", k="1"))
    assert (await client.put(f"{MAPS}/a?dryRun=All", config("a", k="2"))).body["data"] == {"k": "2"}
    await client.delete(f"{MAPS}/a?dryRun=All")
    assert (await client.get(f"{MAPS}/a")).body["data"] == {"k": "1"}


async def test_object_is_deleted_after_last_finalizer(client):
    await client.post(MAPS, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    deleted = await client.delete(f"{MAPS}/a")
    assert "deletionTimestamp" in deleted.body["metadata"]
    assert (await client.get(f"{MAPS}/a")).status == 200
    await client.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})
    assert (await client.get(f"{MAPS}/a")).status == 404


async def test_create_in_terminating_namespace_is_forbidden(client):
    await client.delete("/api/v1/namespaces/default")
    await client.post("/api/v1/namespaces", {"metadata": {"name": "ending"}})
    await client.delete("/api/v1/namespaces/ending")
    answer = await client.post("/api/v1/namespaces/ending/configmaps", config("a"))
    assert answer.status == 403
    assert answer.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"{", 400, id="cut off"),
        pytest.param(b"[" * 100_000, 400, id="deep"),
        pytest.param(b'{"metadata":{"name":"' + b"a" * 4_000_000 + b'"}}', 413, id="too long"),
        pytest.param(b'{"metadata":{"name":5}}', 400, id="another type"),
        pytest.param(b'{"metadata":"x"}', 400, id="no object for metadata"),
        pytest.param(b'"\xff"', 400, id="not UTF-8"),
    ],
)
async def test_body_that_is_no_object_is_refused(client, body, status):
    answer = await client.post(MAPS, body)
    assert (answer.status, answer.body["kind"]) == (status, "Status")


async def test_request_without_valid_token_is_unauthorized(client):
    assert (await client.get(MAPS, Authorization="Bearer wrong")).status == 401
    assert (await client.get(MAPS, Authorization="")).status == 401


@pytest.mark.parametrize("kind", ["merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"])
async def test_namespace_finalizers_are_owned_by_their_writer(client, kind):
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    path = "/api/v1/namespaces/default?fieldManager=x"
    answer = await client.patch(path, tree | {"spec": {"finalizers": ["a-b"]}}, kind=kind)
    assert (answer.status, answer.body["spec"]) == (200, {"finalizers": ["kubernetes"]})
    managed = {one["manager"]: one["fieldsV1"] for one in answer.body["metadata"]["managedFields"]}
    assert managed["x"]["f:spec"] == {"f:finalizers": {}}


async def test_api_version_without_group_and_version_is_that_of_the_request(client):
    """Go parses "/" as no version, and the path has one."""
    body = {"apiVersion": "/", "kind": "ConfigMap", "metadata": {"name": "slash"}}
    maps = "/api/v1/namespaces/default/configmaps"
    assert (await client.post(maps, body)).body["apiVersion"] == "v1"
    assert (await client.get(f"{maps}/slash")).body["apiVersion"] == "v1"
    assert (await client.put(f"{maps}/slash", body)).body["apiVersion"] == "v1"
    assert (await client.delete(f"{maps}/slash")).status == 200
