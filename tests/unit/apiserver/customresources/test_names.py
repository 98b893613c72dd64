"""The first definition that uses a name gets it; later ones with the same name are in conflict."""

from datetime import UTC, datetime

import pytest

from mockube.apiserver.customresources.compile import by_maturity
from mockube.apiserver.customresources.conditions import (
    UsedNames,
    decide_names,
    structure_problem,
    with_structure,
)
from tests.support.hostile.doubling import check_linear

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "listKind": "WidgetList",
    "shortNames": ["wi"],
}


def decide(asked, *, given=None, taken=()):
    names = UsedNames()
    names.put("one", "g", given or {})
    names.put("other", "another group", asked)
    for number, one in enumerate(taken):
        names.put(f"other{number}", "g", one)
    return decide_names("g", asked, given or {}, names)


@pytest.mark.timed
def test_definitions_of_group_are_checked_in_linear_time():
    def names_of_definitions(size):
        return [
            {field: f"{field}{at}" for field in ("plural", "singular", "kind", "listKind")}
            for at in range(size)
        ]

    def check_all_names(all_names):
        taken = UsedNames()
        for at, names in enumerate(all_names):
            taken.put(str(at), "g", names)
        assert not any(decide_names("g", names, names, taken).problem for names in all_names)

    check_linear(names_of_definitions, check_all_names, 1_000)


def test_malformed_names_of_other_definition_are_ignored():
    assert not decide(ASKED, taken=[{"plural": {"widgets": 1}, "shortNames": [["wi"], 7], "kind": 3}]).problem


def test_unused_names_are_accepted():
    verdict = decide(ASKED | {"categories": ["all"]}, taken=[{"plural": "gears", "kind": "Gear"}])
    assert verdict.accepted == ASKED | {"categories": ["all"]}
    assert not verdict.problem


@pytest.mark.parametrize(
    ("taken", "field", "reason", "name"),
    [
        pytest.param({"plural": "widgets"}, "plural", "PluralConflict", "widgets", id="plural"),
        pytest.param({"shortNames": ["widget"]}, "singular", "SingularConflict", "widget", id="singular"),
        pytest.param({"plural": "wi"}, "shortNames", "ShortNamesConflict", "wi", id="short"),
        pytest.param({"kind": "Widget"}, "kind", "KindConflict", "Widget", id="kind"),
        pytest.param({"kind": "WidgetList"}, "listKind", "ListKindConflict", "WidgetList", id="list"),
    ],
)
def test_names_in_use_are_refused(taken, field, reason, name):
    verdict = decide(ASKED, taken=[taken])
    assert (verdict.reason, verdict.problem) == (reason, f'"{name}" is already in use')
    assert not verdict.accepted.get(field)
    assert {**verdict.accepted, field: ASKED[field]} == ASKED


def test_refused_name_keeps_accepted_one():
    verdict = decide(ASKED, given={"kind": "Old"}, taken=[{"kind": "Widget"}])
    assert verdict.accepted["kind"] == "Old"


def test_last_conflicting_name_is_reported():
    verdict = decide(ASKED, taken=[ASKED])
    assert (verdict.reason, verdict.problem) == ("ListKindConflict", '"WidgetList" is already in use')


def test_conflicting_short_names_are_reported_together():
    verdict = decide(ASKED | {"shortNames": ["wi", "wj", "wk"]}, taken=[{"shortNames": ["wi", "wj"]}])
    assert verdict.problem == '["wi" is already in use, "wj" is already in use]'
    assert "shortNames" not in verdict.accepted


def test_short_name_equal_to_own_plural_is_refused():
    verdict = decide(ASKED | {"shortNames": ["widgets"]}, given=ASKED)
    assert (verdict.reason, verdict.accepted["shortNames"]) == ("ShortNamesConflict", ["wi"])


def test_released_names_are_free():
    names = UsedNames()
    assert names.put("one", "g", ASKED)
    assert not names.put("one", "g", ASKED)
    assert decide_names("g", ASKED, {}, names).problem
    assert names.remove("one")
    assert not decide_names("g", ASKED, {}, names).problem


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({}, "", id="structural"),
        pytest.param(
            {"preserveUnknownFields": True},
            "spec.preserveUnknownFields: Invalid value: true: must be false",
            id="preserveUnknownFields",
        ),
        pytest.param(
            {"versions": [{"schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}}]},
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: "
            "must not be empty for specified object fields",
            id="a schema without a type",
        ),
    ],
)
def test_non_structural_schema_of_stored_definition_sets_condition(spec, problem):
    tree = {"spec": {"versions": []} | spec, "status": {"conditions": []}}
    assert structure_problem(tree) == problem
    changed = with_structure(tree, problem, NOW)
    if not problem:
        assert changed is None
        return
    assert [one["type"] for one in changed["status"]["conditions"]] == ["NonStructuralSchema"]
    assert changed["status"]["conditions"][0]["message"] == problem
    assert with_structure(changed, "", NOW)["status"]["conditions"] == []


def test_kinds_and_resources_have_separate_names():
    assert not decide(ASKED, taken=[{"kind": "widgets", "plural": "Widget"}]).problem


def test_versions_are_sorted_by_stability():
    versions = ["v1alpha1", "foo1", "v1beta2", "v10", "v2", "v1beta10", "bar2", "v1"]
    assert by_maturity(versions) == ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar2", "foo1"]
