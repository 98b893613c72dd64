"""Versions of an object from Changes, and which of them set a field."""

from types import SimpleNamespace
from urllib.parse import urlencode

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Expired
from mockube.client.resources import Key
from mockube.history.blame import origins
from mockube.history.field_values import ABSENT
from mockube.history.versions import read_versions

RESOURCE = SimpleNamespace(
    group="apps",
    version="v1",
    plural="deployments",
    kind="Deployment",
    api_version="apps/v1",
    group_resource=GroupResource("apps", "deployments"),
)
FOUND = SimpleNamespace(resource=RESOURCE)
KEY = Key("default", "web")
HEAD = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}}


class FakeClient:
    """Returns Changes, and an object at revisions."""

    def __init__(self, changes, objects=None):
        self.changes, self.objects, self.paths = changes, objects or {}, []

    async def list(self, resource, *, field_selector):
        self.paths.append(f"{resource.plural}?{urlencode({'fieldSelector': field_selector})}")
        return SimpleNamespace(items=[{"spec": spec} for spec in self.changes])

    async def raw(self, _method, path):
        self.paths.append(path)
        revision = int(path.split("resourceVersion=")[1].split("&")[0])
        if revision not in self.objects:
            raise Expired("too old")
        tree = self.objects[revision]
        return {"items": [] if tree is None else [tree]}


def change(revision, type_, patch, **others):
    author = {"user": f"u{revision}", "verb": "update"}
    return {"revision": revision, "type": type_, "patch": patch, "author": author, **others}


def added(revision, **spec):
    return change(revision, "ADDED", [{"op": "add", "path": "", "value": {**HEAD, "spec": spec}}])


def replaced(revision, path, value):
    return change(revision, "MODIFIED", [{"op": "replace", "path": path, "value": value}])


async def versions_of(client):
    return await read_versions(client, FOUND, KEY)


async def test_versions_follow_from_patches_alone():
    removal = change(5, "MODIFIED", [{"op": "remove", "path": "/spec/b"}])
    client = FakeClient(
        [
            added(3, a=1, b=2),
            replaced(4, "/spec/a", 9),
            removal,
            change(6, "DELETED", [{"op": "remove", "path": ""}]),
        ]
    )
    versions = await versions_of(client)
    assert [version.after and version.after["spec"] for version in versions] == [
        {"a": 1, "b": 2},
        {"a": 9, "b": 2},
        {"a": 9},
        None,
    ]
    assert [version.before for version in versions] == [None, *(version.after for version in versions[:-1])]
    assert len(client.paths) == 1
    assert "resource%3Ddeployments.apps%2Cnamespace%3Ddefault%2Cname%3Dweb" in client.paths[0]


async def test_object_that_is_older_than_the_history_is_read_at_the_revision_before():
    old = {"metadata": {"name": "web", "managedFields": [], "resourceVersion": "2"}, "spec": {"a": 1}}
    versions = await versions_of(FakeClient([replaced(4, "/spec/a", 2)], {3: old}))
    assert (versions[0].before, versions[0].after["spec"]) == ({**HEAD, "spec": {"a": 1}}, {"a": 2})


async def test_versions_that_cannot_be_read_have_the_reason():
    omitted = change(5, "MODIFIED", None, patchOmitted="it is large")
    del omitted["patch"]
    client = FakeClient(
        [replaced(4, "/spec/a", 2), omitted, replaced(6, "/spec/a", 4)], {5: {**HEAD, "spec": {"a": 3}}}
    )
    versions = await versions_of(client)
    reason = "the history begins later"
    assert [version.problem for version in versions] == [reason, reason, ""]
    assert [str(each) for each in versions[2].changes()] == ["spec.a: 3 -> 4"]


async def test_secrets_are_masked_in_objects_that_are_read():
    resource = SimpleNamespace(
        group="",
        version="v1",
        plural="secrets",
        kind="Secret",
        api_version="v1",
        group_resource=GroupResource("", "secrets"),
    )
    secret = {"metadata": {"name": "s"}, "data": {"password": "cGFzcw=="}}
    masked = change(4, "MODIFIED", [{"op": "add", "path": "/data/other", "value": "**********"}])
    client = FakeClient([masked], {3: secret})
    (version,) = await read_versions(client, SimpleNamespace(resource=resource), KEY)
    assert version.before["data"] == {"password": "**********"}
    assert version.after["data"] == {"password": "**********", "other": "**********"}


async def test_each_field_belongs_to_the_write_that_set_its_value():
    client = FakeClient([added(3, a=1, b=2), replaced(4, "/spec/a", 9), replaced(5, "/spec/a", 9)])
    found = {origin.path: origin for origin in origins(await versions_of(client))}
    assert (found["spec.a"].version.revision, found["spec.a"].before) == (4, 1)
    assert (found["spec.b"].version.revision, found["spec.b"].before) == (3, ABSENT)


async def test_fields_that_are_older_than_the_history_have_no_write():
    old = {"metadata": {"name": "web"}, "spec": {"a": 1, "b": 2}}
    found = {
        origin.path: origin
        for origin in origins(await versions_of(FakeClient([replaced(4, "/spec/a", 2)], {3: old})))
    }
    assert (found["spec.a"].version.revision, found["spec.b"].version) == (4, None)


async def test_removed_field_belongs_to_the_write_that_removed_it_until_it_is_set_again():
    removed = change(4, "MODIFIED", [{"op": "remove", "path": "/spec/b"}])
    found = {
        origin.path: origin
        for origin in origins(await versions_of(FakeClient([added(3, a=1, b=2), removed])))
    }
    assert (found["spec.b"].version.revision, found["spec.b"].before) == (4, 2)
    assert found["spec.b"].value is ABSENT
    parts = change(5, "MODIFIED", [{"op": "add", "path": "/spec/b", "value": {"c": 1}}])
    again = [*origins(await versions_of(FakeClient([added(3, a=1, b=2), removed, parts])))]
    assert [each.path for each in again if each.path.startswith("spec.b")] == ["spec.b.c"]


async def test_object_that_was_created_again_has_the_new_authors_alone():
    client = FakeClient([added(3, a=1), change(4, "DELETED", [{"op": "remove", "path": ""}]), added(5, a=1)])
    assert {origin.version.revision for origin in origins(await versions_of(client))} == {5}
    deleted = FakeClient([added(3, a=1), change(4, "DELETED", [{"op": "remove", "path": ""}])])
    assert {origin.version.revision for origin in origins(await versions_of(deleted))} == {3}
    assert [*origins([])] == []
