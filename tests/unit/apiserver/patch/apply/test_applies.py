import pytest

from mockube.apiserver.patch.apply import Conflicts
from mockube.apiserver.patch.apply.fieldset import of_fields
from tests.support.server.managed_objects import (
    EMPTY,
    applied,
    bare,
    field_manager,
    managers,
    stored,
    thing,
    times,
    updated,
)
from tests.support.server.typed import named


def test_apply_to_empty_object_creates_and_owns_fields():
    made = applied(EMPTY, thing({"replicas": 1, "containers": named("c")}))
    assert made["spec"] == {"replicas": 1, "containers": named("c")}
    assert managers(made) == {
        "a*": {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}, "f:replicas": {}}}
    }


def test_apply_of_empty_object_owns_nothing():
    assert managers(applied(EMPTY, thing())) == {}


def test_second_identical_apply_changes_nothing():
    made = applied(EMPTY, thing({"replicas": 1}), time="T1")
    assert applied(made, thing({"replicas": 1})) == made


def test_field_absent_from_next_apply_is_removed():
    made = applied(EMPTY, thing({"replicas": 1, "paused": True}, metadata={"labels": {"a": "1"}}), time="T1")
    after = applied(made, thing({"paused": True}))
    assert after["spec"] == {"containers": None, "paused": True}
    assert bare(after) == {"name": "x"}
    assert managers(after) == {"a*": {"f:spec": {"f:paused": {}}}}
    assert times(after) == {"a": "T2"}


def test_field_owned_by_other_manager_stays():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    both = applied(made, thing({"replicas": 1}), "b")
    after = applied(both, thing({}), "a")
    assert after["spec"]["replicas"] == 1
    assert managers(after) == {"a*": {"f:spec": {}}, "b*": {"f:spec": {"f:replicas": {}}}}


def test_applier_of_existing_value_has_no_time():
    made = applied(EMPTY, thing({"replicas": 1}), "a", time="T1")
    assert times(applied(made, thing({"replicas": 1}), "b")) == {"a": "T1", "b": None}


def test_list_item_is_removed_with_unowned_fields():
    made = applied(EMPTY, thing({"containers": named("c", "d")}))
    defaulted = made | {
        "spec": {"containers": [{"name": "c", "image": "default"}, {"name": "d", "image": "default"}]}
    }
    after = applied(defaulted, thing({"containers": named("d")}))
    assert after["spec"] == {"containers": [{"name": "d", "image": "default"}]}


def test_list_item_is_removed_although_other_manager_owns_a_field():
    made = applied(EMPTY, thing({"containers": named("c", "d")}))
    changed = updated(made, made | {"spec": {"containers": [{"name": "c", "image": "x"}, {"name": "d"}]}})
    assert applied(changed, thing({"containers": named("d")}))["spec"] == {"containers": named("d")}


def test_list_item_applied_by_other_manager_stays():
    made = applied(EMPTY, thing({"containers": [{"name": "c", "image": "x"}]}), "a")
    both = applied(made, thing({"containers": named("c")}), "b")
    assert applied(both, thing({}), "a")["spec"] == {"containers": named("c")}


def test_apply_over_other_managers_value_conflicts():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    with pytest.raises(Conflicts) as refused:
        applied(made, thing({"replicas": 2}), "b")
    assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'


def test_apply_over_several_managers_reports_all_conflicts():
    made = applied(EMPTY, thing({"replicas": 1}), "z")
    both = applied(made, thing({"replicas": 1}, metadata={"labels": {"a": "1"}}), "b")
    with pytest.raises(Conflicts) as refused:
        applied(both, thing({"replicas": 2}, metadata={"labels": {"a": "2"}}), "c")
    assert [(conflict.manager.name, conflict.field) for conflict in refused.value.conflicts] == [
        ("b", ".metadata.labels.a"),
        ("b", ".spec.replicas"),
        ("z", ".spec.replicas"),
    ]


def test_force_apply_takes_ownership():
    made = applied(EMPTY, thing({"replicas": 1, "paused": True}), "a")
    after = applied(made, thing({"replicas": 2}), "b", force=True)
    assert after["spec"]["replicas"] == 2
    assert managers(after) == {"a*": {"f:spec": {"f:paused": {}}}, "b*": {"f:spec": {"f:replicas": {}}}}


def test_apply_of_same_value_is_no_conflict():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    after = applied(made, thing({"replicas": 1}), "b")
    assert managers(after) == {"a*": {"f:spec": {"f:replicas": {}}}, "b*": {"f:spec": {"f:replicas": {}}}}


def test_update_takes_ownership_from_applier():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    changed = updated(made, made | {"spec": {"replicas": 2}})
    assert managers(changed) == {"u": {"f:spec": {"f:replicas": {}}}}
    with pytest.raises(Conflicts) as refused:
        applied(changed, thing({"replicas": 1}), "a")
    assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "u" using v1: .spec.replicas'


def test_first_apply_conflicts_with_before_first_apply():
    live = stored(thing({"replicas": 1, "paused": True}))
    with pytest.raises(Conflicts, match='conflict with "before-first-apply" using v1'):
        applied(live, thing({"replicas": 2}))
    after = applied(live, thing({"replicas": 2}), force=True)
    assert managers(after) == {
        "a*": {"f:spec": {"f:replicas": {}}},
        "before-first-apply": {"f:spec": {"f:paused": {}}},
    }
    assert times(after) == {"a": "T2", "before-first-apply": "T2"}


def test_reordered_list_changes_no_owner():
    made = applied(EMPTY, thing(metadata={"finalizers": ["a", "b"]}), time="T1")
    after = applied(made, thing(metadata={"finalizers": ["b", "a"]}))
    assert after["metadata"]["finalizers"] == ["b", "a"]
    assert (managers(after), times(after)) == (managers(made), {"a": "T2"})


def test_atomic_object_has_one_owner():
    made = applied(EMPTY, thing({"selector": {"matchLabels": {"a": "1"}}}), "a")
    assert managers(made) == {"a*": {"f:spec": {"f:selector": {}}}}
    with pytest.raises(Conflicts, match=r"\.spec\.selector$"):
        applied(made, thing({"selector": {"matchLabels": {"b": "1"}}}), "b")


def test_reset_fields_are_not_owned():
    main = field_manager(reset_fields={"v1": of_fields("status")})
    assert managers(applied(EMPTY, thing({"replicas": 1}, status={"phase": "x"}), by=main)) == {
        "a*": {"f:spec": {"f:replicas": {}}}
    }


def test_fields_without_type_are_deduced():
    free = field_manager(kind=None)
    made = applied(EMPTY, thing({"list": [{"a": 1}], "map": {"a": 1}}), by=free)
    assert managers(made) == {"a*": {"f:spec": {".": {}, "f:list": {}, "f:map": {".": {}, "f:a": {}}}}}
    after = applied(made, thing({"map": {"b": 2}}), by=free)
    assert after["spec"] == {"containers": None, "map": {"b": 2}}
