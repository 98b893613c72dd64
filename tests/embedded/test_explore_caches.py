import pytest

import mockube
from mockube.exploration.plans import TEXTS
from tests.support import operators_with_caches as operators

OLD_LISTS = ("crash and stale lists", "create anew and stale lists")
CRASHES = ("crash before", "crash after")


def explore(main, scenario, actions, plans):
    without = [name for name in TEXTS if name not in actions]
    found = mockube.explore({**scenario, "without": without}, main=main, plans=plans, patience=2)
    assert not found.exploration.not_judged, found
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("main", "scenario", "actions", "plans", "text", "parts"),
    [
        pytest.param(
            operators.keeper, operators.KEEPER_SCENARIO, OLD_LISTS, 4,
            "the data of a site are kept does not hold", ["and its lists are from when it was being deleted"],
            id="old lists",
        ),
        pytest.param(
            operators.scaler, operators.SCALER_SCENARIO, CRASHES, 10,
            'ConfigMap child in default differs: data.size: "', ["the operator crashes"],
            id="crash",
        ),
    ],
)  # fmt: skip
def test_bug_of_a_cache_is_found_in_few_plans(main, scenario, actions, plans, text, parts):
    found = explore(main, scenario, actions, plans)
    showing = [
        finding
        for finding in found.findings
        if any(problem.text.startswith(text) for problem in finding.problems)
    ]
    assert showing, found
    assert any(all(part in str(finding.plan) for part in parts) for finding in showing), found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("main", "scenario", "actions", "plans"),
    [
        pytest.param(operators.careful_keeper, operators.KEEPER_SCENARIO, OLD_LISTS, 8, id="old lists"),
        pytest.param(operators.careful_scaler, operators.SCALER_SCENARIO, CRASHES, 10, id="crash"),
    ],
)
def test_careful_operator_with_a_cache_has_no_finding(main, scenario, actions, plans):
    assert explore(main, scenario, actions, plans).findings == []
