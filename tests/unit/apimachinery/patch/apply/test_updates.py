import pytest

from mockube.apimachinery.patch.apply.fieldset import of_fields
from tests.support.server.things import EMPTY, field_manager, managers, stored, thing, times, updated
from tests.support.server.typed import named


def test_who_creates_owns_what_is_set():
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


def test_who_sets_nothing_owns_nothing():
    made = updated(EMPTY, thing(metadata={"namespace": "n", "resourceVersion": "5"}))
    assert managers(made) == {}


def test_who_changes_a_field_takes_it():
    made = updated(EMPTY, thing({"replicas": 1, "paused": True}), "creator", time="T1")
    changed = updated(made, made | {"spec": {"replicas": 2, "paused": True}}, "changer")
    assert managers(changed) == {
        "changer": {"f:spec": {"f:replicas": {}}},
        "creator": {"f:spec": {"f:paused": {}}},
    }
    assert times(changed) == {"changer": "T2", "creator": "T1"}


def test_what_is_removed_has_no_owner():
    made = updated(EMPTY, thing({"replicas": 1, "paused": True}), "creator", time="T1")
    changed = updated(made, made | {"spec": {"paused": True}}, "changer")
    assert managers(changed) == {"creator": {"f:spec": {"f:paused": {}}}}
    assert times(changed) == {"creator": "T1"}


def test_who_changes_its_own_field_keeps_the_rest():
    made = updated(EMPTY, thing({"replicas": 1, "paused": True}), time="T1")
    changed = updated(made, made | {"spec": {"replicas": 2}})
    assert managers(changed) == {"u": {"f:spec": {"f:replicas": {}}}}
    assert times(changed) == {"u": "T2"}


def test_nothing_changed():
    made = updated(EMPTY, thing({"replicas": 1}), time="T1")
    assert updated(made, made) == made


def test_a_manager_without_a_name():
    assert list(managers(updated(EMPTY, thing({"replicas": 1}), ""))) == ["unknown"]


def test_an_object_that_nobody_tracked_is_not_tracked_by_updates():
    live = stored(thing({"replicas": 1}))
    assert managers(updated(live, live | {"spec": {"replicas": 2}})) == {}


def test_the_status_is_owned_through_its_subresource():
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
def test_managers_are_reset(given):
    made = updated(EMPTY, thing({"replicas": 1}))
    assert (
        managers(updated(made, thing({"replicas": 2}, metadata={"uid": "1", "managedFields": given}))) == {}
    )


def test_managers_cannot_be_reset_through_a_subresource():
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    new = thing({"replicas": 1}, metadata={"uid": "1", "managedFields": []})
    assert list(managers(updated(made, new, by=field_manager(subresource="status")))) == ["creator"]


@pytest.mark.parametrize("given", [None, [{"manager": "x"}]], ids=["left out", "nonsense"])
def test_managers_are_kept_though_the_writer_does_not_know_of_them(given):
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    new = thing({"replicas": 1}, metadata={"uid": "1", "managedFields": given})
    assert managers(updated(made, new)) == managers(made)


def test_a_writer_may_change_managers():
    made = updated(EMPTY, thing({"replicas": 1}), "creator")
    entries = [entry | {"manager": "other"} for entry in made["metadata"]["managedFields"]]
    assert list(managers(updated(made, thing({"replicas": 1}, metadata={"managedFields": entries})))) == [
        "other"
    ]


def test_managers_that_were_nonsense_are_forgotten():
    live = stored(thing({"replicas": 1}, metadata={"managedFields": [{"manager": "x"}]}))
    assert managers(updated(live, thing({"replicas": 2}, metadata={"uid": "1"}))) == {}


def test_an_object_that_is_about_to_be_refused_has_no_managers():
    made = updated(EMPTY, thing({"replicas": 1}))
    assert managers(updated(made, thing({"containers": [{"image": "x"}]}))) == {}


def test_many_updaters_become_ancient():
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
