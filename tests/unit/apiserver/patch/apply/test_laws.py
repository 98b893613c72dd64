import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.patch.apply import Conflicts, fieldsv1
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.compare import compare
from mockube.apiserver.patch.apply.fieldset import difference, union
from mockube.apiserver.patch.apply.managers import NEVER_OWNED
from mockube.apiserver.patch.apply.merge import merge
from mockube.apiserver.patch.apply.typed_fields import all_fields, applied_fields, remove
from tests.support.server.fields import field_paths
from tests.support.server.managed_objects import EMPTY, applied, managers, thing, updated
from tests.support.server.typed import THING

pytestmark = pytest.mark.thorough

WORDS = st.sampled_from("abc")
ENV = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"value": WORDS}),
    unique_by=lambda item: item["name"],
    min_size=1,
    max_size=2,
)
# An empty list has no field path, so upstream removes the parent object because no manager owns it.
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"image": WORDS, "command": st.lists(WORDS, max_size=2), "env": ENV}),
    unique_by=lambda item: item["name"],
    min_size=1,
    max_size=3,
)  # fmt: skip
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 3),
        "nodeSelector": st.dictionaries(WORDS, WORDS, max_size=2),
        "strategy": st.fixed_dictionaries({}, optional={"type": WORDS, "rolling": st.dictionaries(WORDS, WORDS, max_size=2)}),
        "containers": CONTAINERS,
        "free": st.recursive(WORDS, lambda inner: st.dictionaries(WORDS, inner, max_size=2), max_leaves=4),
    },
)  # fmt: skip
THINGS = st.fixed_dictionaries({}, optional={"spec": SPECS, "metadata": st.fixed_dictionaries({"finalizers": st.lists(WORDS, unique=True, min_size=1, max_size=3)})})  # fmt: skip
ATOM = atom_of_type(THING)


@given(live=THINGS, applied=THINGS)
def test_merged_object_contains_applied_configuration(live, applied):
    merged = merge(ATOM, live, applied)
    assert merge(ATOM, merged, applied) is merged
    assert not compare(ATOM, merge(ATOM, live, applied), merged).changed_fields
    assert not difference(
        applied_fields(ATOM, applied), union(all_fields(ATOM, merged), applied_fields(ATOM, merged))
    )


@given(before=THINGS, after=THINGS)
def test_removed_fields_are_added_in_reverse_comparison(before, after):
    there, back = compare(ATOM, before, after), compare(ATOM, after, before)
    assert field_paths(there.removed) == field_paths(back.added)
    assert field_paths(there.modified) == field_paths(back.modified)
    assert not any(compare(ATOM, before, orjson.loads(orjson.dumps(before))))


@given(thing=THINGS)
def test_comparison_with_empty_object_adds_all_fields(thing):
    assert field_paths(compare(ATOM, {}, thing).added) == field_paths(compare(ATOM, thing, {}).removed)
    assert remove(ATOM, thing, compare(ATOM, {}, thing).added) is None


# --- several managers


def object_of_parts(parts):
    return thing(parts.get("spec"), metadata=parts.get("metadata", {}))


SCENARIOS = st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), THINGS), min_size=1, max_size=5)
"""A sequence of applies and updates by several managers."""


def live_object_after(scenario):
    live = EMPTY
    for applies, manager, parts in scenario:
        if applies:
            live = applied(live, object_of_parts(parts), manager, force=True)
        else:
            new = object_of_parts(parts)
            metadata = {key: value for key, value in live["metadata"].items() if key == "managedFields"}
            live = updated(live, new | {"metadata": new["metadata"] | metadata}, manager)
    return live


@given(scenario=SCENARIOS, config=THINGS)
def test_second_apply_changes_nothing(scenario, config):
    once = applied(live_object_after(scenario), object_of_parts(config), "x", force=True, time="T1")
    assert applied(once, object_of_parts(config), "x", time="T2") == once


@given(scenario=SCENARIOS, config=THINGS)
def test_applier_owns_all_applied_fields(scenario, config):
    after = applied(live_object_after(scenario), object_of_parts(config), "x", force=True)
    claimed = difference(applied_fields(ATOM, object_of_parts(config)), NEVER_OWNED)
    assert managers(after).get("x*", {}) == fieldsv1.encode(claimed)
    assert merge(ATOM, after, object_of_parts(config)) is after


@given(scenario=SCENARIOS, config=THINGS)
def test_updater_owns_all_changed_fields(scenario, config):
    live = live_object_after(scenario)
    new = object_of_parts(config) | {
        "metadata": object_of_parts(config)["metadata"]
        | {"managedFields": live["metadata"].get("managedFields")}
    }
    after = updated(live, new, "x")
    changed = difference(compare(ATOM, live, after).changed_fields, NEVER_OWNED)
    if managers(after):
        assert not difference(changed, fieldsv1.decode(managers(after).get("x", {})).fields)


@given(scenario=SCENARIOS, config=THINGS)
def test_empty_apply_keeps_fields_of_other_managers(scenario, config):
    live = live_object_after(scenario)
    try:
        first = applied(live, object_of_parts(config), "x")
    except Conflicts:
        return
    others = {name: fields for name, fields in managers(first).items() if name != "x*"}
    assert managers(applied(first, thing(), "x")) == others
