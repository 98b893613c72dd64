import pytest

from mockube.apimachinery.patch.apply import Conflicts
from mockube.apimachinery.patch.apply.fieldset import of_fields
from tests.support.server.things import (
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


def test_what_is_applied_to_nothing():
    made = applied(EMPTY, thing({"replicas": 1, "containers": named("c")}))
    assert made["spec"] == {"replicas": 1, "containers": named("c")}
    assert managers(made) == {
        "a*": {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}, "f:replicas": {}}}
    }


def test_applying_nothing_is_owning_nothing():
    assert managers(applied(EMPTY, thing())) == {}


def test_applying_the_same_again_changes_nothing():
    made = applied(EMPTY, thing({"replicas": 1}), time="T1")
    assert applied(made, thing({"replicas": 1})) == made


def test_what_is_not_said_any_more_goes():
    made = applied(EMPTY, thing({"replicas": 1, "paused": True}, metadata={"labels": {"a": "1"}}), time="T1")
    after = applied(made, thing({"paused": True}))
    assert after["spec"] == {"containers": None, "paused": True}
    assert bare(after) == {"name": "x"}
    assert managers(after) == {"a*": {"f:spec": {"f:paused": {}}}}
    assert times(after) == {"a": "T2"}


def test_what_somebody_else_owns_stays():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    both = applied(made, thing({"replicas": 1}), "b")
    after = applied(both, thing({}), "a")
    assert after["spec"]["replicas"] == 1
    assert managers(after) == {"a*": {"f:spec": {}}, "b*": {"f:spec": {"f:replicas": {}}}}


def test_who_owns_what_was_there_already_has_no_time():
    made = applied(EMPTY, thing({"replicas": 1}), "a", time="T1")
    assert times(applied(made, thing({"replicas": 1}), "b")) == {"a": "T1", "b": None}


def test_an_item_goes_with_what_nobody_owns_in_it():
    made = applied(EMPTY, thing({"containers": named("c", "d")}))
    defaulted = made | {
        "spec": {"containers": [{"name": "c", "image": "default"}, {"name": "d", "image": "default"}]}
    }
    after = applied(defaulted, thing({"containers": named("d")}))
    assert after["spec"] == {"containers": [{"name": "d", "image": "default"}]}


def test_an_item_goes_though_somebody_owns_a_field_of_it():
    made = applied(EMPTY, thing({"containers": named("c", "d")}))
    changed = updated(made, made | {"spec": {"containers": [{"name": "c", "image": "x"}, {"name": "d"}]}})
    assert applied(changed, thing({"containers": named("d")}))["spec"] == {"containers": named("d")}


def test_an_item_stays_that_somebody_else_applies():
    made = applied(EMPTY, thing({"containers": [{"name": "c", "image": "x"}]}), "a")
    both = applied(made, thing({"containers": named("c")}), "b")
    assert applied(both, thing({}), "a")["spec"] == {"containers": named("c")}


def test_somebody_else_owns_it():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    with pytest.raises(Conflicts) as refused:
        applied(made, thing({"replicas": 2}), "b")
    assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'


def test_several_own_it():
    made = applied(EMPTY, thing({"replicas": 1}), "z")
    both = applied(made, thing({"replicas": 1}, metadata={"labels": {"a": "1"}}), "b")
    with pytest.raises(Conflicts) as refused:
        applied(both, thing({"replicas": 2}, metadata={"labels": {"a": "2"}}), "c")
    assert [(conflict.manager.name, conflict.field) for conflict in refused.value.conflicts] == [
        ("b", ".metadata.labels.a"),
        ("b", ".spec.replicas"),
        ("z", ".spec.replicas"),
    ]


def test_force_takes_it():
    made = applied(EMPTY, thing({"replicas": 1, "paused": True}), "a")
    after = applied(made, thing({"replicas": 2}), "b", force=True)
    assert after["spec"]["replicas"] == 2
    assert managers(after) == {"a*": {"f:spec": {"f:paused": {}}}, "b*": {"f:spec": {"f:replicas": {}}}}


def test_the_same_value_is_no_conflict():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    after = applied(made, thing({"replicas": 1}), "b")
    assert managers(after) == {"a*": {"f:spec": {"f:replicas": {}}}, "b*": {"f:spec": {"f:replicas": {}}}}


def test_an_update_takes_from_who_applied():
    made = applied(EMPTY, thing({"replicas": 1}), "a")
    changed = updated(made, made | {"spec": {"replicas": 2}})
    assert managers(changed) == {"u": {"f:spec": {"f:replicas": {}}}}
    with pytest.raises(Conflicts) as refused:
        applied(changed, thing({"replicas": 1}), "a")
    assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "u" using v1: .spec.replicas'


def test_what_was_there_before_anybody_applied():
    live = stored(thing({"replicas": 1, "paused": True}))
    with pytest.raises(Conflicts, match='conflict with "before-first-apply" using v1'):
        applied(live, thing({"replicas": 2}))
    after = applied(live, thing({"replicas": 2}), force=True)
    assert managers(after) == {
        "a*": {"f:spec": {"f:replicas": {}}},
        "before-first-apply": {"f:spec": {"f:paused": {}}},
    }
    assert times(after) == {"a": "T2", "before-first-apply": "T2"}


def test_the_order_of_a_list_is_a_change_that_nobody_owns():
    made = applied(EMPTY, thing(metadata={"finalizers": ["a", "b"]}), time="T1")
    after = applied(made, thing(metadata={"finalizers": ["b", "a"]}))
    assert after["metadata"]["finalizers"] == ["b", "a"]
    assert (managers(after), times(after)) == (managers(made), {"a": "T2"})


def test_an_atomic_object_is_owned_as_a_whole():
    made = applied(EMPTY, thing({"selector": {"matchLabels": {"a": "1"}}}), "a")
    assert managers(made) == {"a*": {"f:spec": {"f:selector": {}}}}
    with pytest.raises(Conflicts, match=r"\.spec\.selector$"):
        applied(made, thing({"selector": {"matchLabels": {"b": "1"}}}), "b")


def test_what_is_reset_is_not_owned():
    main = field_manager(reset_fields={"v1": of_fields("status")})
    assert managers(applied(EMPTY, thing({"replicas": 1}, status={"phase": "x"}), by=main)) == {
        "a*": {"f:spec": {"f:replicas": {}}}
    }


def test_what_has_no_type_is_deduced():
    free = field_manager(kind=None)
    made = applied(EMPTY, thing({"list": [{"a": 1}], "map": {"a": 1}}), by=free)
    assert managers(made) == {"a*": {"f:spec": {".": {}, "f:list": {}, "f:map": {".": {}, "f:a": {}}}}}
    after = applied(made, thing({"map": {"b": 2}}), by=free)
    assert after["spec"] == {"containers": None, "map": {"b": 2}}
