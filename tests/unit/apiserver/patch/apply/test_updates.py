import pytest
from msgspec.structs import replace

from mockube.apiserver.patch.apply.fieldset import of_fields
from tests.support.server.managed_objects import (
    EMPTY,
    FIELDS,
    field_manager,
    managers,
    stored,
    thing,
    times,
    updated,
)
from tests.support.server.typed import named


def test_creator_owns_fields_it_sets():
    made = updated(
        EMPTY, EMPTY | thing({"replicas": 1, "containers": named("c")}, metadata={"labels": {"a": "b"}})
    )
    assert managers(made) == {
        "u": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}, "f:replicas": {}},
        }
    }
    assert list(made["metadata"]["managedFields"][0]) == [
        "manager",
        "operation",
        "apiVersion",
        "time",
        "fieldsType",
        "fieldsV1",
    ]


def test_creator_of_object_without_fields_owns_nothing():
    made = updated(EMPTY, thing(metadata={"namespace": "n", "resourceVersion": "5"}))
    assert managers(made) == {}


def test_updater_owns_field_it_changes():
    made = updated(EMPTY, thing({"replicas": 1, "paused": True}), "creator", time="T1")
    changed = updated(made, made | {"spec": {"replicas": 2, "paused": True}}, "changer")
    assert managers(changed) == {
        "changer": {"f:spec": {"f:replicas": {}}},
        "creator": {"f:spec": {"f:paused": {}}},
    }
    assert times(changed) == {"changer": "T2", "creator": "T1"}


def test_removed_field_has_no_owner():
    made = updated(EMPTY, thing({"replicas": 1, "paused": True}), "creator", time="T1")
    changed = updated(made, made | {"spec": {"paused": True}}, "changer")
    assert managers(changed) == {"creator": {"f:spec": {"f:paused": {}}}}
    assert times(changed) == {"creator": "T1"}


def test_update_of_own_field_renews_time():
    made = updated(EMPTY, thing({"replicas": 1, "paused": True}), time="T1")
    changed = updated(made, made | {"spec": {"replicas": 2}})
    assert managers(changed) == {"u": {"f:spec": {"f:replicas": {}}}}
    assert times(changed) == {"u": "T2"}


def test_update_without_change_keeps_managers():
    made = updated(EMPTY, thing({"replicas": 1}), time="T1")
    assert updated(made, made) == made


def test_update_with_empty_manager_name_is_owned_by_unknown():
    assert list(managers(updated(EMPTY, thing({"replicas": 1}), ""))) == ["unknown"]


def test_update_of_untracked_object_adds_no_managers():
    live = stored(thing({"replicas": 1}))
    assert managers(updated(live, live | {"spec": {"replicas": 2}})) == {}


def test_status_subresource_owns_status():
    status = field_manager(subresource="status", reset_fields={"v1": of_fields("spec")})
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    changed = updated(
        made, made | {"status": {"phase": "Running"}, "spec": {"replicas": 9}}, "kubelet", by=status
    )
    assert managers(changed) == {
        "creator": {"f:spec": {"f:replicas": {}}},
        "kubelet": {"f:status": {".": {}, "f:phase": {}}},
    }
    assert [entry.get("subresource") for entry in changed["metadata"]["managedFields"]] == [None, "status"]


@pytest.mark.parametrize("given", [[], [{}]], ids=["an empty list", "an empty entry"])
def test_managers_are_reset_by_empty_list(given):
    made = updated(EMPTY, thing({"replicas": 1}))
    assert (
        managers(updated(made, thing({"replicas": 2}, metadata={"uid": "1", "managedFields": given}))) == {}
    )


def test_managers_cannot_be_reset_through_subresource():
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    new = thing({"replicas": 1}, metadata={"uid": "1", "managedFields": []})
    assert list(managers(updated(made, new, by=field_manager(subresource="status")))) == ["creator"]


@pytest.mark.parametrize("given", [None, [{"manager": "x"}]], ids=["left out", "nonsense"])
def test_update_without_managed_fields_keeps_managers(given):
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    new = thing({"replicas": 1}, metadata={"uid": "1", "managedFields": given})
    assert managers(updated(made, new)) == managers(made)


def test_update_may_change_managed_fields():
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    entries = [entry | {"manager": "other"} for entry in made["metadata"]["managedFields"]]
    assert list(managers(updated(made, thing({"replicas": 1}, metadata={"managedFields": entries})))) == [
        "other"
    ]


def test_malformed_live_managers_are_dropped_by_update():
    live = stored(thing({"replicas": 1}, metadata={"managedFields": [{"manager": "x"}]}))
    assert managers(updated(live, thing({"replicas": 2}, metadata={"uid": "1"}))) == {}


@pytest.mark.parametrize("keeps_managers", [True, False])
def test_untypable_update_keeps_managers_since_1_37(keeps_managers):
    made = updated(EMPTY, thing({"replicas": 1}))
    fields = replace(FIELDS, keeps_managers=keeps_managers)
    new = fields.update(made, thing({"containers": [{"image": "x"}]}), manager="v", time="T3")
    assert new["metadata"].get("managedFields") == (
        made["metadata"]["managedFields"] if keeps_managers else None
    )


def test_untypable_creation_has_no_managers():
    assert managers(updated(EMPTY, thing({"containers": [{"image": "x"}]}))) == {}


def test_many_updaters_are_merged_into_ancient_changes():
    live = EMPTY
    for number in range(12):
        name = f"l{number}"
        labels = live["metadata"].get("labels", {}) | {name: ""}
        live = updated(
            live, EMPTY | {"metadata": live["metadata"] | {"labels": labels}}, name, time=f"T{number:02}"
        )
    assert len(managers(live)) == 10
    assert managers(live)["ancient-changes"] == {
        "f:metadata": {"f:labels": {".": {}, "f:l0": {}, "f:l1": {}, "f:l2": {}}}
    }
