"""A stored custom object of another kind or version is an error for that object only."""

import orjson
import pytest

from mockube.etcd.kv import Put
from tests.support.server.apiserver import running

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/e.com/v1/namespaces/default/widgets"
WRONG = {
    "another kind": {"kind": "Gadget"},
    "another group": {"apiVersion": "other.com/v1"},
    "a version that is not there": {"apiVersion": "e.com/v9"},
    "a built-in kind": {"kind": "ConfigMap", "apiVersion": "v1"},
    "no version": {"apiVersion": "a/b/c"},
}
SHAPES = {
    "a list": [1], "a text": "x", "null": None, "a number": 1.5, "a text below": {"sub": "x"}, "an object for a list": {"items": {"k": 1}},
    "items that are none": {"items": [1, "a", None]}, "items without keys": {"items": [{"v": 1}, {"k": {}}]}, "large": {"replicas": 1e30},
}  # fmt: skip


def definition(*versions, kind="Widget", storage="v1"):
    items = {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string", "default": "d"}}},
    }  # fmt: skip
    sub = {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}}
    spec = {"type": "object", "properties": {"replicas": {"type": "integer"}, "sub": sub, "items": items}}
    schema = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    }
    names = {"plural": "widgets", "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com", "scope": "Namespaced", "names": names,
            "versions": [
                {
                    "name": name, "served": True, "storage": name == storage, "schema": schema,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "R", "type": "integer", "jsonPath": ".spec.replicas"}],
                }
                for name in versions
            ],
        },
    }  # fmt: skip


@pytest.fixture
async def client():
    async with running() as client:
        yield client


async def write(client, name, **fields):
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": {"a": "b"}}
    tree = {"kind": "Widget", "apiVersion": "e.com/v1", "metadata": metadata} | fields
    backend = client.server.registry
    put = Put(key=f"/registry/e.com/widgets/default/{name}".encode(), value=orjson.dumps(tree))
    await backend.watch_cache.wait_reached((await backend.kv.put(put)).revision)


async def define(client, *versions, path=WIDGETS, **fields):
    answer = await client.post(DEFINITIONS, definition(*versions, **fields))
    assert answer.status == 201, answer.body
    while (await client.get(path)).status != 200:
        pass


async def listed_versions(client, path=WIDGETS):
    answer = await client.get(path)
    assert answer.status == 200, answer.body
    return {item["metadata"]["name"]: item["apiVersion"] for item in answer.body["items"]}


@pytest.mark.parametrize("is_before", [True, False], ids=["before its definition", "after it"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_object_of_wrong_kind_affects_itself_only(client, wrong, is_before):
    if is_before:
        await write(client, "bad", **wrong)
        await write(client, "good")
    await define(client, "v1")
    if not is_before:
        await write(client, "bad", **wrong)
        await write(client, "good")
    for query in ("", "?labelSelector=a%3Db", "?limit=1", "?resourceVersion=0"):
        assert await listed_versions(client, WIDGETS + query) == {"good": "e.com/v1"}
    for answer in (await client.get(f"{WIDGETS}/bad"), await client.patch(f"{WIDGETS}/bad", {"spec": {}})):
        assert answer.status == 500
        assert "corrupt object" in answer.body["message"]
    assert (await client.delete(f"{WIDGETS}/bad")).status == 200
    assert (await client.get(f"{WIDGETS}/bad")).status == 404
    assert (await client.get(f"{WIDGETS}/good")).status == 200


@pytest.mark.parametrize("spec", SHAPES.values(), ids=SHAPES)
async def test_fields_of_wrong_type_are_returned_as_stored(client, spec):
    """As kube-apiserver, which validates only the metadata of a stored custom object."""
    await write(client, "odd", spec=spec)
    await define(client, "v1")
    applied = {"kind": "Widget", "apiVersion": "e.com/v1", "spec": {"items": [{"k": "a"}]}}
    answers = [
        await client.get(f"{WIDGETS}/odd"),
        await client.get(WIDGETS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        await client.patch(f"{WIDGETS}/odd", {"metadata": {"labels": {"c": "d"}}}),
        await client.patch(f"{WIDGETS}/odd?fieldManager=m&force=true", applied, kind="apply-patch+yaml"),
        await client.delete(f"{WIDGETS}/odd"),
    ]
    assert [one for one in answers if b"a fault of the server" in one.data] == []
    assert answers[-1].status == 200


async def test_object_of_removed_version_is_not_listed(client):
    await define(client, "v1", "v9")
    await write(client, "one", apiVersion="e.com/v9")
    version = (await client.get(WIDGETS)).body["metadata"]["resourceVersion"]
    async with client.watch(f"{WIDGETS}?watch=1&resourceVersion={version}") as events:
        await client.patch(f"{DEFINITIONS}/widgets.e.com", {"spec": definition("v1")["spec"]})
        assert [event async for event in events] == []
    assert await listed_versions(client) == {}
    assert (await client.get(f"{WIDGETS}/one")).status == 500


async def test_added_version_makes_objects_readable(client):
    await write(client, "one", apiVersion="e.com/v9")
    await define(client, "v1")
    assert await listed_versions(client) == {}
    answer = await client.patch(f"{DEFINITIONS}/widgets.e.com", {"spec": definition("v1", "v9")["spec"]})
    assert answer.status == 200
    while await listed_versions(client) != {"one": "e.com/v1"}:
        pass
    assert (await client.get(f"{WIDGETS}/one")).body["apiVersion"] == "e.com/v1"


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
async def test_objects_of_all_versions_are_served_in_requested_one(client, is_before):
    if is_before:
        await write(client, "one", apiVersion="e.com/v1")
        await write(client, "two", apiVersion="e.com/v2")
    await define(client, "v1", "v2")
    if not is_before:
        await write(client, "one", apiVersion="e.com/v1")
        await write(client, "two", apiVersion="e.com/v2")
    other = WIDGETS.replace("v1", "v2")
    for storage in ("v1", "v2"):
        changed = definition("v1", "v2", storage=storage)["spec"]
        assert (await client.patch(f"{DEFINITIONS}/widgets.e.com", {"spec": changed})).status == 200
        for path, version in ((WIDGETS, "e.com/v1"), (other, "e.com/v2")):
            while set((await listed_versions(client, path)).values()) != {version}:
                pass
            for name in ("one", "two"):
                assert (await client.get(f"{path}/{name}")).body["apiVersion"] == version
