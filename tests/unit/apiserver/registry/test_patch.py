"""A patch: what is stored of its result, for each type of patch."""

import pytest

from tests.support.server.custom_kinds import HOOKS_V1, define_hooks, hook
from tests.support.server.fake_admission import Interfering, registry_with
from tests.support.server.memory_api import CORE

CONFIG_MAPS = f"{CORE}/configmaps"
ONE = f"{CONFIG_MAPS}/a"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
async def created(api):
    """The config map that tests patch."""
    return (await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "old", "l": "old"}})).body


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge-patch+json", {"data": {"k": "new", "l": None}}),
        ("strategic-merge-patch+json", {"data": {"k": "new", "l": None}}),
        (
            "json-patch+json",
            [{"op": "replace", "path": "/data/k", "value": "new"}, {"op": "remove", "path": "/data/l"}],
        ),
    ],
)
async def test_patched_object_is_stored_with_its_manager(api, created, kind, patch):
    answer = await api.patch(ONE, patch, kind=kind, fieldManager="patcher")
    stored = await api.stored(ONE)
    assert (answer.code, answer.body["data"], stored["data"]) == (200, {"k": "new"}, {"k": "new"})
    owned = {entry["manager"]: entry["fieldsV1"]["f:data"] for entry in stored["metadata"]["managedFields"]}
    assert owned == {"tests": {}, "patcher": {"f:k": {}}}


async def test_strategic_patch_merges_containers_by_name(api):
    containers = [{"name": "c", "image": "x"}, {"name": "d", "image": "y"}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "z"}]}}}}
    await api.patch(f"{DEPLOYMENTS}/d", patch, kind="strategic-merge-patch+json")
    stored = (await api.stored(f"{DEPLOYMENTS}/d"))["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["image"] for each in stored} == {"c": "x", "d": "z"}


async def test_json_patch_whose_test_fails_changes_nothing(api, created):
    patch = [{"op": "test", "path": "/data/k", "value": "other"}, {"op": "remove", "path": "/data/k"}]
    answer = await api.patch(ONE, patch, kind="json-patch+json")
    assert answer.code == 422
    assert (await api.stored(ONE))["data"] == created["data"]


async def test_patch_of_missing_object_is_not_found(api):
    assert (await api.patch(ONE, {"data": {}})).refusal == (404, 'configmaps "a" not found')


async def test_patch_of_unknown_type_is_refused_with_known_ones(api, created):
    answer = await api.patch(ONE, {"data": {}}, kind="funny-patch+json")
    assert answer.code == 415
    assert "application/merge-patch+json" in answer.message


async def test_strategic_patch_of_custom_object_is_refused(api):
    await define_hooks(api, by_webhook=False)
    await api.create(HOOKS_V1, hook(size=5))
    answer = await api.patch(f"{HOOKS_V1}/a", {"spec": {"size": 6}}, kind="strategic-merge-patch+json")
    assert answer.code == 415
    assert (await api.stored(f"{HOOKS_V1}/a"))["spec"]["size"] == 5


@pytest.mark.kills("patch may change the kind")
async def test_patch_that_changes_kind_is_refused(api, created):
    answer = await api.patch(ONE, {"kind": "Secret"})
    assert answer.code == 422
    assert "converting (v1.Secret) to (core.ConfigMap): unknown conversion" in answer.message
    assert (await api.stored(ONE))["kind"] == "ConfigMap"


@pytest.mark.kills("object of another name is updated")
@pytest.mark.parametrize("kind", ["merge-patch+json", "strategic-merge-patch+json"])
async def test_patch_that_changes_name_is_refused(api, created, kind):
    answer = await api.patch(ONE, {"metadata": {"name": "b"}}, kind=kind)
    assert answer.refusal == (400, "the name of the object (b) does not match the name on the URL (a)")


@pytest.mark.kills("resourceVersion of an update is ignored")
async def test_patch_with_older_version_is_conflict(api, created):
    await api.patch(ONE, {"data": {"k": "newer"}})
    version = created["metadata"]["resourceVersion"]
    answer = await api.patch(ONE, {"metadata": {"resourceVersion": version}, "data": {"k": "new"}})
    assert answer.code == 409
    assert (await api.stored(ONE))["data"]["k"] == "newer"


async def test_two_patches_of_different_fields_are_both_stored(api, created):
    async def patch_other():
        await api.patch(ONE, {"data": {"l": "other"}})

    registry = registry_with(api, Interfering(patch_other))
    answer = await api.send(
        "PATCH", ONE, {"data": {"k": "new"}}, media_type="application/merge-patch+json", registry=registry
    )
    assert (answer.code, answer.body["data"]) == (200, {"k": "new", "l": "other"})
    assert (await api.stored(ONE))["data"] == {"k": "new", "l": "other"}


@pytest.mark.parametrize(
    ("validation", "code", "warnings"),
    [("Strict", 422, []), ("Warn", 200, ['unknown field "dataa"']), ("Ignore", 200, [])],
)
async def test_unknown_field_of_patch_is_judged_as_client_requests(api, created, validation, code, warnings):
    answer = await api.patch(ONE, {"dataa": {}, "data": {"k": "new"}}, fieldValidation=validation)
    assert (answer.code, answer.warnings) == (code, warnings)
    assert (await api.stored(ONE))["data"]["k"] == ("old" if code == 422 else "new")


async def test_patch_of_status_changes_nothing_else(api):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    patch = {"spec": {"replicas": 9}, "status": {"replicas": 1}}
    answer = await api.patch(f"{DEPLOYMENTS}/d/status", patch)
    stored = await api.stored(f"{DEPLOYMENTS}/d")
    assert (answer.code, stored["spec"]["replicas"], stored["status"]["replicas"]) == (200, 1, 1)


async def test_patch_with_force_is_refused(api, created):
    answer = await api.patch(ONE, {"data": {"k": "new"}}, force="true")
    assert answer.code == 422
    assert "force: Forbidden: may not be specified for non-apply patch" in answer.message


async def test_event_loses_managers_of_other_group(api):
    """Upstream converts no fields between the groups of Events."""
    of_core, of_events = (
        f"{group}/namespaces/default/events" for group in ("/api/v1", "/apis/events.k8s.io/v1")
    )
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "r",
    }
    await api.create(of_core, event)
    for path, version in ((of_events, "events.k8s.io/v1"), (of_core, "v1")):
        answer = await api.patch(f"{path}/e", {"metadata": {"labels": {"a": version.partition("/")[0]}}})
        entries = answer.body["metadata"]["managedFields"]
        assert [entry["apiVersion"] for entry in entries] == [version]
