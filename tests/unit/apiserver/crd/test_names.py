"""Names are given to whom they were given first."""

import pytest

from apiserver.crd.names import judge
from apiserver.crd.versions import by_maturity

ASKED = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "listKind": "WidgetList",
    "shortNames": ["wi"],
}


def test_names_that_nobody_has_are_accepted():
    verdict = judge(ASKED | {"categories": ["all"]}, {}, [{"plural": "gears", "kind": "Gear"}])
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
    verdict = judge(ASKED, {}, [taken])
    assert (verdict.reason, verdict.problem) == (reason, f'"{name}" is already in use')
    assert not verdict.accepted.get(field)
    assert {**verdict.accepted, field: ASKED[field]} == ASKED


def test_a_name_that_is_not_accepted_stays_as_it_was():
    verdict = judge(ASKED, {"kind": "Old"}, [{"kind": "Widget"}])
    assert verdict.accepted["kind"] == "Old"


def test_kinds_and_resources_are_apart():
    assert not judge(ASKED, {}, [{"kind": "widgets", "plural": "Widget"}]).problem


def test_versions_are_listed_by_how_mature_they_are():
    versions = ["v1alpha1", "foo1", "v1beta2", "v10", "v2", "v1beta10", "bar2", "v1"]
    assert by_maturity(versions) == ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar2", "foo1"]
