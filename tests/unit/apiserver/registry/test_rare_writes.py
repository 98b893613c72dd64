"""Writes of objects that are too large, unreadable, being deleted, or whose kind disappears."""

import orjson
import pytest

from mockube.apimachinery.status import Forbidden
from mockube.apimachinery.timestamps import parse_time
from mockube.apiserver.registry.lease_renewals import renew_leases
from mockube.etcd.kv import Put
from tests.support.event_loop import until
from tests.support.server.custom_kinds import HOOKS_V1, define_hooks, hook
from tests.support.server.definitions import DEFINITIONS
from tests.support.server.fake_admission import Interfering, Refusing, registry_with
from tests.support.server.memory_api import ADMIN, ALICE, CORE, running_api

CONFIG_MAPS = f"{CORE}/configmaps"
ONE = f"{CONFIG_MAPS}/a"
DEFINITION = f"{DEFINITIONS}/hooks.versions.test"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def config_map(name="a", **metadata):
    return {"metadata": {"name": name, **metadata}}


async def test_name_of_object_that_is_being_deleted_is_not_free(api):
    await api.create(CONFIG_MAPS, config_map(finalizers=["x.io/y"]))
    await api.delete(ONE)
    answer = await api.create(CONFIG_MAPS, config_map())
    assert answer.refusal == (409, 'object is being deleted: configmaps "a" already exists')


@pytest.mark.kills("object of a kind that was deleted is stored")
async def test_object_of_definition_that_is_deleted_during_admission_is_not_found(api):
    await define_hooks(api, by_webhook=False)

    async def delete_definition():
        await api.delete(DEFINITION)
        await until(lambda: ("versions.test", "v1", "hooks") not in api.catalog.rows)

    registry = registry_with(api, Interfering(delete_definition))
    answer = await api.send("POST", HOOKS_V1, hook(size=5), registry=registry)
    assert answer.refusal == (404, 'hooks.versions.test "a" not found')


@pytest.mark.kills("object of a kind that was deleted is stored")
async def test_dry_run_of_object_of_definition_that_is_deleted_by_mutating_admission_is_not_found(api):
    """A dry run stores nothing, so that the check before the store does not refuse it."""
    await define_hooks(api, by_webhook=False)

    async def delete_definition():
        await api.delete(DEFINITION)
        await until(lambda: ("versions.test", "v1", "hooks") not in api.catalog.rows)

    registry = registry_with(api, Interfering(delete_definition, phase="mutate"))
    answer = await api.send("POST", HOOKS_V1, hook(size=5), registry=registry, dryRun="All")
    assert answer.refusal == (404, 'hooks.versions.test "a" not found')


async def test_object_of_definition_that_is_being_deleted_is_not_created(api):
    await define_hooks(api, by_webhook=False)
    tree = hook(size=5)
    tree["metadata"]["finalizers"] = ["x.io/y"]
    await api.create(HOOKS_V1, tree)
    await api.delete(DEFINITION)
    await api.settle()
    answer = await api.create(HOOKS_V1, hook(name="b"))
    assert answer.refusal == (
        403,
        'hooks.versions.test "b" is forbidden: create not allowed while custom resource definition is terminating',
    )
    assert await api.stored(f"{HOOKS_V1}/b") is None


async def test_definition_without_objects_is_removed_with_its_kind(api):
    await define_hooks(api, by_webhook=False)
    await api.delete(DEFINITION)
    await until(lambda: ("versions.test", "v1", "hooks") not in api.catalog.rows)
    assert await api.stored(DEFINITION) is None


async def test_revision_keeps_its_data_as_it_was_sent(api):
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    body = b'{"metadata": {"name": "r"}, "revision": 1, "data": {"b": 1.50, "a": null}}'
    assert (await api.create(path, body)).code == 201
    await api.patch(f"{path}/r", {"metadata": {"labels": {"x": "y"}}})
    assert (await api.stored(f"{path}/r"))["data"] == {"b": 1.5, "a": None}
    answer = await api.patch(f"{path}/r", {"data": {"b": 2}})
    assert answer.code == 422
    assert answer.message.endswith("field is immutable")


# --- objects that cannot be read


async def store_text(api, name, text):
    key = api.registry.layout.object(api.catalog.rows["", "v1", "configmaps"], "default", name)
    await api.registry.kv.put(Put(key=key, value=text))


async def test_unreadable_object_is_not_changed(api):
    await store_text(api, "a", b"not an object")
    answer = await api.update(ONE, config_map())
    assert answer.code == 500
    assert answer.message.startswith("Internal error occurred: StorageError: corrupt object, Code: 7, Key: ")


async def test_unreadable_object_is_deleted_with_warning(api):
    await store_text(api, "a", b"not an object")
    answer = await api.delete(ONE)
    assert (answer.code, answer.body["status"]) == (200, "Success")
    assert answer.warnings == [
        "the object could not be read: it is deleted at once, its finalizers are ignored"
    ]
    assert (await api.get(ONE)).code == 404


