"""Names are given to whom they were given first."""

import pytest

from mockube.apiserver.customresources.compile import by_maturity
from mockube.apiserver.customresources.establishing import TakenNames, judge
from tests.support.hostile.doubling import check_linear

ASKED = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "listKind": "WidgetList",
    "shortNames": ["wi"],
}


def judged(asked, *, given=None, taken=()):
    names = TakenNames()
    names.add("one", "g", asked)
    names.add("other", "another group", asked)
    for number, one in enumerate(taken):
        names.add(f"other{number}", "g", one)
    return judge("one", "g", asked, given or {}, names)


def test_all_definitions_of_a_group_are_judged_in_linear_time():
    def made(size):
        return [
            {field: f"{field}{at}" for field in ("plural", "singular", "kind", "listKind")}
            for at in range(size)
        ]

    def judge_all(all_names):
        taken = TakenNames()
        for at, names in enumerate(all_names):
            taken.add(str(at), "g", names)
        assert not any(judge(str(at), "g", names, {}, taken).problem for at, names in enumerate(all_names))

    check_linear(made, judge_all, 1_000)


def test_malformed_names_of_one_definition_are_nobodys():
    assert not judged(ASKED, taken=[{"plural": {"widgets": 1}, "shortNames": [["wi"], 7], "kind": 3}]).problem


def test_names_that_nobody_has_are_accepted():
    verdict = judged(ASKED | {"categories": ["all"]}, taken=[{"plural": "gears", "kind": "Gear"}])
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
def test_names_that_another_has_are_not(taken, field, reason, name):
    verdict = judged(ASKED, taken=[taken])
    assert (verdict.reason, verdict.problem) == (reason, f'"{name}" is already in use')
    assert not verdict.accepted.get(field)
    assert {**verdict.accepted, field: ASKED[field]} == ASKED


def test_a_name_that_is_not_accepted_stays_as_it_was():
    verdict = judged(ASKED, given={"kind": "Old"}, taken=[{"kind": "Widget"}])
    assert verdict.accepted["kind"] == "Old"


def test_kinds_and_resources_are_apart():
    assert not judged(ASKED, taken=[{"kind": "widgets", "plural": "Widget"}]).problem


def test_versions_are_listed_by_how_mature_they_are():
    versions = ["v1alpha1", "foo1", "v1beta2", "v10", "v2", "v1beta10", "bar2", "v1"]
    assert by_maturity(versions) == ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar2", "foo1"]
