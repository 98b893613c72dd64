"""Custom objects that were stored in another version than the present one: responses of kube-apiserver 1.36.3."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, define, definition, version

TEXT = {"type": "string"}
COMMON = {"a": TEXT}


def _schema(*, preserves=False, **properties):
    spec = {"type": "object", "properties": COMMON | properties}
    if preserves:
        spec["x-kubernetes-preserve-unknown-fields"] = True
    status = {"type": "object", "properties": {"s": TEXT}}
    return {"type": "object", "properties": {"spec": spec, "status": status}}


SCHEMAS = {
    "v1": _schema(old=TEXT | {"default": "one"}),
    "v2": _schema(new=TEXT | {"default": "two"}),
}


def _versions(storage, schemas, with_status=()):
    return [
        version(
            name,
            schema=schema,
            storage=name == storage,
            **({"subresources": {"status": {}}} if name in with_status else {}),
        )
        for name, schema in schemas.items()
    ]


def things(api_version):
    return f"/apis/{GROUP}/{api_version}/namespaces/default/things"


def thing(api_version, spec, **others):
    head = {"apiVersion": f"{GROUP}/{api_version}", "kind": "Thing", "metadata": {"name": "t"}}
    return head | {"spec": spec} | others


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def define_things(client, storage="v1", schemas=SCHEMAS, with_status=()):
    versions = _versions(storage, schemas, with_status)
    await define(client, definition(*versions, plural="things", kind="Thing"))


async def store_in(client, storage, schemas=SCHEMAS):
    """Change the storage version, and wait until the change is in effect: a new version is served then."""
    marker = version("marker", storage=False)
    path = f"{DEFINITIONS}/things.{GROUP}"
    await client.patch(path, {"spec": {"versions": [*_versions(storage, schemas), marker]}})
    while (await client.get(things("marker"))).status != 200:
        pass


async def specs(client):
    """Return the spec of the object as it is read, listed and watched in each version."""
    found = {}
    for name in SCHEMAS:
        one, listed = await client.get(f"{things(name)}/t"), await client.get(things(name))
        async with client.watch(f"{things(name)}?watch=1") as events:
            watched = (await anext(events))["object"]
        bodies = (one.body, *listed.body["items"], watched)
        assert {body["apiVersion"] for body in bodies} == {f"{GROUP}/{name}"}
        found[name], *others = (body["spec"] for body in bodies)
        assert others == [found[name]] * 2
    return found


async def test_object_keeps_fields_and_defaults_of_the_version_in_which_it_was_stored(client):
    await define_things(client)
    await client.post(things("v1"), thing("v1", {"a": "x"}))
    await store_in(client, "v2")
    assert await specs(client) == {"v1": {"a": "x", "old": "one"}, "v2": {"a": "x"}}


async def test_write_that_changes_nothing_stores_object_in_the_present_version(client):
    await define_things(client)
    created = await client.post(things("v1"), thing("v1", {"a": "x", "old": "o"}))
    await store_in(client, "v2")
    patched = await client.patch(f"{things('v1')}/t", {"metadata": {"labels": None}})
    assert patched.body["spec"] == {"a": "x"}
    assert patched.body["metadata"]["resourceVersion"] != created.body["metadata"]["resourceVersion"]
    assert await specs(client) == {"v1": {"a": "x"}, "v2": {"a": "x", "new": "two"}}


async def test_mark_of_deletion_stores_object_in_the_present_version(client):
    await define_things(client)
    body = thing("v1", {"a": "x", "old": "o"})
    body["metadata"]["finalizers"] = ["example.com/f"]
    await client.post(things("v1"), body)
    await store_in(client, "v2")
    deleted = await client.delete(f"{things('v1')}/t")
    assert deleted.body["metadata"]["deletionTimestamp"]
    assert deleted.body["spec"] == {"a": "x"}
    assert (await client.get(f"{things('v2')}/t")).body["spec"] == {"a": "x", "new": "two"}


async def test_deleted_object_is_returned_in_the_requested_version(client):
    await define_things(client)
    await client.post(things("v1"), thing("v1", {"a": "x"}))
    await store_in(client, "v2")
    deleted = await client.delete(f"{things('v2')}/t")
    assert deleted.body["details"]["name"] == "t"
    assert (await client.get(f"{things('v1')}/t")).status == 404


async def test_object_of_a_version_that_is_not_defined_any_more_is_omitted(client):
    await define_things(client)
    await client.post(things("v1"), thing("v1", {"a": "x"}))
    await store_in(client, "v2")
    path = f"{DEFINITIONS}/things.{GROUP}"
    await client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})
    await client.patch(path, {"spec": {"versions": _versions("v2", {"v2": SCHEMAS["v2"]})}})
    while (await client.get(things("v2"))).body["items"]:
        pass


@pytest.mark.parametrize("with_status", ["v1", "v2"])
async def test_status_is_kept_by_a_version_without_the_subresource(client, with_status):
    await define_things(client, with_status={with_status})
    for name in SCHEMAS:
        created = await client.post(things(name), thing(name, {"a": "x"}, status={"s": "y"}))
        assert created.status == 201
        assert created.body.get("status") == (None if name == with_status else {"s": "y"})
        owned = created.body["metadata"]["managedFields"][0]["fieldsV1"]
        assert ("f:status" in owned) is (name != with_status)
        await client.delete(f"{things(name)}/t")


async def test_fields_within_an_object_that_preserves_unknown_fields_can_be_applied(client):
    inner = {"type": "object", "properties": {"b": TEXT}}
    await define_things(client, schemas={"v1": _schema(preserves=True, inner=inner)})
    applied = thing("v1", {"inner": {"b": "x", "c": "y"}})
    answer = await client.patch(f"{things('v1')}/t?fieldManager=m", applied, kind="apply-patch+yaml")
    assert answer.status == 201
    assert answer.body["spec"] == {"inner": {"b": "x"}}