async def test_unreadable_object_with_uid_of_client_is_not_deleted(api):
    await store_text(api, "a", b"not an object")
    assert (await api.delete(ONE, {"preconditions": {"uid": "u"}})).code == 500
    assert (await api.get(ONE)).code == 500


async def test_collection_is_deleted_with_its_unreadable_objects(api):
    await api.create(CONFIG_MAPS, config_map())
    await store_text(api, "b", b"not an object")
    await api.settle()
    answer = await api.delete(CONFIG_MAPS)
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a"]
    assert [(await api.get(f"{CONFIG_MAPS}/{name}")).code for name in "ab"] == [404, 404]


@pytest.mark.kills("collection is deleted with every unreadable object")
async def test_unreadable_object_stays_when_collection_is_deleted_by_selector(api):
    await api.create(CONFIG_MAPS, config_map(labels={"x": "1"}))
    await store_text(api, "b", b"not an object")
    await api.settle()
    answer = await api.delete(f"{CONFIG_MAPS}?labelSelector=x%3D1")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a"]
    assert [(await api.get(f"{CONFIG_MAPS}/{name}")).code for name in "ab"] == [404, 500]


@pytest.mark.kills("dry run of a deletion is stored")
async def test_dry_run_of_delete_collection_keeps_readable_and_unreadable_objects(api):
    await api.create(CONFIG_MAPS, config_map())
    await store_text(api, "b", b"not an object")
    await api.settle()
    assert (await api.delete(CONFIG_MAPS, dryRun="All")).code == 200
    assert [(await api.get(f"{CONFIG_MAPS}/{name}")).code for name in "ab"] == [200, 500]


@pytest.mark.kills("deletion of an unreadable object is not admitted")
async def test_unreadable_object_whose_deletion_plugin_refuses_stays(api):
    await store_text(api, "a", b"not an object")
    answer = await api.send("DELETE", ONE, registry=registry_with(api, Refusing()))
    assert answer.refusal == (403, 'configmaps "a" is forbidden: no such writes today')
    assert (await api.get(ONE)).code == 500


async def test_object_of_collection_that_is_deleted_meanwhile_is_skipped(api):
    for name in "ab":
        await api.create(CONFIG_MAPS, config_map(name))
    await api.settle()

    async def delete_second():
        await api.delete(f"{CONFIG_MAPS}/b")

    answer = await api.send("DELETE", CONFIG_MAPS, registry=registry_with(api, Interfering(delete_second)))
    assert answer.code == 200
    assert [await api.stored(f"{CONFIG_MAPS}/{name}") for name in "ab"] == [None, None]


async def test_object_that_disappears_during_update_is_not_found(api):
    await api.create(CONFIG_MAPS, config_map())

    async def delete():
        await api.delete(ONE)

    changed = config_map() | {"data": {"k": "new"}}
    answer = await api.send("PUT", ONE, changed, registry=registry_with(api, Interfering(delete)))
    assert answer.refusal == (404, 'configmaps "a" not found')
    assert await api.stored(ONE) is None


@pytest.mark.kills("large object keeps its managers")
async def test_object_that_is_too_large_for_store_loses_its_managers_first(api):
    data = {f"{number:0253}": "x" for number in range(3_100)}
    body = orjson.dumps(config_map() | {"data": data})
    answer = await api.create(CONFIG_MAPS, body)
    assert answer.code == 201, answer.message
    assert "managedFields" not in (await api.stored(ONE))["metadata"]


# --- renewals of Leases


def lease(name, holder):
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 40, "renewTime": "2030-01-01T00:00:00.000000Z"}
    return {"metadata": {"name": name}, "spec": spec}


async def make_leases(api):
    await api.create_all(
        ("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}}),
        (LEASES, lease("n1", "n1")),
        (LEASES, lease("n2", "another")),
    )


async def test_renewal_changes_time_of_leases_that_their_nodes_hold(api):
    await make_leases(api)
    time = parse_time("2030-01-01T00:00:10Z")
    others = await renew_leases(
        api.registry, ["n1", "n2", "n3"], time, user=ADMIN, user_agent="tests/1", audit_id="a"
    )
    assert others == ["n2", "n3"]
    times = [(await api.stored(f"{LEASES}/{name}"))["spec"]["renewTime"] for name in ("n1", "n2")]
    assert times == ["2030-01-01T00:00:10.000000Z", "2030-01-01T00:00:00.000000Z"]


@pytest.mark.kills("authorization allows every second check")
async def test_renewal_needs_right_to_patch_leases():
    async with running_api(modes=("RBAC",)) as api:
        await make_leases(api)
        time = parse_time("2030-01-01T00:00:10Z")
        with pytest.raises(Forbidden, match='User "alice" cannot patch resource "leases"'):
            await renew_leases(api.registry, ["n1"], time, user=ALICE, user_agent="tests/1", audit_id="a")
        assert (await api.stored(f"{LEASES}/n1"))["spec"]["renewTime"] == "2030-01-01T00:00:00.000000Z"
