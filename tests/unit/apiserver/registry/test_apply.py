"""A server-side apply: who owns what, and when another owner is in the way."""

import pytest

from tests.support.server.memory_api import CORE

CONFIG_MAPS = f"{CORE}/configmaps"
ONE = f"{CONFIG_MAPS}/a"


def config_map(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def owners(tree):
    return {
        entry["manager"]: (entry["operation"], {*entry["fieldsV1"].get("f:data", {})} - {"."})
        for entry in tree["metadata"]["managedFields"]
    }


async def test_apply_of_missing_object_creates_it_with_its_manager(api):
    answer = await api.apply(ONE, config_map(k="v"), manager="one")
    stored = await api.stored(ONE)
    assert (answer.code, stored["data"], owners(stored)) == (201, {"k": "v"}, {"one": ("Apply", {"f:k"})})


@pytest.mark.kills("apply forces always")
async def test_apply_of_field_of_another_manager_is_conflict(api):
    await api.apply(ONE, config_map(k="v"), manager="one")
    answer = await api.apply(ONE, config_map(k="w"), manager="two")
    assert answer.refusal == (409, 'Apply failed with 1 conflict: conflict with "one": .data.k')
    (cause,) = answer.body["details"]["causes"]
    assert cause == {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}
    assert (await api.stored(ONE))["data"] == {"k": "v"}


async def test_forced_apply_takes_field_from_another_manager(api):
    await api.apply(ONE, config_map(k="v", l="v"), manager="one")
    answer = await api.apply(ONE, config_map(k="w"), manager="two", force="true")
    stored = await api.stored(ONE)
    assert (answer.code, stored["data"]) == (200, {"k": "w", "l": "v"})
    assert owners(stored) == {"one": ("Apply", {"f:l"}), "two": ("Apply", {"f:k"})}


async def test_apply_of_same_value_shares_field(api):
    await api.apply(ONE, config_map(k="v"), manager="one")
    assert (await api.apply(ONE, config_map(k="v"), manager="two")).code == 200
    assert owners(await api.stored(ONE)) == {"one": ("Apply", {"f:k"}), "two": ("Apply", {"f:k"})}


async def test_field_that_manager_applies_no_more_is_removed(api):
    await api.apply(ONE, config_map(k="v", l="v"), manager="one")
    answer = await api.apply(ONE, config_map(k="v"), manager="one")
    assert (answer.code, (await api.stored(ONE))["data"]) == (200, {"k": "v"})


async def test_apply_that_changes_nothing_is_not_stored(api):
    created = await api.apply(ONE, config_map(k="v"), manager="one")
    api.registry.clock.advance(60)
    answer = await api.apply(ONE, config_map(k="v"), manager="one")
    assert answer.body == created.body


async def test_apply_without_manager_is_refused(api):
    answer = await api.patch(ONE, config_map(k="v"), kind="apply-patch+yaml")
    assert answer.code == 422
    assert "fieldManager: Required value: is required for apply patch" in answer.message
    assert await api.stored(ONE) is None


async def test_apply_with_managed_fields_is_refused(api):
    tree = config_map(k="v")
    tree["metadata"]["managedFields"] = [{"manager": "x", "operation": "Apply"}]
    answer = await api.apply(ONE, tree)
    assert answer.refusal == (400, "metadata.managedFields must be nil")
    assert await api.stored(ONE) is None


@pytest.mark.kills("object with a UID is created by update or apply")
@pytest.mark.parametrize("verb", ["apply", "update"])
async def test_object_with_uid_is_not_created_in_place_of_lost_one(api, verb):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    metadata = {"name": "l", "uid": "lost"}
    tree = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    answer = await getattr(api, verb)(path, tree)
    assert answer.code == 409
    assert await api.stored(path) is None


async def test_apply_of_another_kind_is_refused(api):
    answer = await api.apply(ONE, config_map(k="v") | {"kind": "Secret"})
    assert answer.code == 400
    assert await api.stored(ONE) is None


@pytest.mark.kills("object of another name is updated")
async def test_apply_under_another_name_is_refused(api):
    tree = config_map(k="v")
    tree["metadata"]["name"] = "b"
    assert (await api.apply(ONE, tree)).refusal == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )
    assert await api.stored(ONE) is None


async def test_apply_of_yaml_is_read(api):
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
    assert (await api.apply(ONE, text)).code == 201
    assert (await api.stored(ONE))["data"] == {"k": "v"}


async def test_invalid_result_of_apply_is_not_stored(api):
    await api.apply(ONE, config_map(k="v"))
    answer = await api.apply(ONE, config_map(**{"a b": "v"}))
    assert answer.code == 422
    assert (await api.stored(ONE))["data"] == {"k": "v"}
